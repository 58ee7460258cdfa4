// NaN, signed zeros, subnormals and eight-bit formats against tables and definitions.
#include <cmath>
#include <limits>
#include <random>

#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using Words = std::vector<uint32_t>;
using Longs = std::vector<uint64_t>;

// Every pair of the values, as two columns.
std::pair<Longs, Longs> Pairs(const Longs& values) {
  std::pair<Longs, Longs> pairs;
  for (const uint64_t x : values) {
    for (const uint64_t y : values) {
      pairs.first.push_back(x);
      pairs.second.push_back(y);
    }
  }
  return pairs;
}

// What min and max are by definition, on codes of a format with `magnitude` bits below the sign.
uint32_t Least(uint32_t x, uint32_t y, uint32_t magnitude, uint32_t infinity, bool max, bool nan_wins) {
  const bool x_nan = (x & magnitude) > infinity, y_nan = (y & magnitude) > infinity;
  if (nan_wins ? x_nan || y_nan : x_nan && y_nan) return magnitude;
  if (x_nan) return y;
  if (y_nan) return x;
  // The order of codes: negative ones descend; -0 is below +0.
  auto order = [&](uint32_t code) {
    return code > magnitude ? -1 - static_cast<int64_t>(code & magnitude) : static_cast<int64_t>(code);
  };
  return (order(x) < order(y)) != max ? x : y;
}

TEST(Edges, MinAndMaxOfFloats) {
  const auto [a, b] = Pairs({0, 0x80000000, 1, 0x80000001, 0x007fffff, 0x00800000, 0x80800000, 0x3f800000, 0xbf800000,
                             0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000, 0x7fc00000, 0xffc00001, 0x7f800001});
  for (const bool max : {false, true}) {
    for (const bool nan : {false, true}) {
      for (const bool ftz : {false, true}) {
        const std::string name = base::StrCat(max ? "max" : "min", ftz ? ".ftz" : "", nan ? ".NaN" : "", ".f32");
        const Words got = RunLanes32(name + " %f0, %fa, %fb; mov.b32 %r1, %f0;", a, b);
        for (size_t i = 0; i < a.size(); ++i) {
          auto in = [&, ftz = ftz](uint64_t bits) {
            const uint32_t code = static_cast<uint32_t>(bits);
            return ftz && (code & 0x7f800000) == 0 ? code & 0x80000000 : code;
          };
          EXPECT_EQ(got[i], Least(in(a[i]), in(b[i]), 0x7fffffff, 0x7f800000, max, nan))
              << name << " " << a[i] << " " << b[i];
        }
      }
    }
  }
}

TEST(Edges, MinAndMaxOfNarrowFloats) {
  const auto [a, b] = Pairs({0, 0x8000, 1, 0x8001, 0x3c00, 0xbc00, 0x3f80, 0x7bff, 0xfbff, 0x7f7f, 0x7e01, 0xff81});
  for (const auto& [type, infinity] : {std::pair<const char*, uint32_t>{"f16", 0x7c00}, {"bf16", 0x7f80}}) {
    for (const bool max : {false, true}) {
      for (const bool nan : {false, true}) {
        const std::string name = base::StrCat(max ? "max" : "min", nan ? ".NaN." : ".", type);
        const Words got = RunLanes32(name + " %h0, %ah, %bh; cvt.u32.u16 %r1, %h0;", a, b);
        for (size_t i = 0; i < a.size(); ++i) {
          EXPECT_EQ(got[i], Least(static_cast<uint32_t>(a[i]), static_cast<uint32_t>(b[i]), 0x7fff, infinity, max, nan))
              << name << " " << a[i] << " " << b[i];
        }
      }
    }
  }
}

TEST(Edges, FlushingAndSaturation) {
  const Longs subnormal = {0x00000001, 0x807fffff, 0x00400000};
  EXPECT_EQ(RunLanes32("add.ftz.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", subnormal, {0x80000000, 0x80000000, 0x00400000}),
            (Words{0, 0x80000000, 0}));
  EXPECT_EQ(RunLanes32("fma.rn.ftz.f32 %f0, %fa, %fb, %fc; mov.b32 %r1, %f0;", subnormal, Longs(3, F(1)), Longs(3, 0)),
            (Words{0, 0, 0}));
  EXPECT_EQ(RunLanes32("abs.ftz.f32 %f0, %fa; mov.b32 %r1, %f0;", subnormal), (Words{0, 0, 0}));
  EXPECT_EQ(RunLanes32("setp.eq.ftz.f32 %p1, %fa, %fb; selp.u32 %r1, 1, 0, %p1;", subnormal, Longs(3, 0)),
            (Words{1, 1, 1}));
  EXPECT_EQ(RunLanes32("setp.eq.f32 %p1, %fa, %fb; selp.u32 %r1, 1, 0, %p1;", subnormal, Longs(3, 0)),
            (Words{0, 0, 0}));
  EXPECT_EQ(RunLanes32("mul.sat.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {F(2), F(-2), 0x7fc00000, F(-0.0f), 0x7f800000},
                       {F(3), F(3), F(1), F(1), F(1)}),
            (Words{0x3f800000, 0, 0, 0, 0x3f800000}));
  EXPECT_EQ(RunLanes32("add.sat.f16 %h0, %ah, %bh; cvt.u32.u16 %r1, %h0;", {0x7e00, 0xc000, 0x4000}, {0, 0, 0}),
            (Words{0, 0, 0x3c00}));
}

