// Rotary position embedding in bfloat16: heads of 128, the two halves of a head rotated by an angle a position.
#include <cuda_bf16.h>

extern "C" __global__ void rope(const __nv_bfloat16* __restrict__ x, const int* __restrict__ positions,
                                __nv_bfloat16* __restrict__ out, int heads) {
  const int token = blockIdx.x, pair = threadIdx.x;
  const float frequency = exp2f(-13.287712f * pair / 64);
  float sine, cosine;
  sincosf(positions[token] * frequency, &sine, &cosine);
  for (int head = threadIdx.y; head < heads; head += blockDim.y) {
    const long long at = (static_cast<long long>(token) * heads + head) * 128 + pair;
    const float low = __bfloat162float(x[at]), high = __bfloat162float(x[at + 64]);
    out[at] = __float2bfloat16(low * cosine - high * sine);
    out[at + 64] = __float2bfloat16(high * cosine + low * sine);
  }
}
