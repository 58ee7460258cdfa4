// Gaussian error linear unit in bfloat16, eight elements a thread.
#include <cuda_bf16.h>

extern "C" __global__ void gelu(const uint4* __restrict__ x, uint4* __restrict__ out, int count) {
  const int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= count) return;
  uint4 bits = x[at];
  __nv_bfloat162* pair = reinterpret_cast<__nv_bfloat162*>(&bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    float2 f = __bfloat1622float2(pair[i]);
    f.x = 0.5f * f.x * (1.0f + erff(f.x * 0.70710678f));
    f.y = 0.5f * f.y * (1.0f + erff(f.y * 0.70710678f));
    pair[i] = __float22bfloat162_rn(f);
  }
  out[at] = bits;
}
