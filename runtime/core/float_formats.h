// Narrow floating point to and from float32 and float64, bit-exact on every host (no hardware conversion instructions),
// rounding to nearest even. Subnormals are kept. NaN payloads and signs are not: every NaN becomes 0x7fff (0x7f in
// eight bits), as CUDA's conversions give.
//   float16 (IEEE binary16), bfloat16, float8_e4m3fn (no infinity; NaN 0x7f/0xff; largest 448),
//   float8_e5m2 (infinity 0x7c; largest 57344), float4_e2m1fn (0 0.5 1 1.5 2 3 4 6; no NaN).
// Pure functions, thread-safe; inline because comparator, generator and emulator call them for every element. Device
// code includes this text too (runtime/bulk): nothing of the standard library but <cstdint>.
#pragma once

#include <cstdint>

namespace solstice::core {

namespace internal {

struct Float32Source {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
};
struct Float64Source {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
};

// The code, without sign and with an exponent that knows no end, of a non-NaN magnitude in a format with `kMantissa`
// fraction bits: rounded once to nearest even. Codes of a format are ordered as its values, so callers find overflow by
// comparing with their largest code, and a carry out of the fraction lands in the exponent by itself.
template <typename Source, int kMantissa, int kBias>
inline uint32_t RoundMagnitude(typename Source::Bits magnitude) {
  using Bits = typename Source::Bits;
  constexpr int kShift = Source::kMantissa - kMantissa;
  constexpr int kSmallestNormal = Source::kBias + 1 - kBias;  // as a biased exponent of the source
  const int exponent = static_cast<int>(magnitude >> Source::kMantissa);
  // Equal exponent ranges (float32 to bfloat16) share the spacing of subnormals as well.
  if (kBias == Source::kBias || exponent >= kSmallestNormal) {
    const Bits odd = (magnitude >> kShift) & 1;
    const Bits rounded = (magnitude + ((Bits{1} << (kShift - 1)) - 1) + odd) >> kShift;
    return static_cast<uint32_t>(rounded - (static_cast<Bits>(Source::kBias - kBias) << kMantissa));
  }
  const int shift = kShift + kSmallestNormal - exponent;
  if (shift > Source::kMantissa + 2) return 0;  // below a quarter of the smallest subnormal, source subnormals included
  const Bits significand = (magnitude & ((Bits{1} << Source::kMantissa) - 1)) | (Bits{1} << Source::kMantissa);
  const Bits odd = (significand >> shift) & 1;
  return static_cast<uint32_t>((significand + ((Bits{1} << (shift - 1)) - 1) + odd) >> shift);
}

// Codes above `kLargest` become `kOverflow`; NaN becomes `kNan`, without sign.
template <typename Source, int kBits, int kMantissa, int kBias, uint32_t kLargest, uint32_t kOverflow, uint32_t kNan>
inline uint32_t Encode(typename Source::Bits bits) {
  using Bits = typename Source::Bits;
  constexpr int kSourceBits = static_cast<int>(8 * sizeof(Bits));
  constexpr Bits kSign = Bits{1} << (kSourceBits - 1);
  constexpr Bits kInfinity = ((Bits{1} << (kSourceBits - 1 - Source::kMantissa)) - 1) << Source::kMantissa;
  const Bits magnitude = bits & ~kSign;
  if (magnitude > kInfinity) return kNan;
  uint32_t code = RoundMagnitude<Source, kMantissa, kBias>(magnitude);
  if (code > kLargest) code = kOverflow;
  return code | (static_cast<uint32_t>(bits >> (kSourceBits - 1)) << (kBits - 1));
}

}  // namespace internal

inline float HalfToFloat(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000u) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1fu, mantissa = bits & 0x3ffu;
  uint32_t magnitude;
  if (exponent == 0x1f) {
    magnitude = 0x7f800000u | (mantissa << 13);
  } else if (exponent != 0) {
    magnitude = ((exponent + (127 - 15)) << 23) | (mantissa << 13);
  } else {
    magnitude = __builtin_bit_cast(uint32_t, static_cast<float>(mantissa) * 0x1p-24f);  // exact, and normal unless zero
  }
  return __builtin_bit_cast(float, sign | magnitude);
}

// Overflow gives infinity.
inline uint16_t FloatToHalf(float value) {
  return static_cast<uint16_t>(internal::Encode<internal::Float32Source, 16, 10, 15, 0x7c00, 0x7c00, 0x7fff>(
      __builtin_bit_cast(uint32_t, value)));
}

// One rounding: not the same as by way of float.
inline uint16_t DoubleToHalf(double value) {
  return static_cast<uint16_t>(internal::Encode<internal::Float64Source, 16, 10, 15, 0x7c00, 0x7c00, 0x7fff>(
      __builtin_bit_cast(uint64_t, value)));
}

inline float Bfloat16ToFloat(uint16_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16); }

// Overflow gives infinity.
inline uint16_t FloatToBfloat16(float value) {
  return static_cast<uint16_t>(internal::Encode<internal::Float32Source, 16, 7, 127, 0x7f80, 0x7f80, 0x7fff>(
      __builtin_bit_cast(uint32_t, value)));
}

// One rounding: not the same as by way of float.
inline uint16_t DoubleToBfloat16(double value) {
  return static_cast<uint16_t>(internal::Encode<internal::Float64Source, 16, 7, 127, 0x7f80, 0x7f80, 0x7fff>(
      __builtin_bit_cast(uint64_t, value)));
}

inline float E4m3ToFloat(uint8_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x80u) << 24;
  const uint32_t exponent = (bits >> 3) & 0xfu, mantissa = bits & 0x7u;
  uint32_t magnitude;
  if ((bits & 0x7fu) == 0x7fu) {
    magnitude = 0x7fc00000u;
  } else if (exponent != 0) {
    magnitude = ((exponent + (127 - 7)) << 23) | (mantissa << 20);
  } else {
    magnitude = __builtin_bit_cast(uint32_t, static_cast<float>(mantissa) * 0x1p-9f);
  }
  return __builtin_bit_cast(float, sign | magnitude);
}

// Saturates finite values and infinities to +-448 (CUDA's satfinite).
inline uint8_t FloatToE4m3(float value) {
  return static_cast<uint8_t>(
      internal::Encode<internal::Float32Source, 8, 3, 7, 0x7e, 0x7e, 0x7f>(__builtin_bit_cast(uint32_t, value)));
}

inline float E5m2ToFloat(uint8_t bits) { return HalfToFloat(static_cast<uint16_t>(bits << 8)); }

// Saturates finite values and infinities to +-57344 (satfinite).
inline uint8_t FloatToE5m2(float value) {
  return static_cast<uint8_t>(
      internal::Encode<internal::Float32Source, 8, 2, 15, 0x7b, 0x7b, 0x7f>(__builtin_bit_cast(uint32_t, value)));
}

// The low 4 bits of `nibble`.
inline float E2m1ToFloat(uint8_t nibble) {
  constexpr float kValues[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                                 -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};
  return kValues[nibble & 0xf];
}

// Saturates to +-6; NaN gives +6.
inline uint8_t FloatToE2m1(float value) {
  return static_cast<uint8_t>(
      internal::Encode<internal::Float32Source, 4, 1, 1, 0x7, 0x7, 0x7>(__builtin_bit_cast(uint32_t, value)));
}

}  // namespace solstice::core
