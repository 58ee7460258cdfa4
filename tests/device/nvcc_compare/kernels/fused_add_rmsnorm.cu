// Residual addition and normalisation, one block a row, two passes; the sum is written out too.
#include <cuda_bf16.h>

extern "C" __global__ void __launch_bounds__(256)
    fused_add_rmsnorm(const __nv_bfloat162* __restrict__ x, const __nv_bfloat162* __restrict__ residual,
                      const __nv_bfloat162* __restrict__ weight, __nv_bfloat162* __restrict__ sum_out,
                      __nv_bfloat162* __restrict__ out, int pairs, float epsilon) {
  __shared__ float warp_sums[8];
  const long long row = static_cast<long long>(blockIdx.x) * pairs;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < pairs; i += 256) {
    const float2 a = __bfloat1622float2(x[row + i]), b = __bfloat1622float2(residual[row + i]);
    const float2 s = make_float2(a.x + b.x, a.y + b.y);
    squares += s.x * s.x + s.y * s.y;
    sum_out[row + i] = __float22bfloat162_rn(s);
  }
  for (int mask = 16; mask > 0; mask /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, mask);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = squares;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < 8; ++warp) sum += warp_sums[warp];
  const float scale = 1.0f / sqrtf(sum / (2 * pairs) + epsilon);
  for (int i = threadIdx.x; i < pairs; i += 256) {
    const float2 a = __bfloat1622float2(x[row + i]), b = __bfloat1622float2(residual[row + i]);
    const float2 w = __bfloat1622float2(weight[i]);
    out[row + i] = __floats2bfloat162_rn((a.x + b.x) * scale * w.x, (a.y + b.y) * scale * w.y);
  }
}
