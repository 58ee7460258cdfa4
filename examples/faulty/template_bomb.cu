// Expected with rmsnorm_h2048: COMPILE_ERROR (a limit of the compile). Two instantiations for each one above them: 2^26
// in all, which no compiler finishes.
//@ launch rmsnorm grid=(batch_size) block=(256) args=(hidden_states, weight, output)
#include <cuda_bf16.h>

template <int kDepth, long long kPath>
struct Tree {
  static constexpr long long kValue =
      Tree<kDepth - 1, 2 * kPath>::kValue + Tree<kDepth - 1, 2 * kPath + 1>::kValue;
};
template <long long kPath>
struct Tree<0, kPath> {
  static constexpr long long kValue = kPath;
};

extern "C" __global__ void rmsnorm(const __nv_bfloat16* hidden_states, const __nv_bfloat16* weight,
                                   __nv_bfloat16* output) {
  const bool odd = Tree<26, 1>::kValue % 2 != 0;
  output[static_cast<long long>(blockIdx.x) * 2048 + threadIdx.x] = odd ? weight[threadIdx.x] : hidden_states[0];
}
