// Softmax over rows of float32, one block a row, maximum and sum in one pass.
extern "C" __global__ void __launch_bounds__(256)
    softmax(const float* __restrict__ x, float* __restrict__ out, int columns) {
  __shared__ float maxima[8], sums[8];
  const float* from = x + static_cast<long long>(blockIdx.x) * columns;
  float top = -1e30f, sum = 0.0f;
  for (int i = threadIdx.x; i < columns; i += 256) {
    const float value = from[i], next = fmaxf(top, value);
    sum = sum * expf(top - next) + expf(value - next);
    top = next;
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    const float other_top = __shfl_xor_sync(0xffffffffu, top, mask);
    const float other_sum = __shfl_xor_sync(0xffffffffu, sum, mask);
    const float next = fmaxf(top, other_top);
    sum = sum * expf(top - next) + other_sum * expf(other_top - next);
    top = next;
  }
  if (threadIdx.x % 32 == 0) {
    maxima[threadIdx.x / 32] = top;
    sums[threadIdx.x / 32] = sum;
  }
  __syncthreads();
  float row_top = maxima[0];
  for (int warp = 1; warp < 8; ++warp) row_top = fmaxf(row_top, maxima[warp]);
  float row_sum = 0.0f;
  for (int warp = 0; warp < 8; ++warp) row_sum += sums[warp] * expf(maxima[warp] - row_top);
  float* to = out + static_cast<long long>(blockIdx.x) * columns;
  for (int i = threadIdx.x; i < columns; i += 256) to[i] = expf(from[i] - row_top) / row_sum;
}
