// Sums of float32, one a block, over a grid-stride loop.
extern "C" __global__ void __launch_bounds__(512)
    reduce(const float4* __restrict__ x, float* __restrict__ block_sums, int count) {
  __shared__ float warp_sums[16];
  float sum = 0.0f;
  for (int i = blockIdx.x * 512 + threadIdx.x; i < count; i += gridDim.x * 512) {
    const float4 v = x[i];
    sum += (v.x + v.y) + (v.z + v.w);
  }
  for (int mask = 16; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
  if (threadIdx.x % 32 == 0) warp_sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x < 32) {
    sum = threadIdx.x < 16 ? warp_sums[threadIdx.x] : 0.0f;
    for (int mask = 8; mask > 0; mask /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, mask);
    if (threadIdx.x == 0) block_sums[blockIdx.x] = sum;
  }
}
