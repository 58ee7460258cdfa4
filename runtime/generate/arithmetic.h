// Elementary functions from IEEE +, -, *, / and sqrt alone, in a fixed order of operations: the same bits from every
// compiler that neither fuses nor reorders (-ffp-contract=off, -fmad=false). Arguments are those that generators
// produce; nothing here handles NaN, infinity or overflow. Host and device compile this same text (runtime/bulk).
#pragma once

#include <cstdint>
#ifndef __CUDACC_RTC__
#include <cmath>
#endif

namespace solstice::generate {

template <typename T>
struct FloatTraits;
template <>
struct FloatTraits<float> {
  using Bits = uint32_t;
  static constexpr int kMantissa = 23, kBias = 127;
};
template <>
struct FloatTraits<double> {
  using Bits = uint64_t;
  static constexpr int kMantissa = 52, kBias = 1023;
};

// For what device code calls rather than repeats: its time to compile counts.
#ifdef __CUDACC_RTC__
#define SOLSTICE_OUTLINE __noinline__
#else
#define SOLSTICE_OUTLINE inline
#endif

#ifdef __CUDACC_RTC__
inline float SquareRoot(float x) { return ::sqrtf(x); }
inline double SquareRoot(double x) { return ::sqrt(x); }
#else
inline float SquareRoot(float x) { return std::sqrt(x); }
inline double SquareRoot(double x) { return std::sqrt(x); }
#endif

// Natural logarithm of a positive normal number. With x = 2^e m, m in [sqrt(1/2), sqrt(2)), and s = (m - 1)/(m + 1):
// log x = e log 2 + 2 (s + s^3/3 + s^5/5 + ...), the series of the inverse hyperbolic tangent; |s| < 0.172, so the
// terms kept leave less than 1e-9 (the normals below are no more exact themselves).
template <typename T>
inline T Log(T x) {
  using Traits = FloatTraits<T>;
  using Bits = typename Traits::Bits;
  constexpr Bits kFraction = (Bits{1} << Traits::kMantissa) - 1;
  const Bits bits = __builtin_bit_cast(Bits, x);
  int exponent = static_cast<int>(bits >> Traits::kMantissa) - Traits::kBias;
  T m = __builtin_bit_cast(T, (bits & kFraction) | (static_cast<Bits>(Traits::kBias) << Traits::kMantissa));
  if (m > T(1.41421356)) {
    m = m * T(0.5);
    exponent += 1;
  }
  const T s = (m - T(1)) / (m + T(1));
  const T z = s * s;
  const T series = T(1) + z * (T(1.0 / 3) + z * (T(1.0 / 5) + z * (T(1.0 / 7) + z * T(1.0 / 9))));
  return static_cast<T>(exponent) * T(0.693147180559945309) + T(2) * s * series;
}

namespace internal {

// 1/0!, 1/1!, 1/2!, ...: the coefficients of the series below.
struct InverseFactorials {
  double of[28] = {};
  constexpr InverseFactorials() {
    double factorial = 1.0;  // exact up to 22!, and within an ulp beyond
    of[0] = 1.0;
    for (int n = 1; n < 28; ++n) {
      factorial *= n;
      of[n] = 1.0 / factorial;
    }
  }
};
inline constexpr InverseFactorials kInverseFactorials;

// of[first] - of[first + 2] z + of[first + 4] z^2 - ..., down from of[last].
inline double AlternatingSeries(int first, int last, double z) {
  double sum = kInverseFactorials.of[last];
  for (int n = last - 2; n >= first; n -= 2) sum = kInverseFactorials.of[n] - sum * z;
  return sum;
}

}  // namespace internal

// e^x for |x| <= 64. With x = k log 2 + r, |r| <= log(2)/2: the Taylor series of e^r to r^11 (error 1e-14), times 2^k.
SOLSTICE_OUTLINE double Exp(double x) {
  const double scaled = x * 1.44269504088896341;
  const int k = static_cast<int>(scaled + (scaled < 0 ? -0.5 : 0.5));
  const double r = x - static_cast<double>(k) * 0.693147180559945309;
  double sum = internal::kInverseFactorials.of[11];
  for (int n = 10; n >= 0; --n) sum = internal::kInverseFactorials.of[n] + sum * r;
  return sum * __builtin_bit_cast(double, static_cast<uint64_t>(k + 1023) << 52);
}

// Cosine and sine for |x| <= 3 by their Taylor series to x^26 and x^27 (error below 1e-13).
SOLSTICE_OUTLINE double Cos(double x) { return internal::AlternatingSeries(0, 26, x * x); }
SOLSTICE_OUTLINE double Sin(double x) { return x * internal::AlternatingSeries(1, 27, x * x); }

// The quantile function of the normal distribution, by the rational approximations PPND7 of M. J. Wichura, "Algorithm
// AS 241: The percentage points of the normal distribution", Applied Statistics 37 (1988), absolute error below 1e-6.
// Both take half of the distribution; the caller puts the sign.

// Within 0.425 of the middle: q = probability - 0.5 in [0, 0.425].
template <typename T>
inline T NormalCentre(T q) {
  const T r = T(0.180625) - q * q;
  const T above = ((T(59.109374720) * r + T(159.29113202)) * r + T(50.434271938)) * r + T(3.3871327179);
  const T below = ((T(67.187563600) * r + T(78.757757664)) * r + T(17.895169469)) * r + T(1);
  return q * above / below;
}

// Beyond: tail probability p in (0, 0.075].
template <typename T>
inline T NormalTail(T p) {
  T r = SquareRoot(-Log(p));
  if (r <= T(5)) {
    r = r - T(1.6);
    const T above = ((T(0.17023821103) * r + T(1.3067284816)) * r + T(2.7568153900)) * r + T(1.4234372777);
    return above / ((T(0.12021132975) * r + T(0.73700164250)) * r + T(1));
  }
  r = r - T(5);
  const T above = ((T(0.017337203997) * r + T(0.42868294337)) * r + T(3.0812263860)) * r + T(6.6579051150);
  return above / ((T(0.012258202635) * r + T(0.24197894225)) * r + T(1));
}

}  // namespace solstice::generate
