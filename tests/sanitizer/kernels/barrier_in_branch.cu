// Half of the block waits at a barrier that the others do not have.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  if (t < 128) __syncthreads();  // FINDS BARRIER_DIVERGENCE
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
