// Arithmetic against slow exact references: sums of integers times powers of two, rounded once by definition.
#include <array>
#include <cmath>
#include <random>

#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using Words = std::vector<uint32_t>;
using Longs = std::vector<uint64_t>;

enum class Round { kNearest, kZero, kDown, kUp, kAway };
constexpr std::pair<const char*, Round> kRounds[] = {
    {"rn", Round::kNearest}, {"rz", Round::kZero}, {"rm", Round::kDown}, {"rp", Round::kUp}};

// A number as two's complement of 2560 bits, the lowest worth 2^kBase: holds any sum of a few doubles and products of
// floats exactly.
class Exact {
 public:
  static constexpr int kBase = -1200;
  static constexpr int kWords = 80;

  // Adds significand * 2^exponent.
  void Add(int64_t significand, int exponent) {
    const bool negative = significand < 0;
    const uint64_t magnitude = negative ? 0 - static_cast<uint64_t>(significand) : static_cast<uint64_t>(significand);
    const int shift = exponent - kBase;
    std::array<uint32_t, kWords> term{};
    for (int bit = 0; bit < 64; ++bit) {
      if ((magnitude >> bit) & 1) term[(shift + bit) / 32] |= 1u << ((shift + bit) % 32);
    }
    uint64_t carry = negative ? 1 : 0;
    for (int i = 0; i < kWords; ++i) {
      carry += uint64_t{words_[i]} + (negative ? ~term[i] : term[i]);
      words_[i] = static_cast<uint32_t>(carry);
      carry >>= 32;
    }
  }
  // Adds a finite double, times `factor`.
  void AddDouble(double x, int64_t factor = 1) {
    int exponent;
    const double fraction = std::frexp(x, &exponent);
    Add(static_cast<int64_t>(std::ldexp(fraction, 53)) * factor, exponent - 53);
  }

  int Sign() const {
    if (words_[kWords - 1] >> 31) return -1;
    for (const uint32_t word : words_) {
      if (word != 0) return 1;
    }
    return 0;
  }

  // The code of the nearest value of a binary format by `round`; zero is positive.
  uint64_t Encode(int mantissa, int bias, Round round, int bits) const {
    const bool negative = Sign() < 0;
    Exact magnitude;
    if (negative) {
      uint64_t carry = 1;
      for (int i = 0; i < kWords; ++i) {
        carry += static_cast<uint32_t>(~words_[i]);
        magnitude.words_[i] = static_cast<uint32_t>(carry);
        carry >>= 32;
      }
    } else {
      magnitude = *this;
    }
    int top = kWords * 32 - 1;
    while (top >= 0 && !magnitude.Bit(top)) --top;
    if (top < 0) return 0;
    const int exponent = std::max(top + kBase, 1 - bias);
    const int last = exponent - mantissa - kBase;  // position of the last bit kept
    uint64_t kept = 0;
    for (int bit = last + mantissa; bit >= last; --bit) kept = kept << 1 | (magnitude.Bit(bit) ? 1 : 0);
    bool half = magnitude.Bit(last - 1), below = false;
    for (int bit = 0; bit < last - 1; ++bit) below |= magnitude.Bit(bit);
    bool up = false;
    switch (round) {
      case Round::kNearest:
        up = half && (below || (kept & 1));
        break;
      case Round::kAway:
        up = half;
        break;
      case Round::kZero:
        break;
      case Round::kDown:
        up = negative && (half || below);
        break;
      case Round::kUp:
        up = !negative && (half || below);
        break;
    }
    kept += up ? 1 : 0;
    uint64_t code = (static_cast<uint64_t>(exponent + bias - 1) << mantissa) + kept;
    const uint64_t infinity = static_cast<uint64_t>(2 * bias + 1) << mantissa;
    if (code >= infinity) {
      const bool away = round == Round::kNearest || round == Round::kAway || (round == Round::kUp && !negative) ||
                        (round == Round::kDown && negative);
      code = away ? infinity : infinity - 1;
    }
    return code | (negative ? uint64_t{1} << (bits - 1) : 0);
  }

 private:
  bool Bit(int bit) const { return bit >= 0 && ((words_[bit / 32] >> (bit % 32)) & 1); }
  std::array<uint32_t, kWords> words_{};
};

