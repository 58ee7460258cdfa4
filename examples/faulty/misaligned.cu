// Expected with rmsnorm_h2048: RUNTIME_ERROR. A 16-byte load from an address that is 2 bytes past such a boundary.
//@ launch rmsnorm grid=(batch_size) block=(256) args=(hidden_states, weight, output)
#include <cuda_bf16.h>

extern "C" __global__ void rmsnorm(const __nv_bfloat16* hidden_states, const __nv_bfloat16* weight, uint4* output) {
  // 255 vectors a row, so that the shifted loads stay within the tensor: alignment is the only fault.
  const long long row = static_cast<long long>(blockIdx.x) * 2048;
  if (threadIdx.x == 255) return;
  const uint4 shifted = *reinterpret_cast<const uint4*>(hidden_states + row + 8 * threadIdx.x + 1);
  output[row / 8 + threadIdx.x] = shifted;
}
