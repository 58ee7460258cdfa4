#include <cuda/atomic>
__device__ int slot;
extern "C" __global__ void k(int* y, int n) {
  cuda::atomic_ref<int> a(slot);
  int v = a.fetch_add(n);
  *y = v;
}
