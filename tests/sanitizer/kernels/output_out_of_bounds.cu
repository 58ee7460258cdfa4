// Writes past the end of the output.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  y[i] = 2.0f * (i < n ? x[i] : 0.0f) + 1.0f;  // FAULTS past the end of output 'y'
}