struct Eight {
  const char* name;
  int mantissa, bias;
  uint32_t largest, nan;  // magnitudes
};
constexpr Eight kEights[] = {{"e4m3x2", 3, 7, 0x7e, 0x7f}, {"e5m2x2", 2, 15, 0x7b, 0x7f}};

double ValueOf(uint32_t code, const Eight& f) {
  const int exponent = static_cast<int>(code & 0x7f) >> f.mantissa;
  const int fraction = static_cast<int>(code) & ((1 << f.mantissa) - 1);
  const double value = exponent == 0 ? std::ldexp(fraction, 1 - f.bias - f.mantissa)
                                     : std::ldexp(fraction + (1 << f.mantissa), exponent - f.bias - f.mantissa);
  return code & 0x80 ? -value : value;
}

// The nearest finite code, by trying all of them; of two equally near the even one.
uint32_t NearestCode(double x, const Eight& f) {
  if (std::isnan(x)) return f.nan;
  uint32_t best = 0;
  double distance = std::numeric_limits<double>::infinity();
  for (uint32_t code = 0; code <= f.largest; ++code) {
    const double d = std::fabs(std::min(std::fabs(x), ValueOf(f.largest, f)) - ValueOf(code, f));
    if (d < distance || (d == distance && code % 2 == 0)) {
      best = code;
      distance = d;
    }
  }
  return best | (std::signbit(x) ? 0x80 : 0);
}

TEST(Edges, EightBitFloatsOfEverySize) {
  for (const Eight& f : kEights) {
    std::mt19937 random(5);
    std::vector<float> x = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e30f, 448, 464, 57344, 61440};
    for (uint32_t code = 0; code < f.largest; ++code) {
      // Every value, every tie and their neighbours.
      const float low = static_cast<float>(ValueOf(code, f)), high = static_cast<float>(ValueOf(code + 1, f));
      const float tie = (low + high) / 2;
      x.insert(x.end(), {low, -tie, std::nextafter(tie, high), std::nextafter(tie, low)});
    }
    while (x.size() < 1024) x.push_back(__builtin_bit_cast(float, static_cast<uint32_t>(random())));
    x.resize(1024);
    Longs a;
    for (const float value : x) a.push_back(F(value));
    const Words got = RunLanes32(base::StrCat("cvt.rn.satfinite.", f.name, ".f32 %h0, %fa, %fb; cvt.u32.u16 %r1, %h0;"),
                                 a, Longs(a.size()));
    for (size_t i = 0; i < x.size(); ++i) EXPECT_EQ(got[i], NearestCode(x[i], f) << 8) << f.name << " of " << x[i];
  }
}

TEST(Edges, EightBitFloatsBack) {
  for (const Eight& f : kEights) {
    Longs codes;
    for (uint32_t code = 0; code < 256; ++code) codes.push_back(code);
    const Words got =
        RunLanes32(base::StrCat("cvt.rn.f16x2.", f.name,
                                " %r2, %ah; mov.b32 {%h0, %h1}, %r2; cvt.f32.f16 %f0, %h0; mov.b32 %r1, %f0;"),
                   codes);
    for (uint32_t code = 0; code < 256; ++code) {
      const uint32_t magnitude = code & 0x7f;
      const bool infinite = f.bias == 15 && magnitude == 0x7c;
      uint32_t want = static_cast<uint32_t>(F(static_cast<float>(ValueOf(code, f))));
      if (magnitude > f.largest) want = infinite ? (code & 0x80 ? 0xff800000 : 0x7f800000) : 0x7fffffff;
      EXPECT_EQ(got[code], want) << f.name << " " << code;
    }
  }
}

TEST(Edges, DoubleNanOperandComesOutQuiet) {
  EXPECT_EQ(
      RunLanes("add.f64 %d0, %da, %db; mov.b64 %q0, %d0;", {D(INFINITY), 0x7ff0000000001234}, {D(-INFINITY), D(1)}),
      (Longs{0xfff8000000000000, 0x7ff8000000001234}));
  EXPECT_EQ(RunLanes("fma.rn.f64 %d0, %da, %db, %dc; mov.b64 %q0, %d0;", {D(0), D(1)}, {D(INFINITY), D(1)},
                     {D(1), 0xfff8000000005678}),
            (Longs{0xfff8000000000000, 0xfff8000000005678}));
  EXPECT_EQ(RunLanes("neg.f64 %d0, %da; mov.b64 %q0, %d0;", {0x7ff0000000001234}), (Longs{0x7ff0000000001234}));
}

}  // namespace
}  // namespace solstice::device