struct Narrow {
  const char* name;
  int mantissa, bias;
};
constexpr Narrow kHalf{"f16", 10, 15}, kBrain{"bf16", 7, 127};

double ValueOf(uint16_t code, const Narrow& f) {
  const int exponent = (code & 0x7fff) >> f.mantissa, fraction = code & ((1 << f.mantissa) - 1);
  const double value = exponent == 0 ? std::ldexp(fraction, 1 - f.bias - f.mantissa)
                                     : std::ldexp(fraction + (1 << f.mantissa), exponent - f.bias - f.mantissa);
  return code & 0x8000 ? -value : value;
}

class Source {
 public:
  uint64_t Word() { return random_(); }
  // A finite code of a 16-bit format, often near `other` in size so that sums cancel and tie.
  uint16_t Finite16(const Narrow& f, uint16_t other = 0x3c00) {
    const uint16_t limit = static_cast<uint16_t>(((2 << (14 - f.mantissa)) - 1) << f.mantissa);
    for (;;) {
      uint16_t code = static_cast<uint16_t>(random_());
      if (random_() % 3 == 0) code = static_cast<uint16_t>((code & 0x83ff) + (other & 0x7c00));
      if (random_() % 8 == 0) code = static_cast<uint16_t>(code & 0x8007);
      if ((code & 0x7fff) < limit) return code;
    }
  }
  float FiniteFloat() {
    for (;;) {
      const uint32_t bits = static_cast<uint32_t>(random_());
      const float any = __builtin_bit_cast(float, bits);
      const float moderate =
          __builtin_bit_cast(float, (bits & 0x807fffff) | (110 + static_cast<uint32_t>(random_() % 40)) << 23);
      const float x = random_() % 2 ? any : moderate;
      if (std::isfinite(x)) return x;
    }
  }
  double FiniteDouble() {
    for (;;) {
      const double any = __builtin_bit_cast(double, random_());
      const double x = random_() % 2 ? any
                                     : std::ldexp(static_cast<double>(static_cast<int64_t>(random_())),
                                                  -63 + static_cast<int>(random_() % 90) - 40);
      if (std::isfinite(x)) return x;
    }
  }

 private:
  std::mt19937_64 random_{11};
};

constexpr size_t kCount = 1024;  // threads of a block

TEST(Exact, ReferenceRoundsKnownValues) {
  Exact third;  // 1.5 ulp above 1 in f16
  third.AddDouble(1 + 1.5 / 1024);
  EXPECT_EQ(third.Encode(10, 15, Round::kNearest, 16), 0x3c02u);
  EXPECT_EQ(third.Encode(10, 15, Round::kZero, 16), 0x3c01u);
  EXPECT_EQ(third.Encode(10, 15, Round::kAway, 16), 0x3c02u);
  Exact large;
  large.AddDouble(-65520);
  EXPECT_EQ(large.Encode(10, 15, Round::kNearest, 16), 0xfc00u);
  EXPECT_EQ(large.Encode(10, 15, Round::kUp, 16), 0xfbffu);
}

TEST(Exact, NarrowFmaAddMulRoundOnce) {
  Source source;
  for (const Narrow& f : {kHalf, kBrain}) {
    for (int round = 0; round < 8; ++round) {
      Longs a, b, c;
      for (size_t i = 0; i < kCount; ++i) {
        a.push_back(source.Finite16(f));
        b.push_back(source.Finite16(f));
        c.push_back(source.Finite16(f, static_cast<uint16_t>(a.back())));
        if (round >= 4) b.back() = f.bias == 15 ? 0x3c00 | (b.back() & 0x83ff) : 0x3f80 | (b.back() & 0x807f);
      }
      const std::string name = f.name;
      const Words fma = RunLanes32("fma.rn." + name + " %h0, %ah, %bh, %ch; cvt.u32.u16 %r1, %h0;", a, b, c);
      const Words sum = RunLanes32("add.rn." + name + " %h0, %ah, %bh; cvt.u32.u16 %r1, %h0;", a, b);
      const Words product = RunLanes32("mul.rn." + name + " %h0, %ah, %bh; cvt.u32.u16 %r1, %h0;", a, b);
      for (size_t i = 0; i < kCount; ++i) {
        const double x = ValueOf(static_cast<uint16_t>(a[i]), f), y = ValueOf(static_cast<uint16_t>(b[i]), f),
                     z = ValueOf(static_cast<uint16_t>(c[i]), f);
        Exact exact, exact_sum, exact_product;
        exact.AddDouble(x * y);  // exact in double
        exact_product = exact;
        exact.AddDouble(z);
        exact_sum.AddDouble(x);
        exact_sum.AddDouble(y);
        auto check = [&](uint32_t got, const Exact& want, const char* what) {
          if (want.Sign() == 0) got &= 0x7fff;
          ASSERT_EQ(got, want.Encode(f.mantissa, f.bias, Round::kNearest, 16))
              << what << " " << name << " of " << a[i] << " " << b[i] << " " << c[i];
        };
        check(fma[i], exact, "fma");
        check(sum[i], exact_sum, "add");
        check(product[i], exact_product, "mul");
      }
    }
  }
}

