// Rare forms: packed and mixed floats, three operands, predicates beside a result, scales, 128 bits, the stack.
#include <array>
#include <cmath>

#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<uint32_t>;
using Longs = std::vector<uint64_t>;

constexpr uint64_t kNan = 0x7fffffff;

uint64_t Pair(float low, float high) { return F(low) | F(high) << 32; }

TEST(Forms, PairsOfFloats) {
  const Longs a = {Pair(1.5f, -2.25f), Pair(1e-45f, 3), Pair(INFINITY, 0.1f), Pair(-0.0f, 1e38f), Pair(1e-40f, 7)};
  const Longs b = {Pair(3, 0.5f), Pair(1, 1e-45f), Pair(-INFINITY, 0.2f), Pair(0.0f, 1e38f), Pair(-1e-42f, 1.0f / 3)};
  const Longs c = {Pair(-1, 8), Pair(2, -3), Pair(1, 5e-8f), Pair(-0.0f, -INFINITY), Pair(0, -7)};
  struct Case {
    const char* text;
    float (*one)(float, float, float);
  };
  const Case cases[] = {{"add.rn.f32x2 %q0, %a, %b;", [](float x, float y, float) { return x + y; }},
                        {"sub.f32x2 %q0, %a, %b;", [](float x, float y, float) { return x - y; }},
                        {"mul.rn.f32x2 %q0, %a, %b;", [](float x, float y, float) { return x * y; }},
                        {"fma.rn.f32x2 %q0, %a, %b, %c;", [](float x, float y, float z) { return std::fma(x, y, z); }},
                        {"mul.rn.ftz.f32x2 %q0, %a, %b;", [](float x, float y, float) {
                           auto flush = [](float v) { return std::fpclassify(v) == FP_SUBNORMAL ? v * 0 : v; };
                           return flush(flush(x) * flush(y));
                         }}};
  for (const Case& test : cases) {
    const Longs got = RunLanes(test.text, a, b, c);
    for (size_t i = 0; i < a.size(); ++i) {
      for (const int shift : {0, 32}) {
        auto half = [&](uint64_t v) { return __builtin_bit_cast(float, static_cast<uint32_t>(v >> shift)); };
        const float r = test.one(half(a[i]), half(b[i]), half(c[i]));
        EXPECT_EQ(static_cast<uint32_t>(got[i] >> shift), r != r ? kNan : F(r)) << test.text << i << " " << shift;
      }
    }
  }
  // Just above 1 and just below -1, in each direction.
  const Longs one = {Pair(1, -1)}, tiny = {Pair(0x1p-40f, -0x1p-40f)};
  const float above = std::nextafter(1.0f, 2.0f);
  EXPECT_EQ(RunLanes("add.rz.f32x2 %q0, %a, %b;", one, tiny), Longs{Pair(1, -1)});
  EXPECT_EQ(RunLanes("add.rp.f32x2 %q0, %a, %b;", one, tiny), Longs{Pair(above, -1)});
  EXPECT_EQ(RunLanes("add.rm.f32x2 %q0, %a, %b;", one, tiny), Longs{Pair(1, -above)});
  EXPECT_EQ(RunLanes("fma.rp.f32x2 %q0, %a, %a, %b;", one, tiny), Longs{Pair(above, 1)});
}

