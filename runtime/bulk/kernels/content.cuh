// Random and patterned content: filling, checking, fingerprints.
#pragma once

#include "runtime/bulk/fingerprint.h"
#include "runtime/bulk/kernels/memory.cuh"

namespace solstice::bulk {

// Words `skip` / 4 ... of eight, shifted by `skip` % 4 bytes: bytes skip .. skip + 15 of 32.
inline Chunk Shifted(const Chunk& low, const Chunk& high, int skip) {
  const uint32_t all[8] = {low.word[0],  low.word[1],  low.word[2],  low.word[3],
                           high.word[0], high.word[1], high.word[2], high.word[3]};
  const int words = skip / 4, bits = skip % 4 * 8;
  uint32_t five[5];
#pragma unroll
  for (int i = 0; i < 5; ++i) {
    five[i] = words == 0 ? all[i] : words == 1 ? all[i + 1] : words == 2 ? all[i + 2] : i + 3 < 8 ? all[i + 3] : 0;
  }
  Chunk chunk;
#pragma unroll
  for (int i = 0; i < 4; ++i) chunk.word[i] = __funnelshift_r(five[i], five[i + 1], bits);
  return chunk;
}

// Bytes offset .. offset + 15 of the content; those before 0 mean nothing.
inline Chunk ContentAt(const ContentParameters& p, int64_t offset) {
  const int skip = static_cast<int>(offset & 15);
  const uint64_t counter = static_cast<uint64_t>(offset >> 4);
  const uint32_t low = static_cast<uint32_t>(p.pattern), high = static_cast<uint32_t>(p.pattern >> 32);
  Chunk first = {{low, high, low, high}}, second = first;
  if (p.is_pattern == 0) {
#pragma unroll 1
    for (int i = 0; i < (skip == 0 ? 1 : 2); ++i) {
      first = second;
      second = Draw(p.seed, p.stream, counter + i);
    }
    if (skip == 0) return second;
  }
  return Shifted(first, second, skip);
}

struct DamageCount {
  uint64_t bytes = 0, from_end = 0, end = 0;

  // A byte at `offset` of a region of `size` bytes.
  void Add(uint32_t difference, int64_t offset, int64_t size) {
    if (difference == 0) return;
    ++bytes;
    if (from_end == 0) from_end = static_cast<uint64_t>(size - offset);  // offsets rise
    end = static_cast<uint64_t>(offset + 1);
  }
};

// Fills, or checks where there is a place for the damage: one kernel, for its time to compile.
extern "C" __global__ void __launch_bounds__(kThreads) solstice_content(const ContentParameters p) {
  const bool is_check = p.damage != 0;
  const int64_t lead = static_cast<int64_t>(p.address & 15);
  const int64_t chunks = (lead + p.bytes + 15) / 16;
  DamageCount damage;
  for (int64_t i = GlobalThread(); i < chunks; i += AllThreads()) {
    // Aligned: the first chunk may begin before the region, the last one pass its end.
    const int64_t offset = 16 * i - lead;
    const uint64_t address = p.address + static_cast<uint64_t>(offset);
    const int first = offset < 0 ? static_cast<int>(-offset) : 0;
    const int end = p.bytes - offset < 16 ? static_cast<int>(p.bytes - offset) : 16;
    const bool is_whole = first == 0 && end == 16;
    Chunk chunk = ContentAt(p, offset);
    if (!is_check) {
      if (is_whole) {
        StoreWhole(address, chunk);
      } else {
        StorePart(address, chunk, first, end);
      }
      continue;
    }
    const Chunk found = is_whole ? LoadWhole(address) : LoadPart(address, first, end);
    uint32_t any = 0;
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      chunk.word[w] ^= found.word[w];
      any |= chunk.word[w];
    }
    if (any == 0) continue;
#pragma unroll 1
    for (int at = first; at < end; ++at)
      damage.Add(WordOf(chunk, at / 4) >> (at % 4 * 8) & 0xffu, offset + at, p.bytes);
  }
  if (damage.bytes == 0) return;
  DamageResult* result = reinterpret_cast<DamageResult*>(p.damage);
  AddTo(&result->bytes, damage.bytes);
  RaiseTo(&result->from_end, damage.from_end);
  RaiseTo(&result->end, damage.end);
}

// A warp takes tiles of consecutive chunks, lane by lane. A chunk's shifted key words are drawn a step after its own,
// for the chunk that follows; its bytes have arrived by then.
extern "C" __global__ void __launch_bounds__(kThreads) solstice_fingerprint(const FingerprintParameters p) {
  constexpr int kSteps = 8;
  static_assert(kFingerprintShift == 32, "a step of a warp");
  const int64_t chunks = (p.bytes + 15) / 16;
  const int64_t tiles = (chunks + 32 * kSteps - 1) / (32 * kSteps);
  FingerprintSums sums;
  for (int64_t tile = GlobalThread() / 32; tile < tiles; tile += AllThreads() / 32) {
    int64_t chunk = tile * 32 * kSteps + threadIdx.x % 32;
    Chunk key = {}, found = {};
    bool is_chunk = false;
#pragma unroll 1
    for (int step = 0; step <= kSteps; ++step, chunk += 32) {
      Chunk coming = {};
      const bool comes = step < kSteps && chunk < chunks;
      if (comes) coming = Load(p.address + 16 * static_cast<uint64_t>(chunk), p.bytes - 16 * chunk);
      const Chunk next = Draw(p.key, kFingerprintStream, static_cast<uint64_t>(chunk));
      if (is_chunk) sums.Add(found.word, key.word, next.word);
      key = next;
      found = coming;
      is_chunk = comes;
    }
  }
  FingerprintResult* result = reinterpret_cast<FingerprintResult*>(p.result);
  const uint64_t first = BlockReduce(sums.sum[0], true), second = BlockReduce(sums.sum[1], true);
  if (threadIdx.x != 0) return;
  AddTo(&result->sum[0], first);
  AddTo(&result->sum[1], second);
}

}  // namespace solstice::bulk
