// Transpose of a float32 matrix through a padded tile in shared memory, 32 x 8 threads a block.
extern "C" __global__ void transpose(const float* __restrict__ x, float* __restrict__ out, int rows, int columns) {
  __shared__ float tile[32][33];
  int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
#pragma unroll
  for (int i = 0; i < 32; i += 8) {
    if (row + i < rows && column < columns) {
      tile[threadIdx.y + i][threadIdx.x] = x[static_cast<long long>(row + i) * columns + column];
    }
  }
  __syncthreads();
  column = blockIdx.y * 32 + threadIdx.x, row = blockIdx.x * 32 + threadIdx.y;
#pragma unroll
  for (int i = 0; i < 32; i += 8) {
    if (row + i < columns && column < rows) {
      out[static_cast<long long>(row + i) * rows + column] = tile[threadIdx.x][threadIdx.y + i];
    }
  }
}
