// Inputs of every distribution: what runtime/generate makes, bit for bit.
#pragma once

#include "runtime/bulk/kernels/memory.cuh"
#include "runtime/core/float_formats.h"
#include "runtime/generate/element.h"

namespace solstice::bulk {

using generate::Distribution;

constexpr int kGroup = 8;  // values that a thread makes at a time

// The first value becomes the last: a loop over registers that needs no index.
inline void Rotate(float* values) {
  const float first = values[0];
#pragma unroll
  for (int i = 0; i + 1 < kGroup; ++i) values[i] = values[i + 1];
  values[kGroup - 1] = first;
}

// ---- float32 and narrower ----------------------------------------------------------------------------------------

// The device's conversions are core's for all that is not NaN, which no generator makes.
inline uint32_t TwoHalves(float low, float high) {
  uint32_t both;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}
inline uint32_t TwoBfloats(float low, float high) {
  uint32_t both;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(high), "f"(low));
  return both;
}

__noinline__ uint32_t NarrowCode(DataType dtype, float value) {
  if (dtype == DataType::kFloat8E4m3) return core::FloatToE4m3(value);
  if (dtype == DataType::kFloat8E5m2) return core::FloatToE5m2(value);
  return core::FloatToE2m1(value);
}

// Stores `count` of the group, which begins at value `first`.
inline void StoreGroup(const InputParameters& p, float* values, int64_t first, int count) {
  Chunk low = {}, high = {};
  int bytes;  // of a whole group
  if (p.dtype == DataType::kFloat32) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      low.word[i] = __builtin_bit_cast(uint32_t, values[i]);
      high.word[i] = __builtin_bit_cast(uint32_t, values[i + 4]);
    }
    bytes = 32;
  } else if (p.dtype == DataType::kBfloat16) {
#pragma unroll
    for (int i = 0; i < 4; ++i) low.word[i] = TwoBfloats(values[2 * i], values[2 * i + 1]);
    bytes = 16;
  } else if (p.dtype == DataType::kFloat16) {
#pragma unroll
    for (int i = 0; i < 4; ++i) low.word[i] = TwoHalves(values[2 * i], values[2 * i + 1]);
    bytes = 16;
  } else {
    const int bits = p.dtype == DataType::kFloat4E2m1 ? 4 : 8;
    uint64_t codes = 0;
#pragma unroll 1
    for (int i = 0; i < kGroup; ++i) {
      codes |= static_cast<uint64_t>(NarrowCode(p.dtype, values[0])) << (bits * i);
      Rotate(values);
    }
    low.word[0] = static_cast<uint32_t>(codes);
    low.word[1] = static_cast<uint32_t>(codes >> 32);
    bytes = bits;
  }
  const uint64_t address = p.address + static_cast<uint64_t>(first / kGroup * bytes);
  const int part = count * bytes / kGroup;
#pragma unroll 1
  for (int done = 0; done < part; done += 16) {
    Store(address + done, low, part - done < 16 ? part - done : 16);
    low = high;
  }
}

// The group's place in the values that a warp makes together.
inline int PlaceOf(int i) { return 32 * i + static_cast<int>(threadIdx.x % 32); }

struct WarpValues {
  float made[32 * kGroup];
  // Elements in the tails: their words and places.
  uint32_t words[32 * kGroup];
  uint8_t places[32 * kGroup];
};

// Elements 4 half .. 4 half + 3 of each lane's group. Those in the tails are gathered: they cost more than all others,
// and where each lane made its own, a warp would make them for nearly every element. The warp must be whole.
inline void NormalHalf(const Chunk& drawn, int half, WarpValues* values, int* tails) {
  const uint32_t below = (1u << (threadIdx.x % 32)) - 1;
#pragma unroll 2
  for (int i = 0; i < 4; ++i) {
    const uint32_t word = WordOf(drawn, static_cast<uint64_t>(i));
    const bool in_tail = generate::InTail(word);
    const uint32_t all = __ballot_sync(0xffffffffu, in_tail);
    if (in_tail) {
      const int at = *tails + __popc(all & below);
      values->words[at] = word;
      values->places[at] = static_cast<uint8_t>(PlaceOf(4 * half + i));
    }
    *tails += __popc(all);
    values->made[PlaceOf(4 * half + i)] = generate::CentralNormal(word);
  }
}

