#include <cub/block/block_radix_sort.cuh>
#include <cub/block/block_reduce.cuh>
#include <cub/block/block_scan.cuh>
#include <cub/warp/warp_reduce.cuh>
extern "C" __global__ void __launch_bounds__(128) blocks(const unsigned* x, unsigned* y, unsigned* z, unsigned* s) {
  using Sort = cub::BlockRadixSort<unsigned, 128, 2>;
  using Scan = cub::BlockScan<unsigned, 128>;
  using Reduce = cub::BlockReduce<unsigned, 128>;
  __shared__ union {
    Sort::TempStorage sort;
    Scan::TempStorage scan;
    Reduce::TempStorage reduce;
  } t;
  unsigned k[2] = {x[threadIdx.x * 2], x[threadIdx.x * 2 + 1]};
  Sort(t.sort).Sort(k);
  y[threadIdx.x * 2] = k[0];
  y[threadIdx.x * 2 + 1] = k[1];
  __syncthreads();
  unsigned sum;
  Scan(t.scan).InclusiveSum(x[threadIdx.x], sum);
  z[threadIdx.x] = sum;
  __syncthreads();
  unsigned total = Reduce(t.reduce).Reduce(x[threadIdx.x], cuda::maximum<>{});
  if (threadIdx.x == 0) *s = total;
}
