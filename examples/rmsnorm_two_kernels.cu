// Root-mean-square normalisation in two launches that share scratch memory, for rmsnorm_h2048: the first reduces every
// row to its scale, the second applies it. Slower than one launch; it shows how a plan passes data between kernels.
//
//   solstice run -d rmsnorm_h2048 examples/rmsnorm_two_kernels.cu
//
//@ let warps = 4
//@ scratch scales = batch_size * 4
//@ launch row_scales grid=(ceil_div(batch_size, warps)) block=(32, warps)
//@        args=(hidden_states, scales, i32(batch_size), i32(hidden_size), f32(1e-6))
//@ launch apply grid=(ceil_div(hidden_size, 256), batch_size) block=(256)
//@        args=(hidden_states, weight, scales, output, i32(hidden_size))
#include <cuda_bf16.h>

// One warp a row.
extern "C" __global__ void row_scales(const __nv_bfloat16* __restrict__ hidden_states, float* __restrict__ scales,
                                      int batch_size, int hidden_size, float epsilon) {
  const int row = blockIdx.x * blockDim.y + threadIdx.y;
  if (row >= batch_size) return;
  const __nv_bfloat16* from = hidden_states + static_cast<long long>(row) * hidden_size;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < hidden_size; i += 32) {
    const float x = __bfloat162float(from[i]);
    squares += x * x;
  }
  for (int lane_mask = 16; lane_mask > 0; lane_mask /= 2) squares += __shfl_xor_sync(0xffffffffu, squares, lane_mask);
  if (threadIdx.x == 0) scales[row] = rsqrtf(squares / hidden_size + epsilon);
}

extern "C" __global__ void apply(const __nv_bfloat16* __restrict__ hidden_states,
                                 const __nv_bfloat16* __restrict__ weight, const float* __restrict__ scales,
                                 __nv_bfloat16* __restrict__ output, int hidden_size) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x;
  if (column >= hidden_size) return;
  const long long at = static_cast<long long>(blockIdx.y) * hidden_size + column;
  const float x = __bfloat162float(hidden_states[at]);
  output[at] = __float2bfloat16(x * scales[blockIdx.y] * __bfloat162float(weight[column]));
}
