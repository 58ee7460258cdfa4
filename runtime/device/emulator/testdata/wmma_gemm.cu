#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <mma.h>

using namespace nvcuda;

template <typename>
constexpr bool kIsRow = false;
template <>
constexpr bool kIsRow<wmma::row_major> = true;

// c[64, 64] = alpha * a[64, 64] b[64, 64]; one warp a tile of 16 x 16. T: half, __nv_bfloat16, signed char.
template <typename T, typename Sum, typename BLayout>
__device__ void Gemm(const T* a, const T* b, Sum* c, Sum alpha) {
  __shared__ __align__(32) T tile[16 * 16];
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 16, T, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, T, BLayout> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 16, Sum> sum;
  wmma::fill_fragment(sum, Sum(0));
  for (int k = 0; k < 64; k += 16) {
    for (int i = threadIdx.x; i < 256; i += 32) tile[i] = a[(row + i / 16) * 64 + k + i % 16];
    __syncthreads();
    wmma::load_matrix_sync(fa, tile, 16);
    wmma::load_matrix_sync(fb, kIsRow<BLayout> ? b + k * 64 + column : b + column * 64 + k, 64);
    wmma::mma_sync(sum, fa, fb, sum);
    __syncthreads();
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= alpha;
  wmma::store_matrix_sync(c + row * 64 + column, sum, 64, wmma::mem_row_major);
}

extern "C" __global__ void wmma_half(const __half* a, const __half* b, float* c) {
  Gemm<__half, float, wmma::row_major>(a, b, c, 2.0f);
}
extern "C" __global__ void wmma_brain(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c) {
  Gemm<__nv_bfloat16, float, wmma::col_major>(a, b, c, 2.0f);
}
extern "C" __global__ void wmma_byte(const signed char* a, const signed char* b, int* c) {
  Gemm<signed char, int, wmma::col_major>(a, b, c, 2);
}

// The same in float16 with a float16 result: the float sums are copied element by element.
extern "C" __global__ void wmma_narrow(const __half* a, const __half* b, __half* c) {
  const int row = blockIdx.y * 8, column = blockIdx.x * 32;
  wmma::fragment<wmma::matrix_a, 8, 32, 16, __half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 32, 16, __half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, 8, 32, 16, float> sum;
  wmma::fragment<wmma::accumulator, 8, 32, 16, __half> narrow;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < 64; k += 16) {
    wmma::load_matrix_sync(fa, a + row * 64 + k, 64);
    wmma::load_matrix_sync(fb, b + k * 64 + column, 64);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) narrow.x[i] = __float2half(2.0f * sum.x[i]);
  wmma::store_matrix_sync(c + row * 64 + column, narrow, 64, wmma::mem_row_major);
}

// Tf32: c = 2 a b, b by columns.
extern "C" __global__ void wmma_tf32(const float* a, const float* b, float* c) {
  const int row = blockIdx.y * 16, column = blockIdx.x * 16;
  wmma::fragment<wmma::matrix_a, 16, 16, 8, wmma::precision::tf32, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 16, 16, 8, wmma::precision::tf32, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 16, 16, 8, float> sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int k = 0; k < 64; k += 8) {
    wmma::load_matrix_sync(fa, a + row * 64 + k, 64);
    wmma::load_matrix_sync(fb, b + column * 64 + k, 64);
    for (int i = 0; i < fa.num_elements; ++i) fa.x[i] = wmma::__float_to_tf32(2.0f * fa.x[i]);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  wmma::store_matrix_sync(c + row * 64 + column, sum, 64, wmma::mem_row_major);
}

extern "C" __global__ void wmma_double(const double* a, const double* b, double* c) {
  const int row = blockIdx.y * 8, column = blockIdx.x * 8;
  wmma::fragment<wmma::matrix_a, 8, 8, 4, double, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, 8, 8, 4, double, wmma::col_major> fb;
  wmma::fragment<wmma::accumulator, 8, 8, 4, double> sum;
  wmma::fill_fragment(sum, 0.0);
  for (int k = 0; k < 64; k += 4) {
    wmma::load_matrix_sync(fa, a + row * 64 + k, 64);
    wmma::load_matrix_sync(fb, b + column * 64 + k, 64);
    wmma::mma_sync(sum, fa, fb, sum);
  }
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] *= 2.0;
  wmma::store_matrix_sync(c + row * 64 + column, sum, 64, wmma::mem_row_major);
}
