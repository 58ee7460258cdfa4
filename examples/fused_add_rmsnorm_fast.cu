// Residual addition and root-mean-square normalisation at the speed of memory, for every definition
// fused_add_rmsnorm_h*.
//
// Memory sets the time, so every input is read once, 16 bytes a thread, and a thread has all its loads on the way
// before it uses the first. The sums stay in registers between the two passes over a row. With few rows a row gets many
// threads, for a short way from load to store; with many it gets fewer, each with more bytes under way.
//
//   solstice run -d fused_add_rmsnorm_h4096 examples/fused_add_rmsnorm_fast.cu
//
//@ let few = batch_size <= 4 * sm_count
//@ let threads = hidden_size // 16 if few else hidden_size // 32
//@ launch fused_add_rmsnorm_fast<hidden_size, threads> grid=(batch_size) block=(threads)
//@        args=(hidden_states, residual, weight, output, f32(1e-5 if hidden_size == 4096 else 1e-6))
#include <cuda_bf16.h>

union Eight {
  uint4 bits;
  __nv_bfloat162 pair[4];
};

// The sum over the block's kThreads threads, given to each of them.
template <int kThreads>
__device__ __forceinline__ float BlockSum(float value) {
  constexpr int kWarps = kThreads / 32;
  __shared__ float warp_sums[kWarps];
#pragma unroll
  for (int lane_mask = 16; lane_mask > 0; lane_mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane_mask);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0.0f;
#pragma unroll
  for (int warp = 0; warp < kWarps; ++warp) value += warp_sums[warp];
  return value;
}

// One block a row.
template <int kHidden, int kThreads>
__global__ void __launch_bounds__(kThreads)
    fused_add_rmsnorm_fast(const uint4* __restrict__ hidden_states, const uint4* __restrict__ residual,
                           const uint4* __restrict__ weight, uint4* __restrict__ output, float epsilon) {
  static_assert(kHidden % (8 * kThreads) == 0 && kThreads % 32 == 0, "every thread has the same number of vectors");
  constexpr int kRowVectors = kHidden / 8, kVectors = kRowVectors / kThreads;
  const long long at = static_cast<long long>(blockIdx.x) * kRowVectors + threadIdx.x;

  Eight h[kVectors], r[kVectors], w[kVectors];
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    h[v].bits = hidden_states[at + v * kThreads];
    r[v].bits = residual[at + v * kThreads];
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) w[v].bits = weight[v * kThreads + threadIdx.x];

  float2 x[kVectors][4];
  float squares = 0.0f;
#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 a = __bfloat1622float2(h[v].pair[i]), b = __bfloat1622float2(r[v].pair[i]);
      x[v][i] = make_float2(a.x + b.x, a.y + b.y);
      squares += x[v][i].x * x[v][i].x + x[v][i].y * x[v][i].y;
    }
  }
  const float scale = rsqrtf(BlockSum<kThreads>(squares) / kHidden + epsilon);

#pragma unroll
  for (int v = 0; v < kVectors; ++v) {
    Eight y;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float2 g = __bfloat1622float2(w[v].pair[i]);
      y.pair[i] = __floats2bfloat162_rn(x[v][i].x * scale * g.x, x[v][i].y * scale * g.y);
    }
    output[at + v * kThreads] = y.bits;
  }
}
