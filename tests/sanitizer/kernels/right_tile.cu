// Nothing is wrong with this one: tiles, a tree of sums, a warp's steps, a flag with fences.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ float s[256];
  __shared__ int flag;
  if (t == 0) flag = 0;
  float sum = 0.0f;
  for (int round = 0; round < 3; ++round) {
    s[t] = (i < n ? x[i] : 0.0f) + round;
    __syncthreads();
    sum += s[255 - t];
    __syncthreads();
  }
  for (int h = 128; h >= 32; h /= 2) {
    if (t < h) s[t] += s[t + h];
    __syncthreads();
  }
  if (t < 32) {
    for (int h = 16; h > 0; h /= 2) {
      const float other = s[t + h];
      __syncwarp();
      s[t] += other;
      __syncwarp();
    }
  }
  __shared__ float published;
  if (t == 0) {
    published = 1.0f;
    __threadfence_block();
    atomicExch(&flag, 1);
  }
  float one = 1.0f;
  if (t >= 32) {
    while (*static_cast<volatile int*>(&flag) == 0) {
    }
    __threadfence_block();
    one = published;
  }
  if (i < n) y[i] = 2.0f * x[i] + one + 0.0f * sum;
}
