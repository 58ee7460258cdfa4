// x in both eight-bit formats, by way of float32, to the nearest value.
//@ launch cast grid=(ceil_div(N, 256)) block=(256) args=(x, e4m3, e5m2, i64(N))
#include <cuda_bf16.h>
#include <cuda_fp8.h>

extern "C" __global__ void cast(const __nv_bfloat16* __restrict__ x, __nv_fp8_e4m3* __restrict__ e4m3,
                                __nv_fp8_e5m2* __restrict__ e5m2, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float value = __bfloat162float(x[i]);
  e4m3[i] = __nv_fp8_e4m3(value);
  e5m2[i] = __nv_fp8_e5m2(value);
}
