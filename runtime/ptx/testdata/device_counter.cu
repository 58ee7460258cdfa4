__device__ unsigned done_blocks;
__device__ int unused_state = 3;
namespace {
__device__ float cache[64];
}
namespace ns {
__device__ int total = 7;
}
extern "C" __global__ void k(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x == 0) {
    unsigned d = atomicAdd(&done_blocks, 1u);
    if (d > 100) return;
  }
  if (i < n) y[i] = x[i] + cache[i & 63];
  if (i < 64) cache[i] = y[i];
  if (i == 0) ns::total = n;
}