// What is made from one normal an element.
extern "C" __global__ void __launch_bounds__(kThreads) solstice_normals(const InputParameters p) {
  __shared__ WarpValues shared[kThreads / 32];
  WarpValues* made = &shared[threadIdx.x / 32];
  const Distribution distribution = static_cast<Distribution>(p.distribution);
  const bool is_plain = distribution == Distribution::kNormal || distribution == Distribution::kPackedNormal;
  const int64_t groups = (p.values + kGroup - 1) / kGroup;
  // Warps stay whole: lanes behind the end make values that nobody stores.
  for (int64_t group = GlobalThread(); group - threadIdx.x % 32 < groups; group += AllThreads()) {
    int tails = 0;
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      NormalHalf(Draw(p.seed, p.stream, 2 * static_cast<uint64_t>(group) + half), half, made, &tails);
    }
    __syncwarp();
#pragma unroll 1
    for (int i = PlaceOf(0); i < tails; i += 32) made->made[made->places[i]] = generate::OuterNormal(made->words[i]);
    __syncwarp();
    if (!is_plain) {
#pragma unroll 1
      for (int i = 0; i < kGroup; ++i) {
        float* value = &made->made[PlaceOf(i)];
        *value = generate::FromNormal(distribution, static_cast<float>(p.scale), *value);
      }
    }
    float values[kGroup];
#pragma unroll
    for (int i = 0; i < kGroup; ++i) values[i] = made->made[PlaceOf(i)];
    const int64_t left = p.values - kGroup * group;
    if (left > 0) StoreGroup(p, values, kGroup * group, left < kGroup ? static_cast<int>(left) : kGroup);
    __syncwarp();  // read, before the next group is made
  }
}

// The low `bytes` bytes of `bits`.
__noinline__ void StoreElement(uint64_t address, uint64_t bits, int bytes) {
  if (bytes == 1 || (address & (bytes - 1)) != 0) {
#pragma unroll 1
    for (int i = 0; i < bytes; ++i) reinterpret_cast<uint8_t*>(address)[i] = static_cast<uint8_t>(bits >> (8 * i));
  } else if (bytes == 2) {
    *reinterpret_cast<uint16_t*>(address) = static_cast<uint16_t>(bits);
  } else if (bytes == 4) {
    *reinterpret_cast<uint32_t*>(address) = static_cast<uint32_t>(bits);
  } else {
    *reinterpret_cast<uint64_t*>(address) = bits;
  }
}

// ---- Softmax rows ------------------------------------------------------------------------------------------------

// e^n of value `at`, rounded as the host does.
inline double SoftmaxTerm(const InputParameters& p, int64_t at) {
  const bool is_double = p.dtype == DataType::kFloat64;
  const uint64_t word = is_double ? 2 * static_cast<uint64_t>(at) : static_cast<uint64_t>(at);
  const Chunk drawn = DrawCalled(p.seed, p.stream, word / 4);
  const uint32_t first = WordOf(drawn, word);
  double n;
  if (is_double) {
    n = generate::NormalFromWords(first, WordOf(drawn, word + 1));
  } else {
    n = generate::InTail(first) ? generate::OuterNormal(first) : generate::CentralNormal(first);
  }
  const double term = generate::Exp(n);
  return is_double ? term : static_cast<double>(static_cast<float>(term));
}

inline void StoreSoftmax(const InputParameters& p, int64_t at, double value) {
  const uint64_t i = static_cast<uint64_t>(at);
  if (p.dtype == DataType::kFloat64) {
    return StoreElement(p.address + 8 * i, __builtin_bit_cast(uint64_t, value), 8);
  }
  const float narrow = static_cast<float>(value);
  if (p.dtype == DataType::kFloat32) {
    return StoreElement(p.address + 4 * i, __builtin_bit_cast(uint32_t, narrow), 4);
  }
  const uint16_t bits = p.dtype == DataType::kFloat16 ? core::FloatToHalf(narrow) : core::FloatToBfloat16(narrow);
  StoreElement(p.address + 2 * i, bits, 2);
}

