#include <cuda_bf16.h>
extern "C" __global__ void __launch_bounds__(256, 2)
    rms(const __nv_bfloat16* __restrict__ x, const float* __restrict__ w, __nv_bfloat16* __restrict__ y, int n,
        float eps) {
  __shared__ float partial[8];
  extern __shared__ float rowbuf[];
  const long long row = blockIdx.x;
  float sum = 0;
  for (int i = threadIdx.x; i < n; i += blockDim.x) {
    float v = __bfloat162float(x[row * n + i]);
    rowbuf[i] = v;
    sum += v * v;
  }
  for (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = sum;
  __syncthreads();
  sum = 0;
  for (int i = 0; i < 8; ++i) sum += partial[i];
  float s = rsqrtf(sum / n + eps);
  for (int i = threadIdx.x; i < n; i += blockDim.x) y[row * n + i] = __float2bfloat16(rowbuf[i] * s * w[i]);
}
