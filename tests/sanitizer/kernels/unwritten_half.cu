// Half of the threads fill the tile, all read it.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ int s[256];
  if (t < 128) s[t] = t;
  __syncthreads();
  const int value = s[255 - t];  // FINDS UNINITIALIZED_READ
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * (value & 1);
}
