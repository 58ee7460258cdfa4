// Counts of byte values, one table a block, with atomics in shared memory and a copy of the table for each of two
// halves.
extern "C" __global__ void __launch_bounds__(256)
    histogram(const uint4* __restrict__ x, unsigned* __restrict__ tables, int count) {
  __shared__ unsigned bins[2][256];
  bins[0][threadIdx.x] = bins[1][threadIdx.x] = 0;
  __syncthreads();
  unsigned* mine = bins[threadIdx.x / 128];
  for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += gridDim.x * 256) {
    const uint4 v = x[i];
    const unsigned words[4] = {v.x, v.y, v.z, v.w};
#pragma unroll
    for (int w = 0; w < 4; ++w) {
#pragma unroll
      for (int byte = 0; byte < 4; ++byte) atomicAdd(&mine[words[w] >> (8 * byte) & 255], 1u);
    }
  }
  __syncthreads();
  tables[blockIdx.x * 256 + threadIdx.x] = bins[0][threadIdx.x] + bins[1][threadIdx.x];
}
