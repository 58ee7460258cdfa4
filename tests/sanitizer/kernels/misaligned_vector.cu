// Four words at an address that is not a multiple of sixteen.
//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))
extern "C" __global__ void k(const float* x, float* y, long long n) {
  const int t = threadIdx.x;
  const long long i = blockIdx.x * 256ll + t;
  float4 four = make_float4(0.0f, 0.0f, 0.0f, 0.0f);
  if (t == 0) four = *reinterpret_cast<const float4*>(x + 1);  // FAULTS not a multiple of 16
  if (i < n) y[i] = 2.0f * x[i] + 1.0f + 0.0f * (four.x + four.y + four.z + four.w);
}
