// One generated element from its random words. Host and device compile this same text (runtime/bulk), in basic
// arithmetic alone, so that both make the same bits. Pure functions.
#pragma once

#include <cstdint>

#include "runtime/generate/arithmetic.h"
#include "runtime/generate/distribution.h"

namespace solstice::generate {

// Normals from one word. Bit 0 is the sign, the other 31 bits k place the magnitude: tail probability
// p = (k + 1/2) / 2^32. The distance to the middle, 1/2 - p, is computed from 2^31 - 1 - k, so that neither end loses
// digits. A word is central or in the tail; the host computes both for every element, for its vector units.

inline float TailProbability(uint32_t word) {
  return (static_cast<float>(static_cast<int32_t>(word >> 1)) + 0.5f) * 0x1p-32f;
}
inline bool InTail(uint32_t word) { return TailProbability(word) < 0.075f; }  // 0.5 - 0.425, where NormalCentre ends

inline float WithSign(float magnitude, uint32_t word) {
  return __builtin_bit_cast(float, __builtin_bit_cast(uint32_t, magnitude) ^ (word << 31));
}
inline float CentralNormal(uint32_t word) {
  const int32_t from_middle = static_cast<int32_t>(0x7fffffffu - (word >> 1));
  return WithSign(NormalCentre((static_cast<float>(from_middle) + 0.5f) * 0x1p-32f), word);
}
SOLSTICE_OUTLINE float OuterNormal(uint32_t word) { return WithSign(NormalTail(TailProbability(word)), word); }

// The same with 62 bits of two words: bit 0 of the first is the sign.
SOLSTICE_OUTLINE double NormalFromWords(uint32_t low, uint32_t high) {
  const int64_t k = static_cast<int64_t>((static_cast<uint64_t>(high) << 32 | low) >> 2);
  const double p = (static_cast<double>(k) + 0.5) * 0x1p-63;
  const double magnitude =
      p < 0.075 ? NormalTail(p) : NormalCentre((static_cast<double>((int64_t{1} << 62) - 1 - k) + 0.5) * 0x1p-63);
  return (low & 1) != 0 ? -magnitude : magnitude;
}

template <typename T>
inline T Clamp(T n, T limit) {
  return n < -limit ? -limit : n > limit ? limit : n;
}

// What a weight matrix's normals are multiplied by.
template <typename T>
inline T WeightScale(int64_t last_dimension) {
  return T(1) / SquareRoot(static_cast<T>(last_dimension));
}

// The element of a distribution that is made from one normal `n`; the others give n. `scale`: WeightScale.
template <typename T>
inline T FromNormal(Distribution distribution, T scale, T n) {
  switch (distribution) {
    case Distribution::kNormWeight:
      return T(1) + T(0.1) * n;
    case Distribution::kNormBias:
      return T(0) + T(0.1) * n;
    case Distribution::kCosine:
      return static_cast<T>(Cos(Clamp(n, T(3))));
    case Distribution::kSine:
      return static_cast<T>(Sin(Clamp(n, T(3))));
    case Distribution::kSpread:
      return (n < T(0) ? -n : n) + T(0.1);
    case Distribution::kDecay:
      return n < T(0) ? n : -n;
    case Distribution::kWeightMatrix:
      return n * scale;
    case Distribution::kClampedNormal:
      return Clamp(n, T(2));
    default:
      return n;
  }
}

// Whether a word makes a hole in a perturbed causal mask: a quarter of them do.
inline bool IsHole(uint32_t word) { return word < 0x40000000u; }
// A masked position of a causal mask; `hole` in perturbed ones only.
inline bool IsMasked(int64_t column, int64_t row, bool hole) { return column > row || (hole && column != row); }

inline int32_t BinaryFromWord(uint32_t word) { return static_cast<int32_t>(word >> 31); }
inline int32_t SmallIntegerFromWord(uint32_t word) { return static_cast<int32_t>(word >> 21) - 1024; }

}  // namespace solstice::generate
