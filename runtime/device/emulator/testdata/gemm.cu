#include <cuda_fp16.h>
// c[m, n] = a[m, k] b[k, n], fp16 with float accumulation; 64 x 64 tiles, 256 threads, 4 x 4 a thread.
extern "C" __global__ void __launch_bounds__(256)
gemm(const __half* __restrict__ a, const __half* __restrict__ b, __half* __restrict__ c, int m, int n, int k) {
  __shared__ __half sa[16][64 + 2];
  __shared__ __half sb[16][64 + 2];
  const int tx = threadIdx.x % 16, ty = threadIdx.x / 16;
  const int row0 = blockIdx.y * 64, col0 = blockIdx.x * 64;
  float acc[4][4] = {};
  for (int k0 = 0; k0 < k; k0 += 16) {
    for (int i = threadIdx.x; i < 64 * 16; i += 256) {
      const int r = i / 16, kk = i % 16;
      sa[kk][r] = row0 + r < m && k0 + kk < k ? a[(size_t)(row0 + r) * k + k0 + kk] : __half(0.0f);
      const int kb = i / 64, cc = i % 64;
      sb[kb][cc] = col0 + cc < n && k0 + kb < k ? b[(size_t)(k0 + kb) * n + col0 + cc] : __half(0.0f);
    }
    __syncthreads();
#pragma unroll
    for (int kk = 0; kk < 16; ++kk) {
      float x[4], y[4];
      for (int i = 0; i < 4; ++i) x[i] = __half2float(sa[kk][ty * 4 + i]);
      for (int j = 0; j < 4; ++j) y[j] = __half2float(sb[kk][tx * 4 + j]);
      for (int i = 0; i < 4; ++i)
        for (int j = 0; j < 4; ++j) acc[i][j] += x[i] * y[j];
    }
    __syncthreads();
  }
  for (int i = 0; i < 4; ++i)
    for (int j = 0; j < 4; ++j) {
      const int r = row0 + ty * 4 + i, cc = col0 + tx * 4 + j;
      if (r < m && cc < n) c[(size_t)r * n + cc] = __float2half(acc[i][j]);
    }
}
