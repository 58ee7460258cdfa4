// y = 2x + 1 in bfloat16 and q = x in float8_e4m3fn, both from float32 with one rounding.
//@ launch affine_quantise grid=(ceil_div(N, 256)) block=(256) args=(x, y, q, i64(N))
#include <cuda_bf16.h>
#include <cuda_fp8.h>

extern "C" __global__ void affine_quantise(const __nv_bfloat16* __restrict__ x, __nv_bfloat16* __restrict__ y,
                                           __nv_fp8_e4m3* __restrict__ q, long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float value = __bfloat162float(x[i]);
  y[i] = __float2bfloat16(2.0f * value + 1.0f);
  q[i] = __nv_fp8_e4m3(value);
}
