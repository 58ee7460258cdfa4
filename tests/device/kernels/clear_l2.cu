// Reads `vectors` times 16 bytes, so that they are what the L2 cache holds. Reading leaves no dirty lines behind.
extern "C" __global__ void read_all(const uint4* __restrict__ from, long long vectors, uint4* sink) {
  uint4 all = make_uint4(0, 0, 0, 0);
  for (long long i = static_cast<long long>(blockIdx.x) * blockDim.x + threadIdx.x; i < vectors;
       i += static_cast<long long>(gridDim.x) * blockDim.x) {
    const uint4 one = __ldcg(from + i);
    all = make_uint4(all.x ^ one.x, all.y ^ one.y, all.z ^ one.z, all.w ^ one.w);
  }
  // Never true for what the buffer holds, which the compiler does not know.
  if (all.x == 1 && all.y == 2 && all.z == 3 && all.w == 4) *sink = all;
}
