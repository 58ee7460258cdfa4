#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
namespace cg = cooperative_groups;
extern "C" __global__ void k(const float* x, float* y, int n) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  __shared__ float part[32];
  float s = 0;
  for (int i = block.thread_rank(); i < n; i += block.size()) s += x[i];
  s = cg::reduce(warp, s, cg::plus<float>());
  if (warp.thread_rank() == 0) part[warp.meta_group_rank()] = s;
  block.sync();
  if (block.thread_rank() == 0) {
    for (unsigned i = 1; i < warp.meta_group_size(); ++i) s += part[i];
    y[0] = s;
  }
}
