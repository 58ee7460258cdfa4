// All lanes write their own number to one word.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ int last;
  if (t < 32) last = t;  // FINDS MISSING_SYNCWARP
  __syncthreads();
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * last;
}