TEST(Exact, NarrowFmaTies) {
  // (1 + 2^-10)^2 + 2^-24: just above the tie between 0x3c02 and its neighbour only if the product is not rounded.
  EXPECT_EQ(RunLanes32("fma.rn.f16 %h0, %ah, %bh, %ch; cvt.u32.u16 %r1, %h0;", {0x3c01, 0x3c01}, {0x3c01, 0x3c01},
                       {0x0001, 0x1000}),
            (Words{0x3c02, 0x3c03}));
  // 2050 + 1 is a tie, to the even 2052; a little less is not one.
  EXPECT_EQ(RunLanes32("fma.rn.f16 %h0, %ah, %bh, %ch; cvt.u32.u16 %r1, %h0;", {0x6801, 0x6801}, {0x3c00, 0x3c00},
                       {0x3c00, 0x3bff}),
            (Words{0x6802, 0x6801}));
}

TEST(Exact, FloatArithmeticInEveryRounding) {
  Source source;
  for (const auto& [word, round] : kRounds) {
    Longs a, b, c;
    for (size_t i = 0; i < kCount; ++i) {
      const float x = source.FiniteFloat(), y = source.FiniteFloat();
      float z = source.FiniteFloat();
      if (i % 4 == 0) z = -static_cast<float>(double{x} * y);
      if (!std::isfinite(z)) z = 1;
      a.push_back(F(x));
      b.push_back(F(y));
      c.push_back(F(z));
    }
    auto run = [&](const std::string& operation) { return RunLanes32(operation + "; mov.b32 %r1, %f0;", a, b, c); };
    const std::string r = word;
    const Words fma = run("fma." + r + ".f32 %f0, %fa, %fb, %fc"), add = run("add." + r + ".f32 %f0, %fa, %fb"),
                mul = run("mul." + r + ".f32 %f0, %fa, %fb"), div = run("div." + r + ".f32 %f0, %fa, %fb"),
                root = run("abs.f32 %f1, %fa; sqrt." + r + ".f32 %f0, %f1");
    for (size_t i = 0; i < kCount; ++i) {
      auto value = [](uint64_t bits) { return double{__builtin_bit_cast(float, static_cast<uint32_t>(bits))}; };
      const double x = value(a[i]), y = value(b[i]), z = value(c[i]);
      Exact exact_mul, exact_add, exact;
      exact_mul.AddDouble(x * y);
      exact = exact_mul;
      exact.AddDouble(z);
      exact_add.AddDouble(x);
      exact_add.AddDouble(y);
      auto check = [&, round = round](uint32_t got, const Exact& want, const char* what) {
        if (want.Sign() == 0) got &= 0x7fffffff;
        ASSERT_EQ(got, want.Encode(23, 127, round, 32)) << what << r << " of " << x << " " << y << " " << z;
      };
      check(mul[i], exact_mul, "mul.");
      check(add[i], exact_add, "add.");
      check(fma[i], exact, "fma.");
      // A quotient and a root are right when what they multiply back to brackets the operand: exact in double.
      const float q = __builtin_bit_cast(float, div[i]), s = __builtin_bit_cast(float, root[i]);
      const double quotient = x / y;  // its sign and size; a double is far finer than a float
      if (y != 0 && std::fabs(quotient) < 1e38 && std::fabs(quotient) > 1e-37) {
        Exact rest;  // |x| - |q y|
        rest.AddDouble(std::fabs(x));
        rest.AddDouble(-std::fabs(double{q} * y));
        const bool low = round == Round::kZero || (round == Round::kDown) == (quotient > 0);
        if (round != Round::kNearest) {
          const bool toward_zero = low;
          ASSERT_TRUE(toward_zero ? rest.Sign() >= 0 : rest.Sign() <= 0) << "div." << r << " " << x << " / " << y;
          const float next = std::nextafter(std::fabs(q), toward_zero ? HUGE_VALF : 0.0f);
          Exact beyond;
          beyond.AddDouble(std::fabs(x));
          beyond.AddDouble(-std::fabs(double{next} * y));
          ASSERT_TRUE(toward_zero ? beyond.Sign() < 0 : beyond.Sign() > 0) << "div." << r << " " << x << " / " << y;
        } else {
          ASSERT_EQ(q, static_cast<float>(x) / static_cast<float>(y));
        }
      }
      Exact rest;  // |x| - s s
      rest.AddDouble(std::fabs(x));
      rest.AddDouble(-double{s} * s);
      const bool below = round == Round::kZero || round == Round::kDown, above = round == Round::kUp;
      ASSERT_TRUE(!below || rest.Sign() >= 0) << "sqrt." << r << " " << x;
      ASSERT_TRUE(!above || rest.Sign() <= 0) << "sqrt." << r << " " << x;
      ASSERT_TRUE(below || above || s == std::sqrt(std::fabs(static_cast<float>(x)))) << "sqrt." << r << " " << x;
    }
  }
}

