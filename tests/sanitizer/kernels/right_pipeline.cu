// Nothing is wrong here: two tiles in turn, filled by copies, with barriers before they are read and before they are
// filled again; the last step goes through an mbarrier.
#include <cuda_awbarrier_primitives.h>
#include <cuda_pipeline_primitives.h>
//@ launch k grid=(1) block=(64) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x, other = 63 - t;
  __shared__ float s[2][64], last[64];
  __shared__ __mbarrier_t barrier;
  if (t == 0) __mbarrier_init(&barrier, 64);
  auto load = [&](long long base, int tile) {
    if (base + t < n) __pipeline_memcpy_async(&s[tile][t], &x[base + t], sizeof(float));
    __pipeline_commit();
  };
  load(0, 0);
  int tile = 0;
  const long long whole = n / 64 * 64;
  for (long long base = 0; base < whole; base += 64, tile ^= 1) {
    load(base + 64, tile ^ 1);
    __pipeline_wait_prior(1);
    __syncthreads();
    y[base + other] = 2.0f * s[tile][other] + 1.0f;
    __syncthreads();
  }
  last[t] = whole + t < n ? x[whole + t] : 0.0f;
  const __mbarrier_token_t token = __mbarrier_arrive(&barrier);
  while (!__mbarrier_test_wait(&barrier, token)) {
  }
  if (whole + other < n) y[whole + other] = 2.0f * last[other] + 1.0f;
  __pipeline_wait_prior(0);
}
