// The judge's trusted kernels. They compile with -fmad=false: what they compute must be the host's bits.
#include "runtime/bulk/kernels/compare.cuh"
#include "runtime/bulk/kernels/content.cuh"
#include "runtime/bulk/kernels/inputs.cuh"

// Reads all of `data`, so that a cache of its size holds nothing else, and overwrites its dynamic shared memory. The
// sum of what was read goes to shared memory, and to no other: nothing that anyone sees depends on it, yet it must be
// read.
extern "C" __global__ void __launch_bounds__(1024)
    solstice_clear_l2(const void* data, int64_t bytes, int64_t shared_bytes) {
  extern __shared__ uint32_t shared[];
  const uint4* chunks = static_cast<const uint4*>(data);
  const int64_t count = bytes / 16, step = static_cast<int64_t>(gridDim.x) * blockDim.x;
  uint32_t sum = 0;
#pragma unroll 4
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step) {
    const uint4 chunk = chunks[i];
    sum ^= chunk.x ^ chunk.y ^ chunk.z ^ chunk.w;
  }
  volatile uint32_t* words = shared;
  for (int64_t i = threadIdx.x; i < shared_bytes / 4; i += blockDim.x) words[i] = sum;
  // Without shared memory the sum would be nothing's input. No launch has a negative size.
  if (shared_bytes < 0) *static_cast<uint32_t*>(const_cast<void*>(data)) = sum;
}

extern "C" __global__ void solstice_stand_in(const solstice::bulk::StandInParameters p) {
  for (int64_t r = 0; r < p.count; ++r) {
    const uint64_t start = (p.ranges[r].address + 15) & ~uint64_t{15};
    const uint64_t end = (p.ranges[r].address + p.ranges[r].bytes) & ~uint64_t{15};
    const uint64_t step = 16 * solstice::bulk::AllThreads();
    for (uint64_t at = start + 16 * solstice::bulk::GlobalThread(); at < end; at += step) {
      *reinterpret_cast<uint4*>(at) = make_uint4(0, 0, 0, 0);
    }
  }
}

// Where name expressions are looked up.
using namespace solstice::bulk;
