// C = A * B^T in float16 with a tile of each factor in shared memory, for gemm_n128_k2048 and every other definition
// gemm_n*_k* whose N is a multiple of 64 and K of 32. Sums in float32.
//
// A block of 256 threads makes 64 x 64 elements of C, a thread 4 x 4 of them.
//
//   solstice run -d gemm_n128_k2048 examples/gemm_tiled.cu
//
//@ let tile = 64
//@ launch gemm_tiled grid=(N // tile, ceil_div(M, tile)) block=(256) args=(A, B, C, i32(M), i32(N), i32(K))
#include <cuda_fp16.h>

constexpr int kTile = 64, kDepth = 32, kPad = 4;

// Loads 64 rows of 32 halves, 16 bytes a thread, and leaves them in shared memory as floats, transposed: [depth][row].
__device__ void LoadTile(const __half* __restrict__ from, int first_row, int rows, int k, int first_depth,
                         float (*to)[kTile + kPad]) {
  const int row = threadIdx.x / 4, depth = threadIdx.x % 4 * 8;
  uint4 bits = make_uint4(0, 0, 0, 0);
  if (first_row + row < rows) {
    bits = *reinterpret_cast<const uint4*>(from + static_cast<long long>(first_row + row) * k + first_depth + depth);
  }
  const __half2* pairs = reinterpret_cast<const __half2*>(&bits);
#pragma unroll
  for (int i = 0; i < 4; ++i) {
    const float2 pair = __half22float2(pairs[i]);
    to[depth + 2 * i][row] = pair.x;
    to[depth + 2 * i + 1][row] = pair.y;
  }
}

extern "C" __global__ void __launch_bounds__(256)
    gemm_tiled(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c, int m, int n, int k) {
  __shared__ alignas(16) float a_tile[kDepth][kTile + kPad];
  __shared__ alignas(16) float b_tile[kDepth][kTile + kPad];
  const int first_row = blockIdx.y * kTile, first_column = blockIdx.x * kTile;
  const int row = threadIdx.x / 16 * 4, column = threadIdx.x % 16 * 4;

  float sum[4][4] = {};
  for (int depth = 0; depth < k; depth += kDepth) {
    LoadTile(a, first_row, m, k, depth, a_tile);
    LoadTile(b, first_column, n, k, depth, b_tile);
    __syncthreads();
#pragma unroll
    for (int d = 0; d < kDepth; ++d) {
      const float4 left = *reinterpret_cast<const float4*>(&a_tile[d][row]);
      const float4 right = *reinterpret_cast<const float4*>(&b_tile[d][column]);
      const float l[4] = {left.x, left.y, left.z, left.w}, r[4] = {right.x, right.y, right.z, right.w};
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += l[i] * r[j];
      }
    }
    __syncthreads();
  }

#pragma unroll
  for (int i = 0; i < 4; ++i) {
    if (first_row + row + i >= m) return;
    __half* to = c + static_cast<long long>(first_row + row + i) * n + first_column + column;
    reinterpret_cast<__half2*>(to)[0] = __floats2half2_rn(sum[i][0], sum[i][1]);
    reinterpret_cast<__half2*>(to)[1] = __floats2half2_rn(sum[i][2], sum[i][3]);
  }
}
