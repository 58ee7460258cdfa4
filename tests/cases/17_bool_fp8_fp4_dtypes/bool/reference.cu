// out = mask ? a : b, inverse = not mask.
//@ launch select grid=(ceil_div(N, 256)) block=(256) args=(mask, a, b, out, inverse, i64(N))
extern "C" __global__ void select(const bool* __restrict__ mask, const float* __restrict__ a,
                                  const float* __restrict__ b, float* __restrict__ out, bool* __restrict__ inverse,
                                  long long n) {
  const long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const bool taken = mask[i];
  out[i] = taken ? a[i] : b[i];
  inverse[i] = !taken;
}