// A warp makes a row. Every lane adds all terms in the host's order; the terms are made again for the division, which
// is cheaper than memory for them.
extern "C" __global__ void __launch_bounds__(kThreads) solstice_softmax(const InputParameters p) {
  const int64_t lane = threadIdx.x % 32, length = p.last_dimension, rows = p.values / length;
  for (int64_t row = GlobalThread() / 32; row < rows; row += AllThreads() / 32) {
    double sum = 0;
#pragma unroll 1
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t first = 0; first < length; first += 32) {
        const bool inside = first + lane < length;
        const double term = inside ? SoftmaxTerm(p, row * length + first + lane) : 0.0;
        if (pass == 0) {
#pragma unroll 4
          for (int other = 0; other < 32; ++other) sum += __shfl_sync(0xffffffffu, term, other);  // + 0.0: no change
        } else if (inside) {
          StoreSoftmax(p, row * length + first + lane, term / sum);
        }
      }
    }
  }
}

// ---- One element at a time: masks, integers, truth values, float64 ------------------------------------------------

inline uint64_t ElementBits(const InputParameters& p, Distribution distribution, int64_t i, const Chunk& drawn,
                            uint64_t word) {
  const uint32_t first = WordOf(drawn, word);
  switch (distribution) {
    case Distribution::kCoin:
      return first >> (i % 32) & 1;
    case Distribution::kSmallInteger:
      return static_cast<uint64_t>(static_cast<int64_t>(generate::SmallIntegerFromWord(first)));
    case Distribution::kBinaryMask:
      return generate::BinaryFromWord(first) != 0 ? p.one : 0;
    case Distribution::kCausalMask: {
      const int64_t column = i % p.last_dimension, row = i / p.last_dimension % p.last_dimension;
      return generate::IsMasked(column, row, p.perturbed != 0 && generate::IsHole(first)) ? p.lowest : 0;
    }
    default: {
      const double n = generate::NormalFromWords(first, WordOf(drawn, word + 1));
      return __builtin_bit_cast(uint64_t, generate::FromNormal(distribution, p.scale, n));
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) solstice_elements(const InputParameters p) {
  const Distribution distribution = static_cast<Distribution>(p.distribution);
  const bool is_coin = distribution == Distribution::kCoin;
  const bool is_word = distribution == Distribution::kSmallInteger || distribution == Distribution::kBinaryMask ||
                       distribution == Distribution::kCausalMask;
  uint64_t heads = 0;
  for (int64_t i = GlobalThread(); i < p.values; i += AllThreads()) {
    const uint64_t at = static_cast<uint64_t>(i);
    const uint64_t word = is_coin ? at / 32 : is_word ? at : 2 * at;
    const Chunk drawn =
        DrawCalled(p.seed, distribution == Distribution::kCausalMask ? p.hole_stream : p.stream, word / 4);
    const uint64_t bits = ElementBits(p, distribution, i, drawn, word);
    if (is_coin) heads += bits;
    StoreElement(p.address + at * static_cast<uint64_t>(p.element_bytes), bits, p.element_bytes);
  }
  if (!is_coin) return;
  const uint64_t sum = BlockReduce(heads, true);
  if (threadIdx.x == 0) AddTo(&reinterpret_cast<CoinResult*>(p.result)->heads, sum);
}

// After coins of solstice_elements: a tensor of one value only would hide a kernel that ignores it.
extern "C" __global__ void solstice_mend_coins(const InputParameters p) {
  const uint64_t heads = reinterpret_cast<const CoinResult*>(p.result)->heads;
  if (p.values > 1 && (heads == 0 || heads == static_cast<uint64_t>(p.values))) {
    *reinterpret_cast<uint8_t*>(p.address) ^= 1;
  }
}

}  // namespace solstice::bulk
