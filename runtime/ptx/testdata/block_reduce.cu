#include <cub/block/block_reduce.cuh>
template <int N>
__global__ void sum(const float* x, float* y, int n) {
  using R = cub::BlockReduce<float, N>;
  __shared__ typename R::TempStorage t;
  int i = blockIdx.x * N + threadIdx.x;
  float s = R(t).Sum(i < n ? x[i] : 0.f);
  if (threadIdx.x == 0) y[blockIdx.x] = s;
}
template __global__ void sum<128>(const float*, float*, int);
