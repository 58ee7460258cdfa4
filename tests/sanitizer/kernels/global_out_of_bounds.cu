// Reads one element past the end of the input.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  const float next = i < n ? x[i + 1] : 0.0f;  // FAULTS past the end of input 'x'
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * next;
}