TEST(Forms, MinAndMaxOfThreeAndOfMagnitudes) {
  struct Case {
    const char* text;
    float a, b, c;
    uint64_t expected;
  };
  const float nan = NAN;
  const Case cases[] = {{"min.f32 %f0, %fa, %fb, %fc;", 3, -1, 2, F(-1)},
                        {"max.f32 %f0, %fa, %fb, %fc;", 3, -1, 2, F(3)},
                        {"max.f32 %f0, %fa, %fb, %fc;", nan, -1, nan, F(-1)},
                        {"max.f32 %f0, %fa, %fb, %fc;", nan, nan, nan, kNan},
                        {"min.NaN.f32 %f0, %fa, %fb, %fc;", 3, nan, 2, kNan},
                        {"min.f32 %f0, %fa, %fb, %fc;", 0, 1, -0.0f, F(-0.0f)},
                        {"max.abs.f32 %f0, %fa, %fb, %fc;", 3, -7, 2, F(7)},
                        {"min.abs.f32 %f0, %fa, %fb, %fc;", -3, -7, 4, F(3)},
                        {"max.ftz.f32 %f0, %fa, %fb, %fc;", 1e-45f, -1, -2, F(0)},
                        {"max.xorsign.abs.f32 %f0, %fa, %fb;", 3, -7, 0, F(-7)},
                        {"min.xorsign.abs.f32 %f0, %fa, %fb;", -3, -7, 0, F(3)},
                        {"min.NaN.xorsign.abs.f32 %f0, %fa, %fb;", nan, -7, 0, kNan},
                        {"min.xorsign.abs.f32 %f0, %fa, %fb;", nan, -7, 0, F(-7)}};
  for (const Case& c : cases) {
    EXPECT_EQ(RunLanes32(std::string(c.text) + " mov.b32 %r1, %f0;", {F(c.a)}, {F(c.b)}, {F(c.c)})[0], c.expected)
        << c.text;
  }
  // 16 bits: 2 and -5, 1 and 1.
  EXPECT_EQ(RunLanes32("max.xorsign.abs.f16x2 %r1, %a0, %b0;", {0x3c004000}, {0x3c00c500})[0], 0x3c00c500u);
  EXPECT_EQ(RunLanes32("min.xorsign.abs.bf16x2 %r1, %a0, %b0;", {0x3f804000}, {0xbf80c0a0})[0], 0xbf80c000u);
}

TEST(Forms, MixedPrecision) {
  // 1.5 and -2 as f16, 1.5 as bf16, the smallest f16, infinity.
  EXPECT_EQ(RunLanes32("add.f32.f16 %f0, %ah, %fb; mov.b32 %r1, %f0;", {0x3e00}, {F(0.25f)})[0], F(1.75f));
  EXPECT_EQ(RunLanes32("sub.rn.f32.bf16 %f0, %ah, %fb; mov.b32 %r1, %f0;", {0x3fc0}, {F(0.25f)})[0], F(1.25f));
  EXPECT_EQ(RunLanes32("fma.rn.f32.f16 %f0, %ah, %bh, %fc; mov.b32 %r1, %f0;", {0x3e00}, {0xc000}, {F(1)})[0], F(-2));
  EXPECT_EQ(RunLanes32("add.f32.f16 %f0, %ah, %fb; mov.b32 %r1, %f0;", {1}, {F(0)})[0], F(0x1p-24f));
  EXPECT_EQ(RunLanes32("add.rp.f32.f16 %f0, %ah, %fb; mov.b32 %r1, %f0;", {1}, {F(1)})[0], F(std::nextafter(1.f, 2.f)));
  EXPECT_EQ(RunLanes32("add.rz.f32.f16 %f0, %ah, %fb; mov.b32 %r1, %f0;", {1}, {F(1)})[0], F(1));
  EXPECT_EQ(RunLanes32("add.sat.f32.f16 %f0, %ah, %fb; mov.b32 %r1, %f0;", {0x7c00}, {F(1)})[0], F(1));
  EXPECT_EQ(RunLanes32("fma.rn.sat.f32.bf16 %f0, %ah, %bh, %fc; mov.b32 %r1, %f0;", {0x7f80}, {0}, {F(1)})[0], F(0));
}

TEST(Forms, RoughReciprocalsOfDoubles) {
  auto run = [](const char* name, double x) {
    return RunLanes(std::string(name) + ".approx.ftz.f64 %d0, %da; mov.b64 %q0, %d0;", {D(x)})[0];
  };
  EXPECT_EQ(run("rcp", 4), D(0.25));
  EXPECT_EQ(run("rcp", -0.0), D(-INFINITY));
  EXPECT_EQ(run("rcp", 5e-324), D(INFINITY)) << "a subnormal is zero";
  EXPECT_EQ(run("rcp", -INFINITY), D(-0.0));
  EXPECT_EQ(run("rcp", 0x1p1023), D(0)) << "a subnormal result is zero";
  EXPECT_EQ(run("rsqrt", 16), D(0.25));
  EXPECT_EQ(run("rsqrt", -0.0), D(-INFINITY));
  EXPECT_EQ(run("rsqrt", INFINITY), D(0));
  EXPECT_TRUE(std::isnan(__builtin_bit_cast(double, run("rsqrt", -1))));
  for (const double x : {3.0, 1e100, 7e-5, 12345.678}) {
    const uint64_t reciprocal = run("rcp", x), root = run("rsqrt", x);
    EXPECT_EQ(reciprocal & 0xffffffff, 0u);
    EXPECT_EQ(root & 0xffffffff, 0u);
    EXPECT_NEAR(__builtin_bit_cast(double, reciprocal) * x, 1, 0x1p-18);
    EXPECT_NEAR(__builtin_bit_cast(double, root) * std::sqrt(x), 1, 0x1p-18);
  }
}

