// Writes to the input.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  if (t == 0) const_cast<float*>(x)[0] = 1.0f;  // FAULTS read-only
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
