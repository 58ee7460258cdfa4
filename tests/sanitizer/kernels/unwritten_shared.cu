// Reads shared memory that nobody wrote.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ float s[256];
  if (n < 0) s[t] = x[0];
  const float zero = s[t] == 3.0f ? 1e-30f : 0.0f;  // FINDS UNINITIALIZED_READ
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + zero;
}
