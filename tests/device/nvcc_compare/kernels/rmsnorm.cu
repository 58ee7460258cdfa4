// Root-mean-square normalisation, one warp a row of 2048.
#include <cuda_bf16.h>

constexpr int kHidden = 2048, kVectors = kHidden / 8 / 32;

extern "C" __global__ void rmsnorm(const uint4* __restrict__ x, const uint4* __restrict__ weight,
                                   uint4* __restrict__ out, int rows, float epsilon) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= rows) return;
  const uint4* from = x + static_cast<long long>(row) * (kHidden / 8);
  uint4 bits[kVectors];
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) bits[v] = from[v * 32 + threadIdx.x];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const __nv_bfloat162* pair = reinterpret_cast<const __nv_bfloat162*>(&bits[v]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 f = __bfloat1622float2(pair[i]);
      squares += f.x * f.x + f.y * f.y;
    }
  }
  for (int mask = 16; mask > 0; mask /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, mask);
  const float scale = rsqrtf(squares / kHidden + epsilon);
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    const uint4 weight_bits = weight[v * 32 + threadIdx.x];
    const __nv_bfloat162* w = reinterpret_cast<const __nv_bfloat162*>(&weight_bits);
    __nv_bfloat162* pair = reinterpret_cast<__nv_bfloat162*>(&bits[v]);
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 f = __bfloat1622float2(pair[i]), g = __bfloat1622float2(w[i]);
      pair[i] = __floats2bfloat162_rn(f.x * scale * g.x, f.y * scale * g.y);
    }
    out[static_cast<long long>(row) * (kHidden / 8) + v * 32 + threadIdx.x] = bits[v];
  }
}
