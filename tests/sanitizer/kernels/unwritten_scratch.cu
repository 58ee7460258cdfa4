// Counts in scratch that was not cleared.
//@ scratch counter = 4
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N), counter)
extern "C" __global__ void k(const float* x, float* y, long long n, int* counter) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  if (t == 0) {
    const int before = atomicAdd(counter, 1);  // FINDS UNINITIALIZED_READ
    if (before == -12345) y[0] = 0.0f;
  }
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