TEST(Forms, IntegersAndLogic) {
  EXPECT_EQ(RunLanes32("mad24.hi.sat.s32 %r1, %a0, %b0, %c0;", {0x7fffff}, {0x7fffff}, {0x7fffffff})[0], 0x7fffffffu);
  EXPECT_EQ(RunLanes32("mad24.hi.sat.s32 %r1, %a0, %b0, %c0;", {0x800000}, {0x7fffff}, {0x80000000})[0], 0x80000000u);
  EXPECT_EQ(RunLanes32("mad24.hi.sat.s32 %r1, %a0, %b0, %c0;", {0xff012345}, {2}, {9})[0],
            static_cast<uint32_t>((0x012345 * 2 >> 16) + 9));
  // The float decides: a negative subnormal is below zero unless flushed.
  EXPECT_EQ(RunLanes32("slct.u32.f32 %r1, %a0, %b0, %fc;", {1}, {2}, {0x80000001})[0], 2u);
  EXPECT_EQ(RunLanes32("slct.ftz.u32.f32 %r1, %a0, %b0, %fc;", {1}, {2}, {0x80000001})[0], 1u);
  // a ^ b ^ c and whether it is not zero, with p: none is 0 in lane 0, all of lane 1.
  const Longs a = {5, 5}, b = {1, 4}, c = {2, 1};
  struct Case {
    const char* text;
    Words expected;  // result plus 100 for the predicate
  };
  const Case cases[] = {
      {"setp.eq.u32 %p1, 1, 1; lop3.and.b32 %r2|%p0, %a0, %b0, %c0, 0x96, %p1;", {106, 0}},
      {"setp.eq.u32 %p1, 1, 2; lop3.and.b32 %r2|%p0, %a0, %b0, %c0, 0x96, %p1;", {6, 0}},
      {"setp.eq.u32 %p1, 1, 2; lop3.or.b32 %r2|%p0, %a0, %b0, %c0, 0x96, !%p1;", {106, 100}},
      {"mov.u32 %r2, 0; setp.eq.u32 %p1, 1, 2; lop3.or.b32 _|%p0, %a0, %b0, %c0, 0x96, %p1;", {100, 0}},
      {"mov.u32 %r2, %a0; setp.eq.u32 %p1, 1, 2; lop3.or.b32 %r2|%p0, %r2, %b0, %c0, 0x96, %p1;", {106, 0}}};
  for (const Case& test : cases) {
    EXPECT_EQ(RunLanes32(std::string(test.text) + "selp.u32 %r3, 100, 0, %p0; add.u32 %r1, %r2, %r3;", a, b, c),
              test.expected)
        << test.text;
  }
}

// What a scale is, from its definition: the exponent of the magnitude, rounded.
uint32_t Scale(float x, bool up, bool satfinite) {
  if (x != x) return 255;
  x = std::fabs(x);
  uint32_t code = 255;
  for (int e = 254; e >= 0; --e) {
    const double power = std::ldexp(1.0, e - 127);
    // Rounded down: the largest power not above x, or the least of all. Up: the smallest not below.
    if (up ? power >= x : power <= x || e == 0) code = static_cast<uint32_t>(e);
    if (!up && code != 255) break;
  }
  if (std::isinf(x)) code = 255;
  return satfinite && code == 255 ? 254 : code;
}