TEST(Exact, ConversionsFromFloatsInEveryRounding) {
  Source source;
  Longs a, d;
  for (size_t i = 0; i < kCount; ++i) {
    a.push_back(F(i % 3 == 0 ? static_cast<float>(ValueOf(source.Finite16(kHalf), kHalf)) *
                                   (1 + static_cast<float>(source.Word() % 5) * 0x1p-12f)
                             : source.FiniteFloat()));
    d.push_back(D(source.FiniteDouble()));
  }
  for (const auto& [word, round] : kRounds) {
    const std::string r = word;
    const Words half = RunLanes32("cvt." + r + ".f16.f32 %h0, %fa; cvt.u32.u16 %r1, %h0;", a),
                brain = RunLanes32("cvt." + r + ".bf16.f32 %h0, %fa; cvt.u32.u16 %r1, %h0;", a),
                from_double = RunLanes32("cvt." + r + ".f32.f64 %f0, %da; mov.b32 %r1, %f0;", d),
                half_double = RunLanes32("cvt." + r + ".f16.f64 %h0, %da; cvt.u32.u16 %r1, %h0;", d);
    for (size_t i = 0; i < kCount; ++i) {
      Exact x, y;
      x.AddDouble(__builtin_bit_cast(float, static_cast<uint32_t>(a[i])));
      y.AddDouble(__builtin_bit_cast(double, d[i]));
      auto check = [&, round = round](uint32_t got, const Exact& want, int mantissa, int bias, int bits,
                                      uint64_t from) {
        if (want.Sign() == 0) got &= (1u << (bits - 1)) - 1;
        ASSERT_EQ(got & 0x7fffffff, want.Encode(mantissa, bias, round, bits) & 0x7fffffff)
            << r << " to " << bits << " bits of " << from;
      };
      check(half[i], x, 10, 15, 16, a[i]);
      check(brain[i], x, 7, 127, 16, a[i]);
      check(from_double[i], y, 23, 127, 32, d[i]);
      check(half_double[i], y, 10, 15, 16, d[i]);
    }
  }
}

TEST(Exact, ConversionsFromIntegersInEveryRounding) {
  Source source;
  Longs a;
  for (size_t i = 0; i < kCount; ++i) a.push_back(source.Word() >> (source.Word() % 64));
  a[0] = 0;
  a[1] = ~uint64_t{0};
  a[2] = uint64_t{1} << 63;
  for (const auto& [word, round] : kRounds) {
    const std::string r = word;
    const Words u64 = RunLanes32("cvt." + r + ".f32.u64 %f0, %a; mov.b32 %r1, %f0;", a),
                s32 = RunLanes32("cvt." + r + ".f32.s32 %f0, %a0; mov.b32 %r1, %f0;", a),
                half = RunLanes32("cvt." + r + ".f16.s32 %h0, %a0; cvt.u32.u16 %r1, %h0;", a);
    const Longs s64 = RunLanes("cvt." + r + ".f64.s64 %d0, %a; mov.b64 %q0, %d0;", a);
    for (size_t i = 0; i < kCount; ++i) {
      Exact x, y, z;
      x.Add(static_cast<int64_t>(a[i] >> 1), 1);
      x.Add(static_cast<int64_t>(a[i] & 1), 0);
      y.Add(static_cast<int32_t>(a[i]), 0);
      z.Add(static_cast<int64_t>(a[i]), 0);
      ASSERT_EQ(u64[i], x.Encode(23, 127, round, 32)) << r << " " << a[i];
      ASSERT_EQ(s32[i], y.Encode(23, 127, round, 32)) << r << " " << a[i];
      ASSERT_EQ(half[i], y.Encode(10, 15, round, 16)) << r << " " << a[i];
      ASSERT_EQ(s64[i], z.Encode(52, 1023, round, 64)) << r << " " << a[i];
    }
  }
}

