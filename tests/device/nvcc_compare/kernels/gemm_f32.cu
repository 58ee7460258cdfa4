// C = A * B in float32, row-major, with a tile of each in shared memory; 16 x 16 threads a block, 4 x 4 elements a
// thread. The sizes are multiples of 64.
extern "C" __global__ void __launch_bounds__(256)
    gemm_f32(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, int n, int k) {
  __shared__ float a_tile[16][64 + 4], b_tile[16][64];
  const int x = threadIdx.x % 16, y = threadIdx.x / 16;
  const int first_row = blockIdx.y * 64, first_column = blockIdx.x * 64;
  float sum[4][4] = {};
  for (int depth = 0; depth < k; depth += 16) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      a_tile[x][y + 16 * i] = a[static_cast<long long>(first_row + y + 16 * i) * k + depth + x];
      b_tile[y][x + 16 * i] = b[static_cast<long long>(depth + y) * n + first_column + x + 16 * i];
    }
    __syncthreads();
#pragma unroll
    for (int d = 0; d < 16; ++d) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) sum[i][j] += a_tile[d][y * 4 + i] * b_tile[d][x * 4 + j];
      }
    }
    __syncthreads();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      c[static_cast<long long>(first_row + y * 4 + i) * n + first_column + x * 4 + j] = sum[i][j];
    }
  }
}