TEST(Forms, Scales) {
  Longs a, b;
  for (int e = -149; e < 128; ++e) {
    a.push_back(F(std::ldexp(1.0f, e)));
    b.push_back(F(-std::ldexp(1.5f, e)));
  }
  for (const uint64_t bits : {0x00000000u, 0x80000000u, 0x00400001u, 0x007fffffu, 0x7f7fffffu, 0x7f800000u, 0xff800000u,
                              0x7fc00000u, 0x3f800001u}) {
    a.push_back(bits);
    b.push_back(bits);
  }
  for (const bool up : {false, true}) {
    for (const bool satfinite : {false, true}) {
      const std::string name = base::StrCat("cvt.", up ? "rp" : "rz", satfinite ? ".satfinite" : "", ".ue8m0x2.");
      const Words got = RunLanes32(name + "f32 %h0, %fa, %fb; cvt.u32.u16 %r1, %h0;", a, b);
      for (size_t i = 0; i < a.size(); ++i) {
        auto value = [](uint64_t bits) { return __builtin_bit_cast(float, static_cast<uint32_t>(bits)); };
        EXPECT_EQ(got[i], Scale(value(a[i]), up, satfinite) << 8 | Scale(value(b[i]), up, satfinite)) << name << i;
      }
    }
  }
  // bf16: 2^-127 times 1.5, and 3.
  EXPECT_EQ(RunLanes32("cvt.rp.ue8m0x2.bf16x2 %h0, %a0; cvt.u32.u16 %r1, %h0;", {0x00604040})[0], 1u << 8 | 129);
  EXPECT_EQ(RunLanes32("cvt.rz.ue8m0x2.bf16x2 %h0, %a0; cvt.u32.u16 %r1, %h0;", {0x00604040})[0], 0u << 8 | 128);
  EXPECT_EQ(RunLanes32("cvt.rn.bf16x2.ue8m0x2 %r1, %ah;", {0xff00, 0x7f01})[0], 0x7fff0040u);
  EXPECT_EQ(RunLanes32("cvt.rn.bf16x2.ue8m0x2 %r1, %ah;", {0x7f01})[0], 0x3f800080u);
}

TEST(Forms, PackOfSmallIntegers) {
  const Longs a = {static_cast<uint32_t>(-9)}, b = {20}, c = {0x12345678};
  auto run = [&](const std::string& type) {
    return RunLanes32("cvt.pack.sat." + type + ".s32.b32 %r1, %a0, %b0, %c0;", a, b, c)[0];
  };
  EXPECT_EQ(run("u8"), 0x56780014u);
  EXPECT_EQ(run("s8"), 0x5678f714u);
  EXPECT_EQ(run("u4"), 0x3456780fu);
  EXPECT_EQ(run("s4"), 0x34567887u);
  EXPECT_EQ(run("u2"), 0x23456783u);
  EXPECT_EQ(run("s2"), 0x23456789u);
  EXPECT_EQ(RunLanes32("cvt.pack.sat.s16.s32 %r1, %a0, %b0;", a, b)[0], 0xfff70014u);
}

TEST(Forms, ReductionsOfFloats) {
  Longs a;
  for (uint32_t i = 0; i < 32; ++i) a.push_back(F(static_cast<float>(i) - 20));
  auto run = [](const std::string& name, const Longs& values) {
    const Words got = RunLanes32("redux.sync." + name + ".f32 %f0, %fa, -1; mov.b32 %r1, %f0;", values);
    EXPECT_EQ(got, Words(got.size(), got[0]));
    return got[0];
  };
  EXPECT_EQ(run("min", a), F(-20));
  EXPECT_EQ(run("max", a), F(11));
  EXPECT_EQ(run("max.abs", a), F(20));
  EXPECT_EQ(run("min.abs.NaN", a), F(0));
  Longs nan = a;
  nan[3] = 0xffc00001;
  EXPECT_EQ(run("min", nan), F(-20));
  EXPECT_EQ(run("max.abs.NaN", nan), kNan);
  EXPECT_EQ(run("min", Longs(32, 0xffc00001)), kNan);
  EXPECT_EQ(run("min", {0, 0x80000000}), 0x80000000u);
  EXPECT_EQ(run("max", {0x80000000, 0}), 0u);
}

