// Expected with rmsnorm_h2048: TIMEOUT. Every thread waits for a flag that nobody sets.
//@ launch rmsnorm grid=(batch_size) block=(256) args=(hidden_states, weight, output)
#include <cuda_bf16.h>

extern "C" __global__ void rmsnorm(const __nv_bfloat16* hidden_states, const __nv_bfloat16* weight,
                                   __nv_bfloat16* output) {
  __shared__ volatile int flag;
  if (threadIdx.x == 0) flag = 0;
  __syncthreads();
  while (flag == 0) {
  }
  output[static_cast<long long>(blockIdx.x) * 2048 + threadIdx.x] = weight[threadIdx.x];
}
