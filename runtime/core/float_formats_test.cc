#include "runtime/core/float_formats.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "runtime/core/philox.h"

namespace solstice::core {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// An independent, slow description of a format: every non-negative finite value by the textbook formula, and rounding
// by comparing with midpoints, which double holds exactly.
struct SlowFormat {
  int exponent_bits, mantissa_bits, bias;
  uint32_t largest;            // code of the largest finite value
  bool saturate;               // else overflow gives code largest + 1, infinity
  std::vector<double> values;  // by code; one more than the finite ones, for the overflow midpoint

  SlowFormat(int exponent_bits, int mantissa_bits, int bias, uint32_t largest, bool saturate)
      : exponent_bits(exponent_bits), mantissa_bits(mantissa_bits), bias(bias), largest(largest), saturate(saturate) {
    for (uint32_t code = 0; code <= largest + 1; ++code) values.push_back(Value(code));
  }

  double Value(uint32_t code) const {
    const uint32_t exponent = code >> mantissa_bits;
    const double fraction = std::ldexp(static_cast<double>(code & ((1u << mantissa_bits) - 1)), -mantissa_bits);
    if (exponent == 0) return std::ldexp(fraction, 1 - bias);
    return std::ldexp(1.0 + fraction, static_cast<int>(exponent) - bias);
  }

