// Sixteen bytes at a time, wherever they start.
#pragma once

#include "runtime/bulk/kernels/parameters.h"
#include "runtime/core/philox.h"

namespace solstice::bulk {

struct Chunk {
  uint32_t word[4];
};

inline int64_t GlobalThread() { return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; }
inline int64_t AllThreads() { return static_cast<int64_t>(gridDim.x) * blockDim.x; }

inline Chunk Draw(uint64_t seed, uint64_t stream, uint64_t counter) {
  const core::Philox4 four = core::Philox(seed, stream, counter);
  return {{four.word[0], four.word[1], four.word[2], four.word[3]}};
}

// The same for kernels whose speed matters less than the time to compile them: one copy, called.
__noinline__ Chunk DrawCalled(uint64_t seed, uint64_t stream, uint64_t counter) { return Draw(seed, stream, counter); }

// By selection: an index would put the chunk into local memory.
inline uint32_t WordOf(const Chunk& chunk, uint64_t i) {
  const uint32_t low = i % 2 == 0 ? chunk.word[0] : chunk.word[1], high = i % 2 == 0 ? chunk.word[2] : chunk.word[3];
  return i % 4 < 2 ? low : high;
}

inline bool IsAligned(uint64_t address) { return (address & 15) == 0; }

// Bytes first .. end - 1 of the chunk at `address`, zeros for the others. Byte by byte, and called: seldom wanted.
__noinline__ Chunk LoadPart(uint64_t address, int first, int end) {
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(address);
  Chunk chunk = {};
#pragma unroll 1
  for (int i = end - 1; i >= 0; --i) {
#pragma unroll
    for (int w = 3; w > 0; --w) chunk.word[w] = __funnelshift_l(chunk.word[w - 1], chunk.word[w], 8);
    chunk.word[0] = chunk.word[0] << 8 | (i >= first ? bytes[i] : 0);
  }
  return chunk;
}

inline Chunk LoadWhole(uint64_t address) {
  const uint4 four = *reinterpret_cast<const uint4*>(address);
  return {{four.x, four.y, four.z, four.w}};
}

inline Chunk Load(uint64_t address, int64_t left) {
  if (left >= 16 && IsAligned(address)) return LoadWhole(address);
  return LoadPart(address, 0, left < 16 ? static_cast<int>(left) : 16);
}

inline void StoreWhole(uint64_t address, const Chunk& chunk) {
  *reinterpret_cast<uint4*>(address) = make_uint4(chunk.word[0], chunk.word[1], chunk.word[2], chunk.word[3]);
}

// Bytes `first` to `end` of the chunk, whose byte 0 belongs at `address`.
__noinline__ void StorePart(uint64_t address, Chunk chunk, int first, int end) {
  uint8_t* bytes = reinterpret_cast<uint8_t*>(address);
#pragma unroll 1
  for (int i = 0; i < end; ++i) {
    if (i >= first) bytes[i] = static_cast<uint8_t>(chunk.word[0]);
#pragma unroll
    for (int w = 0; w < 3; ++w) chunk.word[w] = __funnelshift_r(chunk.word[w], chunk.word[w + 1], 8);
    chunk.word[3] >>= 8;
  }
}

inline void Store(uint64_t address, const Chunk& chunk, int count) {
  if (count == 16 && IsAligned(address)) {
    StoreWhole(address, chunk);
  } else if (count == 8 && (address & 7) == 0) {
    *reinterpret_cast<uint2*>(address) = make_uint2(chunk.word[0], chunk.word[1]);
  } else if (count == 4 && (address & 3) == 0) {
    *reinterpret_cast<uint32_t*>(address) = chunk.word[0];
  } else {
    StorePart(address, chunk, 0, count);
  }
}

// Sum or maximum over the block. Every thread must call it.
__noinline__ uint64_t BlockReduce(uint64_t value, bool is_sum) {
  __shared__ uint64_t parts[kThreads / 32];
  auto join = [is_sum](uint64_t a, uint64_t b) { return is_sum ? a + b : a > b ? a : b; };
#pragma unroll 1
  for (int step = 16; step > 0; step /= 2) value = join(value, __shfl_xor_sync(0xffffffffu, value, step));
  if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
  __syncthreads();
  uint64_t all = 0;
#pragma unroll 1
  for (int i = 0; i < static_cast<int>(blockDim.x) / 32; ++i) all = join(all, parts[i]);
  __syncthreads();  // read, before the next call writes
  return all;
}

inline void AddTo(uint64_t* sum, uint64_t value) {
  if (value != 0) atomicAdd(reinterpret_cast<unsigned long long*>(sum), static_cast<unsigned long long>(value));
}
inline void RaiseTo(uint64_t* most, uint64_t value) {
  if (value != 0) atomicMax(reinterpret_cast<unsigned long long*>(most), static_cast<unsigned long long>(value));
}

}  // namespace solstice::bulk
