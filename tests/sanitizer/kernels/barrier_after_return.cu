// Threads past the end return before the barrier.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ float s[256];
  if (i >= n) return;
  s[t] = x[i];
  __syncthreads();  // FINDS BARRIER_DIVERGENCE
  y[i] = 2.0f * s[t] + 1.0f;
}
