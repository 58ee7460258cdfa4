#include <cuda_fp16.h>

#include <cstdint>

// c[64, 64] = a[64, 64] b[64, 64]^T in float16, summed in float32; four warps, each 16 rows. The tiles come from shared
// memory through ldmatrix, the result leaves through stmatrix.
extern "C" __global__ void __launch_bounds__(128) mma_half(const __half* a, const __half* b, __half* c) {
  __shared__ __align__(16) __half sa[64][72], sb[64][72];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  for (int i = threadIdx.x; i < 64 * 64; i += 128) {
    sa[i / 64][i % 64] = a[i];
    sb[i / 64][i % 64] = b[i];
  }
  __syncthreads();
  float sum[8][4] = {};
  for (int k = 0; k < 64; k += 16) {
    uint32_t x[4];
    const uint32_t from = __cvta_generic_to_shared(&sa[warp * 16 + lane % 16][k + lane / 16 * 8]);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(x[0]), "=r"(x[1]), "=r"(x[2]), "=r"(x[3])
                 : "r"(from));
    for (int n = 0; n < 8; ++n) {
      uint32_t y[2];
      const uint32_t at = __cvta_generic_to_shared(&sb[n * 8 + lane % 8][k + lane / 8 % 2 * 8]);
      asm volatile("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%0, %1}, [%2];" : "=r"(y[0]), "=r"(y[1]) : "r"(at));
      asm volatile(
          "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+f"(sum[n][0]), "+f"(sum[n][1]), "+f"(sum[n][2]), "+f"(sum[n][3])
          : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
    }
  }
  __syncthreads();
  for (int n = 0; n < 8; ++n) {
    const __half2 upper = __floats2half2_rn(sum[n][0], sum[n][1]), lower = __floats2half2_rn(sum[n][2], sum[n][3]);
    const uint32_t to = __cvta_generic_to_shared(&sa[warp * 16 + lane % 16][n * 8]);
    asm volatile("stmatrix.sync.aligned.m8n8.x2.shared.b16 [%0], {%1, %2};" ::"r"(to),
                 "r"(*reinterpret_cast<const uint32_t*>(&upper)), "r"(*reinterpret_cast<const uint32_t*>(&lower))
                 : "memory");
  }
  __syncthreads();
  for (int i = threadIdx.x; i < 64 * 64; i += 128) c[i] = sa[i / 64][i % 64];
}

// c[64, 64] = a[64, 64] b[64, 64]^T of bytes, one warp a tile of 16 x 8.
extern "C" __global__ void mma_byte(const signed char* a, const signed char* b, int* c) {
  const int group = threadIdx.x / 4, member = threadIdx.x % 4;
  const int row = blockIdx.y * 16 + group, column = blockIdx.x * 8;
  int sum[4] = {};
  for (int k = 0; k < 64; k += 32) {
    const int* x = reinterpret_cast<const int*>(a + row * 64 + k) + member;
    const int* y = reinterpret_cast<const int*>(b + (column + group) * 64 + k) + member;
    asm volatile(
        "mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])
        : "r"(x[0]), "r"(x[8 * 16]), "r"(x[4]), "r"(x[8 * 16 + 4]), "r"(y[0]), "r"(y[4]));
  }
  int* out = c + row * 64 + column + member * 2;
  out[0] = sum[0];
  out[1] = sum[1];
  out[8 * 64] = sum[2];
  out[8 * 64 + 1] = sum[3];
}
