// The copy into shared memory is issued, and read as if it were done.
#include <cuda_pipeline_primitives.h>
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ float s[256];
  if (i < n) __pipeline_memcpy_async(&s[t], &x[i], sizeof(float));
  __pipeline_commit();
  if (i < n) y[i] = 2.0f * s[t] + 1.0f;  // FINDS UNINITIALIZED_READ
}
