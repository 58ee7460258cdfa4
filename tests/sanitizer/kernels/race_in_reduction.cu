// A tree of sums whose steps have no barrier between them.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ float s[256];
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  for (int h = 128; h >= 32; h /= 2) {
    if (t < h) s[t] += s[t + h];  // FINDS SHARED_RACE
  }
  __syncthreads();
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * s[0];
}
