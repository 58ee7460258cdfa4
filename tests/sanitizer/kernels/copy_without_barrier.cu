// Each thread waits for its own copies; those of other warps need a barrier as well.
#include <cuda_pipeline_primitives.h>
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long base = blockIdx.x * 256ll, i = base + t;
  __shared__ float s[256];
  if (i < n) __pipeline_memcpy_async(&s[t], &x[i], sizeof(float));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  const int other = 255 - t;
  if (base + other < n) y[base + other] = 2.0f * s[other] + 1.0f;  // FINDS SHARED_RACE
}
