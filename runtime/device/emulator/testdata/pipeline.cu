#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>
namespace cg = cooperative_groups;
// Adds the rows of a matrix, 128 columns a block, double-buffered by cuda::pipeline.
extern "C" __global__ void __launch_bounds__(128) sum_columns(const float* x, float* y, int rows) {
  __shared__ float tile[2][128];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
  auto block = cg::this_thread_block();
  auto pipe = cuda::make_pipeline(block, &state);
  float sum = 0;
  const int base = blockIdx.x * 128;
  for (int load = 0, row = 0; row < rows; ++row) {
    for (; load < rows && load < row + 2; ++load) {
      pipe.producer_acquire();
      cuda::memcpy_async(block, tile[load & 1], x + load * gridDim.x * 128 + base, sizeof(float) * 128, pipe);
      pipe.producer_commit();
    }
    pipe.consumer_wait();
    sum += tile[row & 1][127 - threadIdx.x];
    pipe.consumer_release();
  }
  y[base + 127 - threadIdx.x] = sum;
}
// A cuda::barrier by hand: tokens, arrive_and_wait, arrive_and_drop; and atomics of every width.
extern "C" __global__ void barriers(unsigned* y, unsigned long long* z) {
  __shared__ cuda::barrier<cuda::thread_scope_block> bar;
  __shared__ unsigned count;
  if (threadIdx.x == 0) {
    init(&bar, blockDim.x);
    count = 0;
  }
  __syncthreads();
  cuda::atomic_ref<unsigned, cuda::thread_scope_block> c(count);
  if (threadIdx.x % 2) c.fetch_add(threadIdx.x, cuda::memory_order_relaxed);
  auto token = bar.arrive();
  bar.wait(std::move(token));
  unsigned seen = c.load();
  bar.arrive_and_wait();
  if (threadIdx.x >= 32) {
    bar.arrive_and_drop();
    return;
  }
  bar.arrive_and_wait();
  bar.arrive_and_wait();  // of the first warp alone
  auto tile = cg::tiled_partition<32>(cg::this_thread_block());
  unsigned total = cg::reduce(tile, seen, cg::plus<unsigned>());
  cuda::atomic_ref<unsigned long long, cuda::thread_scope_device> g(*z);
  if (tile.thread_rank() == 0) {
    g.fetch_max(total);
    y[blockIdx.x] = total;
  }
}
