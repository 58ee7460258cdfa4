// Two tiles in turn: the next copy goes into a tile that other warps may still read.
#include <cuda_pipeline_primitives.h>
//@ launch k grid=(1) block=(64) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  __shared__ float s[2][64];
  auto load = [&](long long base, int tile) {
    if (base + t < n) __pipeline_memcpy_async(&s[tile][t], &x[base + t], sizeof(float));  // FINDS SHARED_RACE
    __pipeline_commit();
  };
  load(0, 0);
  int tile = 0;
  for (long long base = 0; base < n; base += 64, tile ^= 1) {
    load(base + 64, tile ^ 1);
    __pipeline_wait_prior(1);
    __syncthreads();
    const int other = 63 - t;
    if (base + other < n) y[base + other] = 2.0f * s[tile][other] + 1.0f;
  }
}
