// One element of a local array is left out.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  int table[8];
  for (int j = 0; j < 7; ++j) table[(j + t) % 7] = j;
  const int value = table[(t % 2) * 7];  // FINDS UNINITIALIZED_READ
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * (value & 1);
}
