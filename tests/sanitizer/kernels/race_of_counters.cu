// A plain increment of a counter that all warps share.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ int count;
  if (t == 0) count = 0;
  __syncthreads();
  if (t % 32 == 0) count = count + t;  // FINDS SHARED_RACE
  __syncthreads();
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * count;
}