TEST(Forms, Registers) {
  EXPECT_EQ(
      RunLanes(".reg .b128 %x<2>; mov.b128 %x0, {%a0, %b0, %c0, %a0}; mov.b128 {%q1, %q0}, %x0;", {1}, {2}, {3})[0],
      1ull << 32 | 3);
  EXPECT_EQ(
      RunLanes(".reg .b128 %x<2>; mov.b128 %x0, {%a, %b}; mov.b128 {_, %r2, %r3, _}, %x0; mov.b64 %q0, {%r2, %r3};",
               {5ull << 32}, {7})[0],
      7ull << 32 | 5);
  EXPECT_EQ(RunLanes32("mov.v4.u32 {%r1, %r2, %r3, %r4}, %ntid; add.u32 %r1, %r1, %r4;", {0, 0, 0})[0], 4u);
  EXPECT_EQ(
      RunLanes("mov.u64 %q0, %pm3_64; mov.b32 %r2, %envreg31; cvt.u64.u32 %q1, %r2; add.u64 %q0, %q0, %q1;", {9})[0],
      0u);
}

// Each lane has a stack pointer of its own.
TEST(Forms, StackGrowsAndShrinks) {
  const std::string body = R"(
  stacksave.u64 %q1;
  add.u64 %q2, %a, 1;
  alloca.u64 %q3, %q2, 32;
  alloca.u64 %q4, 8;
  cvta.local.u64 %q5, %q3;
  st.u8 [%q5], 77;
  add.u64 %q6, %q5, %a;
  st.u8 [%q6], 55;
  st.local.u64 [%q4], %a;
  ld.local.u64 %q7, [%q4];
  ld.u8 %q8, [%q6];
  stackrestore.u64 %q1;
  stacksave.u64 %q9;
  sub.u64 %q9, %q9, %q1;
  and.b64 %q10, %q3, 31;
  sub.u64 %q0, %q7, %a;
  add.u64 %q0, %q0, %q8;
  add.u64 %q0, %q0, %q9;
  add.u64 %q0, %q0, %q10;
)";
  EXPECT_EQ(RunLanes(body, {0, 1, 100, 4000, 5, 33}), Longs(6, 55));
  // Restoring in a loop gives the bytes back.
  EXPECT_EQ(RunLanes(R"(
  mov.u32 %r1, 0;
LOOP:
  stacksave.u64 %q1;
  alloca.u64 %q2, 4096;
  stackrestore.u64 %q1;
  add.u32 %r1, %r1, 1;
  setp.lt.u32 %p1, %r1, 20000;
  @%p1 bra LOOP;
  cvt.u64.u32 %q0, %r1;
)",
                     {0}),
            Longs{20000});
}

struct Misuse {
  const char* body;
  Fault::Kind kind;
  const char* text;
};

TEST(Forms, WrongStackAndBulkStoresAreFaults) {
  const Misuse cases[] = {
      {"alloca.u64 %d0, -1;", Fault::STACK_OVERFLOW, "alloca"},
      {"L: alloca.u64 %d0, 65536; bra L;", Fault::STACK_OVERFLOW, "alloca"},
      {"stackrestore.u64 -1;", Fault::OTHER, "stack pointer"},
      {"stacksave.u64 %d0; sub.u64 %d0, %d0, 1; stackrestore.u64 %d0;", Fault::OTHER, "stack pointer"},
      {"alloca.u64 %d0, 16; st.local.u8 [%d0+16], 1;", Fault::OUT_OF_BOUNDS, "local memory"},
      {"mov.u32 %r0, s; st.bulk.shared::cta [%r0], 65, 0;", Fault::OUT_OF_BOUNDS, "shared memory"},
      {"mov.u32 %r0, s; st.bulk.shared::cta [%r0], 12, 0;", Fault::OTHER, "whole words"},
      {"mov.u32 %r0, s; st.bulk.shared::cta [%r0+4], 8, 0;", Fault::MISALIGNED, "multiple of 8"},
      {"mov.u32 %r0, s; st.bulk.shared::cta [%r0], 0x100000008, 0;", Fault::OUT_OF_BOUNDS, "shared memory"},
      {"ld.param.u64 %d0, [p]; st.bulk [%d0], 64, 0;", Fault::OTHER, "in shared memory"},
      {"ld.param.u64 %d0, [p]; atom.global.exch.b128 _, [%d0+8], %x0;", Fault::MISALIGNED, "16 bytes"}};
  for (const Misuse& c : cases) {
    Machine machine(Wrap(R"(
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<2>;
  .reg .b64 %d<2>;
  .reg .b128 %x<2>;
  .shared .align 16 .b8 s[64];
)") + c.body + " ret; }");
    const Address p = machine.Buffer(Words(64));
    const RunOutcome outcome = machine.Run("k", 1, 1, {Argument(p)});
    ASSERT_EQ(outcome.kind(), RunOutcome::FAULT) << c.body << outcome.reason();
    EXPECT_EQ(outcome.fault().kind(), c.kind) << c.body << outcome.reason();
    EXPECT_THAT(outcome.reason(), HasSubstr(c.text)) << c.body;
  }
}

