// The tile is written again before everyone has read it.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ float s[256];
  float sum = 0.0f;
  for (int round = 0; round < 3; ++round) {
    s[t] = (i < n ? x[i] : 0.0f) + round;  // FINDS SHARED_RACE
    __syncthreads();
    sum += s[255 - t];
  }
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * sum;
}
