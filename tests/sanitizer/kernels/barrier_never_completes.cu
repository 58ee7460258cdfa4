// A barrier for more threads than the block has.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  asm volatile("bar.sync 1, 512;");  // FAULTS waits at barrier 1
  if (i < n) y[i] = 2.0f * x[i] + 1.0f;
}
