// Residual addition and root-mean-square normalisation for fused_add_rmsnorm_h2048 (and h7168).
//
// One block a row. A thread keeps its eight elements in registers between the two passes, so every input is read once,
// 16 bytes at a time. The hidden size is a template argument taken from the definition's axis.
//
//   solstice run -d fused_add_rmsnorm_h2048 examples/fused_add_rmsnorm.cu
//
//@ launch fused_add_rmsnorm<hidden_size> grid=(batch_size) block=(hidden_size // 8)
//@        args=(hidden_states, residual, weight, output, f32(1e-6))
#include <cuda_bf16.h>

union Eight {
  uint4 bits;
  __nv_bfloat162 pair[4];
};

template <int kHidden>
__global__ void __launch_bounds__(kHidden / 8)
    fused_add_rmsnorm(const uint4* __restrict__ hidden_states, const uint4* __restrict__ residual,
                      const uint4* __restrict__ weight, uint4* __restrict__ output, float epsilon) {
  static_assert(kHidden % 256 == 0 && kHidden <= 8192, "a row must fill whole warps of one block");
  constexpr int kVectors = kHidden / 8, kWarps = kVectors / 32;
  const long long at = static_cast<long long>(blockIdx.x) * kVectors + threadIdx.x;

  Eight h, r, w;
  h.bits = hidden_states[at];
  r.bits = residual[at];
  w.bits = weight[threadIdx.x];
  float2 x[4];
  float squares = 0.0f;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 a = __bfloat1622float2(h.pair[i]), b = __bfloat1622float2(r.pair[i]);
    x[i] = make_float2(a.x + b.x, a.y + b.y);
    squares += x[i].x * x[i].x + x[i].y * x[i].y;
  }

  __shared__ float warp_sums[kWarps];
#pragma unroll
  for (int lane_mask = 16; lane_mask > 0; lane_mask /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, lane_mask);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = squares;
  __syncthreads();
  float sum = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) sum += warp_sums[warp];
  const float scale = rsqrtf(sum / kHidden + epsilon);

  Eight y;
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 g = __bfloat1622float2(w.pair[i]);
    y.pair[i] = __floats2bfloat162_rn(x[i].x * scale * g.x, x[i].y * scale * g.y);
  }
  output[at] = y.bits;
}
