// Expected with rmsnorm_h2048: COMPILE_ERROR, without a line of the file: the compiler's jail does not hold it.
//@ launch rmsnorm grid=(batch_size) block=(256) args=(hidden_states, weight, output)
#include <cuda_bf16.h>

#include "/etc/passwd"

extern "C" __global__ void rmsnorm(const __nv_bfloat16* hidden_states, const __nv_bfloat16* weight,
                                   __nv_bfloat16* output) {
  output[static_cast<long long>(blockIdx.x) * 2048 + threadIdx.x] = weight[threadIdx.x];
}
