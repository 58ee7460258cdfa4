// C = A * B^T, float16 in and out, products and sums in float32, one rounding. A is [M, K], B is [N, K], C is [M, N].
// A thread computes kRows x 4 elements of C, each summed in order over K. Rows of A and B are read kWidth elements at a
// time (16 bytes where K allows), each read used for several sums. A reference: no shared memory, no tensor cores.
//@ let rows = 4 if M >= 4 else 1
//@ let width = 8 if K % 8 == 0 else 1
//@ launch gemm<rows, width> grid=(ceil_div(N, 128), ceil_div(M, rows)) block=(32)
//@        args=(A, B, C, i32(M), i32(N), i32(K))
#include <cuda_fp16.h>

template <int kWidth>
struct alignas(2 * kWidth) Chunk {
  __half value[kWidth];
};

constexpr int kColumns = 4;

template <int kRows, int kWidth>
__global__ void gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c, int m, int n,
                     int k) {
  const int first_row = blockIdx.y * kRows;
  // Columns of one thread lie blockDim.x apart, so that a warp writes adjacent elements.
  const int first_column = blockIdx.x * (kColumns * blockDim.x) + threadIdx.x;
  // Rows and columns past the edge repeat the last one: they are computed and not stored.
  const Chunk<kWidth>* a_row[kRows];
  const Chunk<kWidth>* b_row[kColumns];
#pragma unroll
  for (int i = 0; i < kRows; ++i) {
    a_row[i] = reinterpret_cast<const Chunk<kWidth>*>(a + static_cast<long long>(min(first_row + i, m - 1)) * k);
  }
#pragma unroll
  for (int j = 0; j < kColumns; ++j) {
    const int column = min(first_column + j * static_cast<int>(blockDim.x), n - 1);
    b_row[j] = reinterpret_cast<const Chunk<kWidth>*>(b + static_cast<long long>(column) * k);
  }

  float sum[kRows][kColumns] = {};
  for (int step = 0; step < k / kWidth; ++step) {
    float left[kRows][kWidth];
#pragma unroll
    for (int i = 0; i < kRows; ++i) {
      const Chunk<kWidth> chunk = a_row[i][step];
#pragma unroll
      for (int w = 0; w < kWidth; ++w) left[i][w] = __half2float(chunk.value[w]);
    }
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const Chunk<kWidth> chunk = b_row[j][step];
#pragma unroll
      for (int w = 0; w < kWidth; ++w) {
        const float right = __half2float(chunk.value[w]);
#pragma unroll
        for (int i = 0; i < kRows; ++i) sum[i][j] += left[i][w] * right;
      }
    }
  }

#pragma unroll
  for (int i = 0; i < kRows; ++i) {
#pragma unroll
    for (int j = 0; j < kColumns; ++j) {
      const int row = first_row + i, column = first_column + j * static_cast<int>(blockDim.x);
      if (row < m && column < n) c[static_cast<long long>(row) * n + column] = __float2half(sum[i][j]);
    }
  }
}