TEST(Exact, FloatToIntegerSaturates) {
  Source source;
  Longs a;
  std::vector<float> x;
  for (size_t i = 0; i < kCount; ++i) x.push_back(source.FiniteFloat());
  const float edges[] = {0.5f,           1.5f,          2.5f,     -0.5f,         -1.5f,         2147483648.0f,
                         -2147483648.0f, 2147483520.0f, 1e20f,    4294967296.0f, 4294967040.0f, 0x1p63f,
                         -0x1p63f,       0x1p64f,       INFINITY, -INFINITY,     -0.0f,         0x1p-149f};
  std::copy(std::begin(edges), std::end(edges), x.begin());
  for (const float value : x) a.push_back(F(value));
  const std::pair<const char*, double (*)(double)> modes[] = {{"rni", [](double v) { return std::nearbyint(v); }},
                                                              {"rzi", [](double v) { return std::trunc(v); }},
                                                              {"rmi", [](double v) { return std::floor(v); }},
                                                              {"rpi", [](double v) { return std::ceil(v); }}};
  for (const auto& [word, integral] : modes) {
    const std::string r = word;
    const Words s32 = RunLanes32("cvt." + r + ".s32.f32 %r1, %fa;", a),
                u32 = RunLanes32("cvt." + r + ".u32.f32 %r1, %fa;", a),
                u8 = RunLanes32("cvt." + r + ".u8.f32 %h0, %fa; cvt.u32.u16 %r1, %h0;", a);
    const Longs s64 = RunLanes("cvt." + r + ".s64.f32 %q0, %fa;", a),
                u64 = RunLanes("cvt." + r + ".u64.f32 %q0, %fa;", a);
    for (size_t i = 0; i < kCount; ++i) {
      const long double v = integral(x[i]);
      auto clamp = [&](long double low, long double high) { return v < low ? low : v > high ? high : v; };
      EXPECT_EQ(s32[i], static_cast<uint32_t>(static_cast<int32_t>(clamp(-2147483648.0L, 2147483647.0L)))) << r << x[i];
      EXPECT_EQ(u32[i], static_cast<uint32_t>(clamp(0, 4294967295.0L))) << r << x[i];
      EXPECT_EQ(u8[i], static_cast<uint32_t>(clamp(0, 255))) << r << x[i];
      EXPECT_EQ(s64[i], static_cast<uint64_t>(static_cast<int64_t>(clamp(-0x1p63L, 9223372036854775807.0L))))
          << r << x[i];
      EXPECT_EQ(u64[i], static_cast<uint64_t>(clamp(0, 18446744073709551615.0L))) << r << x[i];
    }
  }
  const Longs nan = {0x7fc00000};
  EXPECT_EQ(RunLanes32("cvt.rzi.s32.f32 %r1, %fa;", nan), Words{0});
  EXPECT_EQ(RunLanes32("cvt.rni.u32.f32 %r1, %fa;", nan), Words{0});
  EXPECT_EQ(RunLanes32("add.sat.f32 %f0, %fa, %fa; mov.b32 %r1, %f0;", nan), Words{0});
  EXPECT_EQ(RunLanes32("fma.rn.ftz.sat.f32 %f0, %fa, %fa, %fa; mov.b32 %r1, %f0;", nan), Words{0});
  EXPECT_EQ(RunLanes32("cvt.sat.f32.f32 %f0, %fa; mov.b32 %r1, %f0;", nan), Words{0});
}