  uint32_t Encode(double value) const {
    const uint32_t sign = std::signbit(value) ? 1u << (exponent_bits + mantissa_bits) : 0;
    const double magnitude = std::fabs(value);
    uint32_t low = 0, high = largest + 1;
    while (low + 1 < high) {  // the largest code whose value is at most the magnitude
      const uint32_t middle = (low + high) / 2;
      (values[middle] <= magnitude ? low : high) = middle;
    }
    const double midpoint = (values[low] + values[low + 1]) / 2;
    uint32_t code = low;
    if (magnitude > midpoint || (magnitude == midpoint && (low & 1) == 1)) code = low + 1;
    if (code > largest) code = saturate ? largest : largest + 1;
    return sign | code;
  }
};

const SlowFormat& SlowHalf() {
  static const SlowFormat format(5, 10, 15, 0x7bff, false);
  return format;
}
const SlowFormat& SlowBfloat16() {
  static const SlowFormat format(8, 7, 127, 0x7f7f, false);
  return format;
}
const SlowFormat& SlowE4m3() {
  static const SlowFormat format(4, 3, 7, 0x7e, true);
  return format;
}
const SlowFormat& SlowE5m2() {
  static const SlowFormat format(5, 2, 15, 0x7b, true);
  return format;
}
const SlowFormat& SlowE2m1() {
  static const SlowFormat format(2, 1, 1, 0x7, true);
  return format;
}

float NextUp(float value) { return std::nextafterf(value, std::numeric_limits<float>::infinity()); }
float NextDown(float value) { return std::nextafterf(value, -std::numeric_limits<float>::infinity()); }

// Every code's value, every midpoint, their neighbours in float, both signs, and random bit patterns of all magnitudes.
template <typename Encoder>
void CheckEncoder(const SlowFormat& slow, Encoder encode) {
  auto check = [&](float value) {
    ASSERT_EQ(encode(value), slow.Encode(value)) << std::hexfloat << value;
    ASSERT_EQ(encode(-value), slow.Encode(-value)) << std::hexfloat << -value;
  };
  for (uint32_t code = 0; code <= slow.largest; ++code) {
    const float value = static_cast<float>(slow.values[code]);
    const float middle = static_cast<float>((slow.values[code] + slow.values[code + 1]) / 2);
    for (float x : {value, middle}) {
      if (!std::isfinite(x)) continue;
      check(x);
      if (std::isfinite(NextUp(x))) check(NextUp(x));
      check(NextDown(x));
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  for (uint64_t i = 0; i < 250000; ++i) {
    for (uint32_t word : Philox4x32(1, 2, i)) {
      const float value = std::bit_cast<float>(word);
      if (std::isfinite(value)) check(value);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
  check(0.0f);
  check(std::numeric_limits<float>::denorm_min());
  check(std::numeric_limits<float>::max());
  check(std::numeric_limits<float>::infinity());
}

TEST(FloatFormatsTest, HalfMatchesSlowReference) {
  CheckEncoder(SlowHalf(), [](float value) { return FloatToHalf(value); });
}
TEST(FloatFormatsTest, HalfFromDoubleMatchesSlowReference) {
  CheckEncoder(SlowHalf(), [](float value) { return DoubleToHalf(value); });
}
TEST(FloatFormatsTest, Bfloat16MatchesSlowReference) {
  CheckEncoder(SlowBfloat16(), [](float value) { return FloatToBfloat16(value); });
}
TEST(FloatFormatsTest, Bfloat16FromDoubleMatchesSlowReference) {
  CheckEncoder(SlowBfloat16(), [](float value) { return DoubleToBfloat16(value); });
}
TEST(FloatFormatsTest, E4m3MatchesSlowReference) {
  CheckEncoder(SlowE4m3(), [](float value) { return FloatToE4m3(value); });
}
TEST(FloatFormatsTest, E5m2MatchesSlowReference) {
  CheckEncoder(SlowE5m2(), [](float value) { return FloatToE5m2(value); });
}
TEST(FloatFormatsTest, E2m1MatchesSlowReference) {
  CheckEncoder(SlowE2m1(), [](float value) { return FloatToE2m1(value); });
}

// Doubles that no float holds: midpoints moved by one unit in the last place of a double.
TEST(FloatFormatsTest, DoublesAreRoundedOnce) {
  auto check = [](double value) {
    ASSERT_EQ(DoubleToHalf(value), SlowHalf().Encode(value)) << std::hexfloat << value;
    ASSERT_EQ(DoubleToBfloat16(value), SlowBfloat16().Encode(value)) << std::hexfloat << value;
  };
  for (const SlowFormat* format : {&SlowHalf(), &SlowBfloat16()}) {
    for (uint32_t code = 0; code <= format->largest; ++code) {
      const double middle = (format->values[code] + format->values[code + 1]) / 2;
      for (double value : {middle, std::nextafter(middle, kInf), std::nextafter(middle, -kInf)}) {
        check(value);
        check(-value);
      }
      if (HasFatalFailure()) return;
    }
  }
  for (uint64_t i = 0; i < 200000; ++i) {
    const auto words = Philox4x32(3, 4, i);
    const double value = std::bit_cast<double>(static_cast<uint64_t>(words[0]) << 32 | words[1]);
    if (std::isfinite(value)) check(value);
    if (HasFatalFailure()) return;
  }
}

TEST(FloatFormatsTest, DoubleRoundingWouldDiffer) {
  // Just above the midpoint of 1 and the next half; rounding to float first lands on the midpoint and then goes to
  // even.
  const double value = 1.0 + 0x1p-11 + 0x1p-40;
  EXPECT_EQ(DoubleToHalf(value), 0x3c01);
  EXPECT_EQ(FloatToHalf(static_cast<float>(value)), 0x3c00);
  const double wide = 1.0 + 0x1p-8 + 0x1p-40;
  EXPECT_EQ(DoubleToBfloat16(wide), 0x3f81);
  EXPECT_EQ(FloatToBfloat16(static_cast<float>(wide)), 0x3f80);
  // Subnormal halves too.
  const double tiny = 0x1p-25 + 0x1p-60;
  EXPECT_EQ(DoubleToHalf(tiny), 0x0001);
  EXPECT_EQ(FloatToHalf(static_cast<float>(tiny)), 0x0000);
}

TEST(FloatFormatsTest, EveryHalfRoundTrips) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = HalfToFloat(static_cast<uint16_t>(bits));
    const uint32_t magnitude = bits & 0x7fff;
    if (magnitude > 0x7c00) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(FloatToHalf(value), 0x7fff);
      continue;
    }
    const double expected = magnitude == 0x7c00 ? kInf : SlowHalf().Value(magnitude);
    ASSERT_EQ(std::fabs(static_cast<double>(value)), expected) << bits;
    ASSERT_EQ(std::signbit(value), bits >= 0x8000) << bits;
    ASSERT_EQ(FloatToHalf(value), bits);
    ASSERT_EQ(DoubleToHalf(value), bits);
  }
}

TEST(FloatFormatsTest, EveryBfloat16RoundTrips) {
  for (uint32_t bits = 0; bits <= 0xffff; ++bits) {
    const float value = Bfloat16ToFloat(static_cast<uint16_t>(bits));
    const uint32_t magnitude = bits & 0x7fff;
    if (magnitude > 0x7f80) {
      ASSERT_TRUE(std::isnan(value)) << bits;
      ASSERT_EQ(FloatToBfloat16(value), 0x7fff);
      continue;
    }
    const double expected = magnitude == 0x7f80 ? kInf : SlowBfloat16().Value(magnitude);
    ASSERT_EQ(std::fabs(static_cast<double>(value)), expected) << bits;
    ASSERT_EQ(std::signbit(value), bits >= 0x8000) << bits;
    ASSERT_EQ(FloatToBfloat16(value), bits);
    ASSERT_EQ(DoubleToBfloat16(value), bits);
  }
}

TEST(FloatFormatsTest, EveryE4m3Code) {
  for (uint32_t bits = 0; bits <= 0xff; ++bits) {
    const float value = E4m3ToFloat(static_cast<uint8_t>(bits));
    const uint32_t magnitude = bits & 0x7f;
    if (magnitude == 0x7f) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_EQ(FloatToE4m3(value), 0x7f);
      continue;
    }
    EXPECT_EQ(std::fabs(static_cast<double>(value)), SlowE4m3().Value(magnitude)) << bits;
    EXPECT_EQ(std::signbit(value), bits >= 0x80) << bits;
    EXPECT_EQ(FloatToE4m3(value), bits);
  }
  EXPECT_EQ(E4m3ToFloat(0x7e), 448.0f);
}

TEST(FloatFormatsTest, EveryE5m2Code) {
  for (uint32_t bits = 0; bits <= 0xff; ++bits) {
    const float value = E5m2ToFloat(static_cast<uint8_t>(bits));
    const uint32_t magnitude = bits & 0x7f;
    if (magnitude > 0x7c) {
      EXPECT_TRUE(std::isnan(value)) << bits;
      EXPECT_EQ(FloatToE5m2(value), 0x7f);
      continue;
    }
    EXPECT_EQ(std::signbit(value), bits >= 0x80) << bits;
    if (magnitude == 0x7c) {
      EXPECT_TRUE(std::isinf(value)) << bits;
      EXPECT_EQ(FloatToE5m2(value), (bits & 0x80) | 0x7b) << "infinity saturates";
      continue;
    }
    EXPECT_EQ(std::fabs(static_cast<double>(value)), SlowE5m2().Value(magnitude)) << bits;
    EXPECT_EQ(FloatToE5m2(value), bits);
  }
  EXPECT_EQ(E5m2ToFloat(0x7b), 57344.0f);
}

TEST(FloatFormatsTest, EveryE2m1Code) {
  const float values[] = {0.0f, 0.5f, 1.0f, 1.5f, 2.0f, 3.0f, 4.0f, 6.0f};
  for (uint32_t nibble = 0; nibble < 16; ++nibble) {
    const float value = E2m1ToFloat(static_cast<uint8_t>(nibble));
    EXPECT_EQ(std::fabs(value), values[nibble & 7]);
    EXPECT_EQ(std::signbit(value), nibble >= 8);
    EXPECT_EQ(FloatToE2m1(value), nibble);
    EXPECT_EQ(E2m1ToFloat(static_cast<uint8_t>(0xf0 | nibble)), value) << "the high nibble is ignored";
  }
  // Halfway between neighbours goes to the even code.
  EXPECT_EQ(FloatToE2m1(0.25f), 0x0);
  EXPECT_EQ(FloatToE2m1(0.75f), 0x2);
  EXPECT_EQ(FloatToE2m1(1.25f), 0x2);
  EXPECT_EQ(FloatToE2m1(2.5f), 0x4);
  EXPECT_EQ(FloatToE2m1(3.5f), 0x6);
  EXPECT_EQ(FloatToE2m1(5.0f), 0x6);
}

TEST(FloatFormatsTest, OverflowAndNan) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(FloatToHalf(65519.0f), 0x7bff);
  EXPECT_EQ(FloatToHalf(65520.0f), 0x7c00);
  EXPECT_EQ(FloatToHalf(-1e30f), 0xfc00);
  EXPECT_EQ(DoubleToHalf(1e300), 0x7c00);
  EXPECT_EQ(DoubleToBfloat16(-1e300), 0xff80);
  EXPECT_EQ(DoubleToBfloat16(std::numeric_limits<double>::quiet_NaN()), 0x7fff);
  EXPECT_EQ(DoubleToHalf(std::numeric_limits<double>::denorm_min()), 0x0000);
  EXPECT_EQ(DoubleToHalf(-std::numeric_limits<double>::denorm_min()), 0x8000);
  EXPECT_EQ(FloatToBfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(FloatToHalf(infinity), 0x7c00);
  EXPECT_EQ(FloatToHalf(-infinity), 0xfc00);
  EXPECT_EQ(FloatToE4m3(1e30f), 0x7e);
  EXPECT_EQ(FloatToE4m3(-infinity), 0xfe);
  EXPECT_EQ(FloatToE5m2(-1e30f), 0xfb);
  EXPECT_EQ(FloatToE2m1(infinity), 0x7);
  EXPECT_EQ(FloatToE2m1(-1e30f), 0xf);
  for (float value : {nan, -nan, std::bit_cast<float>(0x7f800001u), std::bit_cast<float>(0xffffffffu)}) {
    EXPECT_EQ(FloatToHalf(value), 0x7fff);
    EXPECT_EQ(FloatToBfloat16(value), 0x7fff);
    EXPECT_EQ(FloatToE4m3(value), 0x7f);
    EXPECT_EQ(FloatToE5m2(value), 0x7f);
    EXPECT_EQ(FloatToE2m1(value), 0x7);
  }
}

}  // namespace
}  // namespace solstice::core
