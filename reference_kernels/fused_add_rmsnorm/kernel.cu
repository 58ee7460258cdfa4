// Residual addition and root-mean-square normalisation: x = hidden_states + residual,
// output = x / sqrt(mean(x * x) + epsilon) * weight, float32 throughout, one rounding.
// One block a row, two passes over it. A reference: plain before fast.
//@ launch fused_add_rmsnorm grid=(batch_size) block=(min(256, round_up(hidden_size, 32)))
//@        args=(hidden_states, residual, weight, output, i32(hidden_size), f32(epsilon))
#include <cuda_bf16.h>

// The sum over the block, given to every thread. blockDim.x is a multiple of 32.
__device__ float BlockSum(float value) {
  __shared__ float warp_sums[32];
  for (int lane_mask = 16; lane_mask > 0; lane_mask /= 2) value += __shfl_xor_sync(0xffffffffu, value, lane_mask);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < blockDim.x / 32; ++warp) sum += warp_sums[warp];
  return sum;
}

extern "C" __global__ void fused_add_rmsnorm(const __nv_bfloat16* __restrict__ hidden_states,
                                             const __nv_bfloat16* __restrict__ residual,
                                             const __nv_bfloat16* __restrict__ weight,
                                             __nv_bfloat16* __restrict__ output, int hidden_size, float epsilon) {
  const long long row = static_cast<long long>(blockIdx.x) * hidden_size;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < hidden_size; i += blockDim.x) {
    const float x = __bfloat162float(hidden_states[row + i]) + __bfloat162float(residual[row + i]);
    squares += x * x;
  }
  const float scale = 1.0f / sqrtf(BlockSum(squares) / hidden_size + epsilon);
  for (int i = threadIdx.x; i < hidden_size; i += blockDim.x) {
    const float x = __bfloat162float(hidden_states[row + i]) + __bfloat162float(residual[row + i]);
    output[row + i] = __float2bfloat16(x * scale * __bfloat162float(weight[i]));
  }
}