TEST(Exact, IntegersOfEveryEdge) {
  Longs a, b;
  const uint64_t edges[] = {0,
                            1,
                            2,
                            0x7f,
                            0x80,
                            0xff,
                            0x7fff,
                            0x8000,
                            0xffff,
                            0xffffff,
                            0x800000,
                            0x7fffff,
                            0x7fffffff,
                            0x80000000,
                            0xffffffff,
                            0xfffffffe,
                            31,
                            32,
                            33,
                            63,
                            64,
                            0x7fffffffffffffff,
                            0x8000000000000000,
                            0xffffffffffffffff,
                            0x123456789abcdef0};
  for (const uint64_t x : edges) {
    for (const uint64_t y : edges) {
      a.push_back(x);
      b.push_back(y);
    }
  }
  const Words mul24 = RunLanes32("mul24.lo.s32 %r1, %a0, %b0;", a, b),
              mul24_high = RunLanes32("mul24.hi.u32 %r1, %a0, %b0;", a, b),
              sad = RunLanes32("sad.s32 %r1, %a0, %b0, 5;", a, b), shl = RunLanes32("shl.b32 %r1, %a0, %b0;", a, b),
              shr = RunLanes32("shr.s32 %r1, %a0, %b0;", a, b), high = RunLanes32("mul.hi.s32 %r1, %a0, %b0;", a, b),
              find = RunLanes32("bfind.s64 %r1, %a;", a),
              permute = RunLanes32("prmt.b32 %r1, %a0, 0x87654321, %b0;", a, b);
  const Longs div = RunLanes("div.s64 %q0, %a, %b;", a, b), rem = RunLanes("rem.s64 %q0, %a, %b;", a, b),
              high64 = RunLanes("mul.hi.u64 %q0, %a, %b;", a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    const uint32_t x = static_cast<uint32_t>(a[i]), y = static_cast<uint32_t>(b[i]);
    const int32_t sx = static_cast<int32_t>(x), sy = static_cast<int32_t>(y);
    auto low24 = [](int32_t v) { return int64_t{((v & 0xffffff) ^ 0x800000)} - 0x800000; };
    EXPECT_EQ(mul24[i], static_cast<uint32_t>(low24(sx) * low24(sy))) << x << " " << y;
    EXPECT_EQ(mul24_high[i], static_cast<uint32_t>((uint64_t{x & 0xffffff} * (y & 0xffffff)) >> 16)) << x << " " << y;
    EXPECT_EQ(sad[i], static_cast<uint32_t>(5 + std::abs(int64_t{sx} - sy))) << x << " " << y;
    EXPECT_EQ(shl[i], y > 31 ? 0 : x << y) << x << " " << y;
    EXPECT_EQ(shr[i], static_cast<uint32_t>(sx >> std::min(y, 31u))) << x << " " << y;
    EXPECT_EQ(high[i], static_cast<uint32_t>((int64_t{sx} * sy) >> 32)) << x << " " << y;
    EXPECT_EQ(high64[i], static_cast<uint64_t>((static_cast<unsigned __int128>(a[i]) * b[i]) >> 64));
    uint32_t top = 0xffffffff;
    for (int bit = 0; bit < 64; ++bit) {
      if (((a[i] >> bit) & 1) != (a[i] >> 63)) top = static_cast<uint32_t>(bit);
    }
    EXPECT_EQ(find[i], top) << a[i];
    uint32_t bytes = 0;
    for (int n = 0; n < 4; ++n) {
      const uint32_t selector = (y >> (4 * n)) & 15;
      const uint32_t byte = static_cast<uint32_t>((uint64_t{0x87654321} << 32 | x) >> (8 * (selector & 7))) & 255;
      bytes |= (selector & 8 ? (byte & 128 ? 255u : 0u) : byte) << (8 * n);
    }
    EXPECT_EQ(permute[i], bytes) << x << " " << y;
    const __int128 wide = static_cast<int64_t>(a[i]), by = static_cast<int64_t>(b[i]);
    EXPECT_EQ(div[i], by == 0 ? ~uint64_t{0} : static_cast<uint64_t>(wide / by)) << a[i] << " " << b[i];
    EXPECT_EQ(rem[i], by == 0 ? ~uint64_t{0} : static_cast<uint64_t>(wide % by)) << a[i] << " " << b[i];
  }
}

}  // namespace
}  // namespace solstice::device
