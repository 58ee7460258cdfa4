// C = A * B^T in float16 on the tensor cores, 64 x 64 elements a block of four warps, two stages of 32 along K brought
// by cp.async. Rows in shared memory are padded to 80 bytes. The sizes are multiples of 64.
#include <cuda_fp16.h>

constexpr int kPitch = 40;

__device__ __forceinline__ void CopyTile(__half (*to)[kPitch], const __half* from, int k) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int row = threadIdx.x / 4 + 32 * i, column = threadIdx.x % 4 * 8;
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(&to[row][column]))),
                 "l"(from + static_cast<long long>(row) * k + column)
                 : "memory");
  }
}

__device__ __forceinline__ void LoadMatrices(unsigned (&to)[4], const __half* row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(static_cast<unsigned>(__cvta_generic_to_shared(row)))
               : "memory");
}

extern "C" __global__ void __launch_bounds__(128)
    gemm_mma(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c, int n, int k) {
  __shared__ __align__(16) __half a_tile[2][64][kPitch], b_tile[2][64][kPitch];
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  const int warp_row = warp / 2 * 32, warp_column = warp % 2 * 32;
  const __half* a_from = a + static_cast<long long>(blockIdx.y) * 64 * k;
  const __half* b_from = b + static_cast<long long>(blockIdx.x) * 64 * k;
  float sum[2][4][4] = {};

  CopyTile(a_tile[0], a_from, k);
  CopyTile(b_tile[0], b_from, k);
  asm volatile("cp.async.commit_group;" ::: "memory");
  for (int tile = 0; tile < k / 32; ++tile) {
    if (tile + 1 < k / 32) {
      CopyTile(a_tile[(tile + 1) % 2], a_from + (tile + 1) * 32, k);
      CopyTile(b_tile[(tile + 1) % 2], b_from + (tile + 1) * 32, k);
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
    asm volatile("cp.async.wait_group 1;" ::: "memory");
    __syncthreads();
#pragma unroll
    for (int step = 0; step < 32; step += 16) {
      unsigned left[2][4], right[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        LoadMatrices(left[i], &a_tile[tile % 2][warp_row + i * 16 + lane % 16][step + lane / 16 * 8]);
        LoadMatrices(right[i],
                     &b_tile[tile % 2][warp_column + i * 16 + lane / 16 * 8 + lane % 8][step + lane / 8 % 2 * 8]);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int j = 0; j < 4; ++j) {
          asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
              "{%0, %1, %2, %3};"
              : "+f"(sum[i][j][0]), "+f"(sum[i][j][1]), "+f"(sum[i][j][2]), "+f"(sum[i][j][3])
              : "r"(left[i][0]), "r"(left[i][1]), "r"(left[i][2]), "r"(left[i][3]), "r"(right[j / 2][j % 2 * 2]),
                "r"(right[j / 2][j % 2 * 2 + 1]));
        }
      }
    }
    __syncthreads();
  }

  const long long row = static_cast<long long>(blockIdx.y) * 64 + warp_row + lane / 4;
  const int column = blockIdx.x * 64 + warp_column + lane % 4 * 2;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      __half* to = c + (row + i * 16) * n + column + j * 8;
      *reinterpret_cast<__half2*>(to) = __floats2half2_rn(sum[i][j][0], sum[i][j][1]);
      *reinterpret_cast<__half2*>(to + 8LL * n) = __floats2half2_rn(sum[i][j][2], sum[i][j][3]);
    }
  }
}