// Results may be the registers of the values.
TEST(Forms, VectorsOfAtomics) {
  Machine machine(Wrap(R"(
.visible .entry k(.param .u64 p)
{
  .reg .f32 %f<4>;
  .reg .b32 %r<4>;
  .reg .b64 %d<4>;
  ld.param.u64 %d0, [p];
  mov.f32 %f0, 0f3F800000;
  mov.f32 %f1, 0f40000000;
  atom.global.v2.f32.add {%f1, %f0}, [%d0], {%f0, %f1};
  st.global.v2.f32 [%d0+8], {%f0, %f1};
  mov.u32 %r0, 0x3c004000;
  mov.u32 %r1, 0xc2003800;
  atom.global.max.noftz.v2.f16x2 {_, %d1}, [%d0+16], {%r0, %r1};
  st.global.u64 [%d0+24], %d1;
  ret;
}
)"));
  // 8 and 16; then halves: 3 and 1, 0.25 and -1.
  const Address p = machine.Buffer(Longs{Pair(8, 16), 0, 0x3400bc00'42003c00, 0});
  const RunOutcome outcome = machine.Run("k", 1, 1, {Argument(p)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint64_t>(p, 4), (Longs{Pair(9, 18), Pair(16, 8), 0x34003800'42004000, 0x3400bc00}));
}

// Many blocks count in a 128-bit word with compare-and-swap, and exchange and add in vectors.
TEST(Forms, WideAtomics) {
  EmulatorOptions options;
  options.threads = 2;
  Machine machine(Wrap(R"(
.visible .entry k(.param .u64 p)
{
  .reg .pred %p<4>;
  .reg .f32 %f<8>;
  .reg .b32 %r<8>;
  .reg .b64 %d<8>;
  .reg .b128 %x<4>;
  .shared .align 16 .b8 s[512];
  ld.param.u64 %d0, [p];
AGAIN:
  ld.global.b128 %x0, [%d0];
  mov.b128 {%d1, %d2}, %x0;
  add.u64 %d3, %d1, 1;
  add.u64 %d4, %d2, 3;
  mov.b128 %x1, {%d3, %d4};
  atom.global.cas.b128 %x2, [%d0], %x0, %x1;
  mov.b128 {%d5, %d6}, %x2;
  setp.ne.u64 %p1, %d6, %d2;
  setp.ne.or.u64 %p0, %d5, %d1, %p1;
  @%p0 bra AGAIN;
  mov.f32 %f0, 0f3F800000;
  mov.f32 %f1, 0f40000000;
  atom.global.v2.f32.add {%f2, %f3}, [%d0+16], {%f0, %f1};
  st.bulk [%d7], 0, 0;
  mov.u32 %r0, %tid.x;
  mov.u32 %r3, s;
  mad.lo.u32 %r0, %r0, 16, %r3;
  mov.b128 %x3, {%d0, %d0};
  st.shared.b128 [%r0], %x3;
  atom.shared.exch.b128 %x3, [%r0], %x2;
  mov.b128 {%d1, %d2}, %x3;
  st.bulk.weak.shared::cta [%r0], 16, 0;
  ld.shared.u64 %d6, [%r0];
  sub.u64 %d1, %d1, %d0;
  add.u64 %d1, %d1, %d6;
  red.global.add.u64 [%d0+24], %d1;
  red.global.add.noftz.v2.bf16x2 [%d0+32], {%r1, %r2};
  ret;
}
)"),
                  options);
  const Address p = machine.Buffer(Longs(6));
  const RunOutcome outcome = machine.Run("k", 64, 32, {Argument(p)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  const Longs got = machine.Read<uint64_t>(p, 6);
  EXPECT_EQ(got, (Longs{2048, 3 * 2048, Pair(2048, 4096), 0, 0, 0}));
}

}  // namespace
}  // namespace solstice::device
