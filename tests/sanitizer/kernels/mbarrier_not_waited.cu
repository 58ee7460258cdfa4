// Arrives at the barrier and does not wait for the others.
#include <cuda_awbarrier_primitives.h>
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long base = blockIdx.x * 256ll;
  __shared__ float s[256];
  __shared__ __mbarrier_t barrier;
  if (t == 0) __mbarrier_init(&barrier, 256);
  __syncthreads();
  s[t] = base + t < n ? x[base + t] : 0.0f;
  const __mbarrier_token_t token = __mbarrier_arrive(&barrier);
  const int other = 255 - t;
  if (base + other < n) y[base + other] = 2.0f * s[other] + 1.0f;  // FINDS SHARED_RACE
  while (!__mbarrier_test_wait(&barrier, token)) {
  }
}
