// Root-mean-square normalisation at the speed of memory, for every definition rmsnorm_h*.
//
// Memory sets the time, so every input is read once, 16 bytes a thread, and a thread has all its loads on the way
// before it uses the first. With few rows a row gets many threads, for a short way from load to store. With many, a row
// of up to 1536 gets one warp or less, which needs no barrier, and short rows are taken several a thread, to have
// enough bytes under way and to load the weights less often.
//
//   solstice run -d rmsnorm_h2048 examples/rmsnorm_fast.cu
//
//@ let few = batch_size <= 4 * sm_count
//@ let vectors = hidden_size // 8
//@ let threads = ceil_div(vectors, 2) if few
//@               else 8 if vectors < 32 else 32 if vectors < 256 else 64 if vectors < 512 else 128
//@ let rows_a_thread = 1 if few else 4 if vectors < 32 else 2 if vectors <= 64 else 1
//@ let groups = max(1, (32 if few else 64) // threads)
//@ launch rmsnorm_fast<hidden_size, threads, groups, rows_a_thread>
//@        grid=(ceil_div(batch_size, groups * rows_a_thread)) block=(threads, groups)
//@        args=(hidden_states, weight, output, i32(batch_size), f32(1e-5 if hidden_size == 4096 else 1e-6))
#include <cuda_bf16.h>

// So many threads a multiprocessor leave each 85 registers, enough for its share of a row and of the weights.
constexpr int kResidentThreads = 768;

union Eight {
  uint4 bits;
  __nv_bfloat162 pair[4];
};

// The sum over a row's kThreads threads, given to each of them. They are part of a warp, or whole warps of a block that
// has no other row.
template <int kThreads>
__device__ __forceinline__ float RowSum(float value) {
  constexpr int kLanes = kThreads < 32 ? kThreads : 32, kWarps = kThreads / kLanes;
#pragma unroll
  for (int lane_mask = kLanes / 2; lane_mask > 0; lane_mask /= 2) {
    value += __shfl_xor_sync(0xffffffffu, value, lane_mask);
  }
  if constexpr (kWarps > 1) {
    __shared__ float warp_sums[kWarps];
    if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
    __syncthreads();
    value = 0.0f;
#pragma unroll
    for (int warp = 0; warp < kWarps; ++warp) value += warp_sums[warp];
  }
  return value;
}

// A group of kThreads threads takes every kGroups-th row of the block's kGroups * kRows.
template <int kHidden, int kThreads, int kGroups, int kRows>
__global__ void __launch_bounds__(kThreads* kGroups, kResidentThreads / (kThreads * kGroups))
    rmsnorm_fast(const uint4* __restrict__ hidden_states, const uint4* __restrict__ weight, uint4* __restrict__ output,
                 int batch_size, float epsilon) {
  constexpr int kRowVectors = kHidden / 8, kVectors = kRowVectors / kThreads;
  static_assert(kHidden % (8 * kThreads) == 0, "every thread has the same number of vectors");
  static_assert(kThreads <= 32 ? 32 % kThreads == 0 && kThreads * kGroups % 32 == 0
                               : kThreads % 32 == 0 && kGroups == 1 && kRows == 1,
                "a group lies in one warp, or is a block with one row");
  const int first_row = blockIdx.x * (kGroups * kRows) + threadIdx.y;

  Eight x[kRows][kVectors], w[kVectors];
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    // Rows past the end repeat the last one; they are not stored.
    const int row = min(first_row + r * kGroups, batch_size - 1);
    const uint4* from = hidden_states + static_cast<long long>(row) * kRowVectors + threadIdx.x;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) x[r][v].bits = from[v * kThreads];
  }
#pragma unroll
  for (int v = 0; v < kVectors; ++v) w[v].bits = weight[v * kThreads + threadIdx.x];

#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    float squares = 0.0f;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 f = __bfloat1622float2(x[r][v].pair[i]);
        squares += f.x * f.x + f.y * f.y;
      }
    }
    const float scale = rsqrtf(RowSum<kThreads>(squares) / kHidden + epsilon);
    const int row = first_row + r * kGroups;
    uint4* to = output + static_cast<long long>(row) * kRowVectors + threadIdx.x;
#pragma unroll
    for (int v = 0; v < kVectors; ++v) {
      Eight y;
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const float2 f = __bfloat1622float2(x[r][v].pair[i]), g = __bfloat1622float2(w[v].pair[i]);
        y.pair[i] = __floats2bfloat162_rn(f.x * scale * g.x, f.y * scale * g.y);
      }
      if (row < batch_size) to[v * kThreads] = y.bits;
    }
  }
}
