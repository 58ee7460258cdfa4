// A flag in shared memory, without a fence on either side.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ float s;
  __shared__ int flag;
  if (t == 0) flag = 0;
  __syncthreads();
  if (t == 0) {
    s = x[0];
    atomicExch(&flag, 1);
  }
  float one = 0.0f;
  if (t >= 32) {
    while (*static_cast<volatile int*>(&flag) == 0) {
    }
    one = 1.0f + 0.0f * s;  // FINDS SHARED_RACE
  } else {
    one = 1.0f;
  }
  if (i < n) y[i] = 2.0f * x[i] + one;
}
