// An offset in shared memory is used as an address of global memory.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  __shared__ float s[256];
  s[t] = i < n ? x[i] : 0.0f;
  __syncthreads();
  const float* p = reinterpret_cast<const float*>(__cvta_generic_to_shared(s + t) + 4096);
  const float value = *p;  // FAULTS reads 4 bytes
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * value;
}
