// Odd and even threads wait at different barriers.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  float value = 0.0f;
  if (t % 2 == 0) {
    value = i < n ? x[i] : 0.0f;
    __syncthreads();
    value = value + 1.0f - 1.0f;
  } else {
    value = i < n ? x[i] : 1.0f;
    asm volatile("bar.sync 0;");  // FINDS BARRIER_DIVERGENCE
    value = value * 1.0f;
  }
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * value;
}
