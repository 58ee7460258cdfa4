#include <cooperative_groups.h>
struct alignas(64) Map {
  unsigned long long opaque[16];
};
extern "C" __global__ void __cluster_dims__(2, 1, 1) k(const __grid_constant__ Map map, float* y) {
  __shared__ alignas(128) float tile[32 * 32];
  __shared__ unsigned long long bar;
  unsigned to = (unsigned)__cvta_generic_to_shared(tile), b = (unsigned)__cvta_generic_to_shared(&bar);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(b));
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(
            to),
        "l"(&map), "r"(0), "r"(0), "r"(b)
        : "memory");
  }
  cooperative_groups::this_cluster().sync();
  y[threadIdx.x] = tile[threadIdx.x];
}
