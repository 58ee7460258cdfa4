// How one element is compared. Host and device compile this same text (runtime/bulk). Pure functions.
#pragma once

#include <cstdint>
#ifndef __CUDACC_RTC__
#include <cmath>
#endif

namespace solstice::verify {

inline constexpr double kInfinity = __builtin_bit_cast(double, 0x7ff0000000000000ull);
inline constexpr double kSmallestDenominator = 1e-8;

// How one element is judged.
struct ElementRule {
  double atol = 0, rtol = 0;
  bool allow_negative_inf = false;
};

inline double Difference(double a, double b) { return fabs(a - b); }
// Exact where a double can be: int64 values that differ by 1 differ, however large.
inline double Difference(int64_t a, int64_t b) {
  const uint64_t distance =
      a > b ? static_cast<uint64_t>(a) - static_cast<uint64_t>(b) : static_cast<uint64_t>(b) - static_cast<uint64_t>(a);
  return static_cast<double>(distance);
}

inline bool Finite(double value) { return fabs(value) < kInfinity; }
inline bool Finite(int64_t) { return true; }

// Whether a reference may have this value.
inline bool IsValidExpected(const ElementRule& rule, double expected) {
  return Finite(expected) || (expected == -kInfinity && rule.allow_negative_inf);
}

// Of finite values; `size` is |expected|.
inline bool Matches(const ElementRule& rule, double error, double size) {
  return error <= rule.atol + rule.rtol * size;
}
inline double Denominator(double size) { return size < kSmallestDenominator ? kSmallestDenominator : size; }

}  // namespace solstice::verify
