// Adds to an output that holds nothing.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  if (i < n) {
    const float old = y[i];  // FINDS UNINITIALIZED_READ
    y[i] = 2.0f * x[i] + 1.0f + (__float_as_int(old) == 0x12345678 ? 1.0f : 0.0f);
  }
}
