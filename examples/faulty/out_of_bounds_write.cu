// Expected with rmsnorm_h2048: RUNTIME_ERROR. The last row also writes the element after the end of the output.
//@ launch rmsnorm grid=(batch_size) block=(256) args=(hidden_states, weight, output, i32(hidden_size), f32(1e-6))
#include <cuda_bf16.h>

extern "C" __global__ void rmsnorm(const __nv_bfloat16* hidden_states, const __nv_bfloat16* weight,
                                   __nv_bfloat16* output, int hidden_size, float epsilon) {
  __shared__ float sum;
  if (threadIdx.x == 0) sum = 0.0f;
  __syncthreads();
  const long long row = static_cast<long long>(blockIdx.x) * hidden_size;
  float squares = 0.0f;
  for (int i = threadIdx.x; i < hidden_size; i += blockDim.x) {
    const float x = __bfloat162float(hidden_states[row + i]);
    squares += x * x;
  }
  atomicAdd(&sum, squares);
  __syncthreads();
  const float scale = rsqrtf(sum / hidden_size + epsilon);
  for (int i = threadIdx.x; i < hidden_size; i += blockDim.x) {
    output[row + i] = __float2bfloat16(__bfloat162float(hidden_states[row + i]) * scale * __bfloat162float(weight[i]));
  }
  if (blockIdx.x == gridDim.x - 1 && threadIdx.x == 0) output[row + hidden_size] = output[row];
}
