// Instruction semantics against host arithmetic and known answers, one warp at a time.
#include <cmath>
#include <limits>

#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kQuiet = std::numeric_limits<float>::quiet_NaN();
constexpr uint32_t kNan = 0x7fffffff;

using Words = std::vector<uint32_t>;

TEST(Integer, AddSubMul) {
  EXPECT_EQ(RunLanes32("add.s32 %r1, %a0, %b0;", {0xffffffff, 5}, {1, 7}), (Words{0, 12}));
  EXPECT_EQ(RunLanes32("add.sat.s32 %r1, %a0, %b0;", {0x7fffffff, 0x80000000}, {1, 0xffffffff}),
            (Words{0x7fffffff, 0x80000000}));
  EXPECT_EQ(RunLanes32("sub.sat.s32 %r1, %a0, %b0;", {0x80000000, 3}, {1, 5}), (Words{0x80000000, 0xfffffffe}));
  EXPECT_EQ(RunLanes32("mul.hi.s32 %r1, %a0, %b0;", {0xffffffff, 0x40000000}, {2, 8}), (Words{0xffffffff, 2}));
  EXPECT_EQ(RunLanes32("mul.hi.u32 %r1, %a0, %b0;", {0xffffffff}, {2}), (Words{1}));
  EXPECT_EQ(RunLanes("mul.hi.s64 %q0, %a, %b;", {~0ull, 1ull << 62}, {2, 8}), (std::vector<uint64_t>{~0ull, 2}));
  EXPECT_EQ(RunLanes("mul.wide.s32 %q0, %a0, %b0;", {0xffffffff}, {3}), (std::vector<uint64_t>{~0ull - 2}));
  EXPECT_EQ(RunLanes("mad.wide.u32 %q0, %a0, %b0, %c;", {0xffffffff}, {0xffffffff}, {1}),
            (std::vector<uint64_t>{0xfffffffe00000002ull}));
  EXPECT_EQ(RunLanes32("mul24.lo.s32 %r1, %a0, %b0;", {0xffffff}, {5}), (Words{0xfffffffb}));
  EXPECT_EQ(RunLanes32("sad.s32 %r1, %a0, %b0, %c0;", {3, 0xfffffffe}, {10, 5}, {1, 1}), (Words{8, 8}));
  EXPECT_EQ(RunLanes32("add.u16 %h0, %ah, %bh; cvt.u32.u16 %r1, %h0;", {0xffff}, {3}), (Words{2}));
}

TEST(Integer, DivisionOfEverything) {
  EXPECT_EQ(RunLanes32("div.s32 %r1, %a0, %b0;", {0x80000000, 7, 0xfffffff9}, {0xffffffff, 0, 2}),
            (Words{0x80000000, 0xffffffff, 0xfffffffd}));
  EXPECT_EQ(RunLanes32("rem.s32 %r1, %a0, %b0;", {0x80000000, 7, 0xfffffff9}, {0xffffffff, 0, 2}),
            (Words{0, 0xffffffff, 0xffffffff}));
  EXPECT_EQ(RunLanes("div.u64 %q0, %a, %b;", {~0ull, 9}, {10, 0}), (std::vector<uint64_t>{~0ull / 10, ~0ull}));
}

TEST(Integer, CarryChains) {
  const std::string sum = R"(
  add.cc.u32 %r1, %a0, %b0;
  addc.cc.u32 %r2, 0, 0;
  addc.u32 %r3, 7, 0;
  cvt.u64.u32 %q0, %r2;
  shl.b64 %q0, %q0, 32;
  cvt.u64.u32 %q1, %r1;
  or.b64 %q0, %q0, %q1;)";
  EXPECT_EQ(RunLanes(sum, {0xffffffff, 1}, {1, 1}), (std::vector<uint64_t>{0x100000000ull, 2}));
  const std::string difference = "sub.cc.u32 %r2, %a0, %b0;\n subc.u32 %r1, 10, 0;";
  EXPECT_EQ(RunLanes32(difference, {1, 2}, {2, 1}), (Words{9, 10}));
  const std::string product = "mad.lo.cc.u32 %r2, %a0, %b0, %c0;\n madc.hi.u32 %r1, %a0, %b0, 0;";
  EXPECT_EQ(RunLanes32(product, {0xffffffff}, {0xffffffff}, {0xffffffff}), (Words{0xffffffff}));
}

TEST(Integer, ShiftsBeyondTheWidth) {
  EXPECT_EQ(RunLanes32("shl.b32 %r1, %a0, %b0;", {1, 1, 1}, {31, 32, 255}), (Words{0x80000000, 0, 0}));
  EXPECT_EQ(RunLanes32("shr.u32 %r1, %a0, %b0;", {0x80000000, 0x80000000}, {31, 32}), (Words{1, 0}));
  EXPECT_EQ(RunLanes32("shr.s32 %r1, %a0, %b0;", {0x80000000, 0x80000000}, {4, 99}), (Words{0xf8000000, 0xffffffff}));
  EXPECT_EQ(RunLanes32("shf.l.wrap.b32 %r1, %a0, %b0, %c0;", {0x80000000, 1}, {1, 2}, {1, 33}), (Words{3, 4}));
  EXPECT_EQ(RunLanes32("shf.l.clamp.b32 %r1, %a0, %b0, %c0;", {0x12345678}, {2}, {33}), (Words{0x12345678}));
  EXPECT_EQ(RunLanes32("shf.r.clamp.b32 %r1, %a0, %b0, %c0;", {7, 7}, {9, 9}, {32, 40}), (Words{9, 9}));
}

TEST(Integer, BitFields) {
  EXPECT_EQ(
      RunLanes32("bfe.u32 %r1, %a0, %b0, %c0;", {0xabcd, 0xabcd, 0xabcd, 0xf0000000}, {4, 0, 40, 28}, {8, 0, 4, 200}),
      (Words{0xbc, 0, 0, 0xf}));
  EXPECT_EQ(RunLanes32("bfe.s32 %r1, %a0, %b0, %c0;", {0x80, 0x80000000, 0x80000000, 0x80000000}, {4, 28, 40, 31},
                       {4, 8, 4, 0}),
            (Words{0xfffffff8, 0xfffffff8, 0xffffffff, 0}));
  EXPECT_EQ(RunLanes32("bfi.b32 %r1, %a0, %b0, 8, 4;", {0xf5}, {0xffffffff}), (Words{0xfffff5ff}));
  EXPECT_EQ(RunLanes32("bfi.b32 %r1, %a0, %b0, %c0, 32;", {5, 5, 5}, {9, 9, 9}, {0, 32, 4}), (Words{5, 9, 0x59}));
  EXPECT_EQ(RunLanes32("popc.b64 %r1, %a;", {~0ull, 5}), (Words{64, 2}));
  EXPECT_EQ(RunLanes32("clz.b32 %r1, %a0;", {0, 1, 0x80000000}), (Words{32, 31, 0}));
  EXPECT_EQ(RunLanes32("bfind.s32 %r1, %a0;", {0xffffffff, 0xfffffffe, 0x100, 0}),
            (Words{0xffffffff, 0, 8, 0xffffffff}));
  EXPECT_EQ(RunLanes32("bfind.shiftamt.u32 %r1, %a0;", {1, 0x80000000, 0}), (Words{31, 0, 0xffffffff}));
  EXPECT_EQ(RunLanes32("brev.b32 %r1, %a0;", {1, 0xf0}), (Words{0x80000000, 0x0f000000}));
  EXPECT_EQ(RunLanes32("fns.b32 %r1, %a0, 0, 2;", {0b10110, 1}), (Words{2, 0xffffffff}));
}

TEST(Integer, LogicTables) {
  for (const uint32_t table : {0x00u, 0x80u, 0xfeu, 0x96u, 0xe8u, 0xcau, 0x1bu, 0xffu}) {
    uint32_t expected = 0;
    const uint32_t a = 0xf0, b = 0xcc, c = 0xaa;
    for (int i = 0; i < 32; ++i) {
      const int index = ((a >> i) & 1) << 2 | ((b >> i) & 1) << 1 | ((c >> i) & 1);
      expected |= ((table >> index) & 1) << i;
    }
    EXPECT_EQ(RunLanes32(base::StrCat("lop3.b32 %r1, %a0, %b0, %c0, ", table, ";"), {a}, {b}, {c}), Words{expected})
        << table;
  }
}

TEST(Integer, BytePermutation) {
  const uint64_t a = 0x03020100, b = 0x87060504;
  EXPECT_EQ(RunLanes32("prmt.b32 %r1, %a0, %b0, %c0;", {a, a, a}, {b, b, b}, {0x3210, 0x7654, 0x000f}),
            (Words{0x03020100, 0x87060504, 0x000000ff}));
  EXPECT_EQ(RunLanes32("prmt.b32.f4e %r1, %a0, %b0, %c0;", {a}, {b}, {1}), (Words{0x04030201}));
  EXPECT_EQ(RunLanes32("prmt.b32.rc16 %r1, %a0, %b0, %c0;", {a}, {b}, {1}), (Words{0x03020302}));
  EXPECT_EQ(RunLanes32("dp4a.s32.s32 %r1, %a0, %b0, %c0;", {0xff010203}, {0x02020202}, {100}), (Words{110}));
  EXPECT_EQ(RunLanes32("dp2a.lo.u32.u32 %r1, %a0, %b0, %c0;", {0x00030002}, {0x0504}, {1}), (Words{24}));
}

TEST(Float, NanIsCanonicalAndSubnormalsFollowFtz) {
  EXPECT_EQ(RunLanes32("add.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {F(kInf), 0xffc12345, F(1)}, {F(-kInf), F(1), F(2)}),
            (Words{kNan, kNan, static_cast<uint32_t>(F(3))}));
  EXPECT_EQ(RunLanes32("mul.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {0x00000003}, {F(1)}), (Words{3}));
  EXPECT_EQ(RunLanes32("mul.ftz.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {0x80000003, 0x00800000}, {F(1), F(0.5f)}),
            (Words{0x80000000, 0}));
  EXPECT_EQ(
      RunLanes32("add.sat.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {F(0.75f), F(-2), F(kQuiet)}, {F(0.75f), F(1), F(1)}),
      (Words{static_cast<uint32_t>(F(1)), 0, 0}));
}

TEST(Float, DirectedRounding) {
  const std::vector<uint64_t> a = {F(1), F(-1)}, b = {F(0x1p-30f), F(-0x1p-30f)};
  const uint32_t one = 0x3f800000, next = 0x3f800001;
  EXPECT_EQ(RunLanes32("add.rn.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", a, b), (Words{one, one | 1u << 31}));
  EXPECT_EQ(RunLanes32("add.rp.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", a, b), (Words{next, one | 1u << 31}));
  EXPECT_EQ(RunLanes32("add.rm.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", a, b), (Words{one, next | 1u << 31}));
  EXPECT_EQ(RunLanes32("div.rz.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {F(2)}, {F(3)}), (Words{0x3f2aaaaa}));
  EXPECT_EQ(RunLanes32("div.rn.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {F(2)}, {F(3)}), (Words{0x3f2aaaab}));
  EXPECT_EQ(RunLanes32("sqrt.rp.f32 %f0, %fa; mov.b32 %r1, %f0;", {F(2)}), (Words{0x3fb504f4}));
  EXPECT_EQ(RunLanes("add.rp.f64 %d0, %da, %db; mov.b64 %q0, %d0;", {D(1)}, {D(0x1p-80)}),
            (std::vector<uint64_t>{D(1) + 1}));
}

TEST(Float, FusedRoundsOnce) {
  std::vector<uint64_t> a, b, c;
  Words expected;
  uint32_t state = 1;
  auto next = [&] {
    state = state * 1664525u + 1013904223u;
    return __builtin_bit_cast(float, (state & 0x807fffffu) | (100u + (state >> 9 & 63)) << 23);
  };
  for (int i = 0; i < 512; ++i) {
    const float x = next(), y = next(), z = next();
    a.push_back(F(x));
    b.push_back(F(y));
    c.push_back(F(z));
    expected.push_back(static_cast<uint32_t>(F(std::fma(x, y, z))));
  }
  EXPECT_EQ(RunLanes32("fma.rn.f32 %f0, %fa, %fb, %fc; mov.b32 %r1, %f0;", a, b, c), expected);
}

TEST(Float, MinMaxOfNanAndZeros) {
  EXPECT_EQ(RunLanes32("min.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {F(kQuiet), F(0), F(kQuiet), F(3)},
                       {F(1), F(-0.0f), F(kQuiet), F(2)}),
            (Words{0x3f800000, 0x80000000, kNan, 0x40000000}));
  EXPECT_EQ(RunLanes32("max.NaN.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {F(kQuiet), F(-0.0f)}, {F(1), F(0)}),
            (Words{kNan, 0}));
  EXPECT_EQ(RunLanes32("setp.lt.f32 %p1, %fa, %fb; setp.ltu.f32 %p2, %fa, %fb; selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, "
                       "2, 0, %p2; or.b32 %r1, %r1, %r2;",
                       {F(kQuiet), F(1), F(2)}, {F(1), F(2), F(1)}),
            (Words{2, 3, 0}));
}

TEST(Float, Approximations) {
  EXPECT_EQ(RunLanes32("ex2.approx.f32 %f0, %fa; mov.b32 %r1, %f0;", {F(3), F(-kInf), F(kInf)}),
            (Words{0x41000000, 0, 0x7f800000}));
  EXPECT_EQ(RunLanes32("rsqrt.approx.f32 %f0, %fa; mov.b32 %r1, %f0;", {F(4), F(0), F(-1)}),
            (Words{0x3f000000, 0x7f800000, kNan}));
  EXPECT_EQ(RunLanes32("lg2.approx.f32 %f0, %fa; mov.b32 %r1, %f0;", {F(8), F(0)}), (Words{0x40400000, 0xff800000}));
  EXPECT_EQ(RunLanes32("div.approx.f32 %f0, %fa, %fb; mov.b32 %r1, %f0;", {F(1)}, {F(0x1.8p126f)}), (Words{0}));
}

TEST(Compare, CombinesAndPairs) {
  const std::string text = R"(
  setp.eq.s32 %p1, %c0, 1;
  setp.lt.and.s32 %p2|%p3, %a0, %b0, %p1;
  selp.u32 %r1, 1, 0, %p2;
  selp.u32 %r2, 2, 0, %p3;
  or.b32 %r1, %r1, %r2;)";
  EXPECT_EQ(RunLanes32(text, {1, 2, 0xffffffff, 1}, {2, 1, 0, 2}, {1, 1, 1, 0}), (Words{1, 2, 1, 0}));
  EXPECT_EQ(RunLanes32("setp.lo.u32 %p1, %a0, %b0; selp.u32 %r1, 1, 0, !%p1;", {1, 2, 3}, {2, 2, 2}), (Words{0, 1, 1}));
  EXPECT_EQ(RunLanes32("set.gt.u32.f32 %r1, %fa, %fb;", {F(2), F(kQuiet)}, {F(1), F(1)}), (Words{0xffffffff, 0}));
  EXPECT_EQ(RunLanes32("slct.u32.s32 %r1, %a0, %b0, %c0;", {1, 1}, {2, 2}, {0, 0xffffffff}), (Words{1, 2}));
}

TEST(Convert, FloatToInteger) {
  EXPECT_EQ(RunLanes32("cvt.rzi.s32.f32 %r1, %fa;", {F(-1.9f), F(3e9f), F(kQuiet), F(-3e9f)}),
            (Words{0xffffffff, 0x7fffffff, 0, 0x80000000}));
  EXPECT_EQ(RunLanes32("cvt.rni.s32.f32 %r1, %fa;", {F(2.5f), F(3.5f), F(-0.5f)}), (Words{2, 4, 0}));
  EXPECT_EQ(RunLanes32("cvt.rpi.u32.f32 %r1, %fa;", {F(2.1f), F(-5), F(5e9f)}), (Words{3, 0, 0xffffffff}));
  EXPECT_EQ(RunLanes("cvt.rzi.s64.f64 %q0, %da;", {D(-7.9), D(1e300), D(std::nan(""))}),
            (std::vector<uint64_t>{~0ull - 6, 0x7fffffffffffffffull, 1ull << 63}));
  EXPECT_EQ(RunLanes32("cvt.rmi.f32.f32 %f0, %fa; mov.b32 %r1, %f0;", {F(-1.5f)}),
            (Words{static_cast<uint32_t>(F(-2))}));
}

TEST(Convert, IntegerToFloatAndWidths) {
  EXPECT_EQ(RunLanes32("cvt.rn.f32.u64 %f0, %a; mov.b32 %r1, %f0;", {~0ull, (1ull << 24) + 1}),
            (Words{0x5f800000, 0x4b800000}));
  EXPECT_EQ(RunLanes32("cvt.rp.f32.s32 %f0, %a0; mov.b32 %r1, %f0;", {(1u << 24) + 1}), (Words{0x4b800001}));
  EXPECT_EQ(RunLanes32("cvt.s32.s8 %r1, %a0;", {0x80, 0x17f}), (Words{0xffffff80, 0x7f}));
  EXPECT_EQ(RunLanes32("cvt.u32.u8 %r1, %a0;", {0x1ff}), (Words{0xff}));
  EXPECT_EQ(RunLanes32("cvt.sat.s8.s32 %r1, %a0;", {300, 0xfffff000}), (Words{127, 0xffffff80}));
  EXPECT_EQ(RunLanes("cvt.s64.s32 %q0, %a0;", {0xffffffff}), (std::vector<uint64_t>{~0ull}));
  EXPECT_EQ(RunLanes32("cvt.pack.sat.u8.s32.b32 %r1, %a0, %b0, %c0;", {300}, {0xffffffff}, {0x1234}),
            (Words{0x1234ff00}));
}

TEST(Convert, NarrowFloats) {
  const std::string half = "cvt.rn.f16.f32 %h0, %fa; cvt.u32.u16 %r1, %h0;";
  EXPECT_EQ(RunLanes32(half, {F(1), F(65519), F(65520), F(0x1p-24f), F(0x1p-25f), F(0x1.8p-25f), F(kQuiet), F(2049)}),
            (Words{0x3c00, 0x7bff, 0x7c00, 1, 0, 1, 0x7fff, 0x6800}));
  EXPECT_EQ(RunLanes32("cvt.rz.f16.f32 %h0, %fa; cvt.u32.u16 %r1, %h0;", {F(1e6f), F(1.9999f)}),
            (Words{0x7bff, 0x3fff}));
  const std::string brain = "cvt.rn.bf16.f32 %h0, %fa; cvt.u32.u16 %r1, %h0;";
  EXPECT_EQ(RunLanes32(brain, {F(1), 0x3f808000, 0x3f818000, F(kQuiet), 0x7f7fffff}),
            (Words{0x3f80, 0x3f80, 0x3f82, 0x7fff, 0x7f80}));
  EXPECT_EQ(RunLanes32("cvt.rn.bf16x2.f32 %r1, %fa, %fb;", {F(1)}, {F(2)}), (Words{0x3f804000}));
  EXPECT_EQ(RunLanes32("cvt.f32.f16 %f0, %ah; mov.b32 %r1, %f0;", {0x3c00, 1, 0xfc00, 0x7e01}),
            (Words{0x3f800000, 0x33800000, 0xff800000, kNan}));
  EXPECT_EQ(RunLanes32("cvt.rna.tf32.f32 %r1, %fa;", {0x3f801000, 0x3f800fff}), (Words{0x3f802000, 0x3f800000}));
}

TEST(Convert, EightBitFloats) {
  const std::string e4m3 = "cvt.rn.satfinite.e4m3x2.f32 %h0, %fa, %fb; cvt.u32.u16 %r1, %h0;";
  EXPECT_EQ(RunLanes32(e4m3, {F(1), F(1000), F(kQuiet), F(-kInf)}, {F(-2), F(464), F(0x1p-9f), F(0x1p-10f)}),
            (Words{0x38c0, 0x7e7e, 0x7f01, 0xfe00}));
  const std::string e5m2 = "cvt.rn.satfinite.e5m2x2.f32 %h0, %fa, %fb; cvt.u32.u16 %r1, %h0;";
  EXPECT_EQ(RunLanes32(e5m2, {F(1)}, {F(1e9f)}), (Words{0x3c7b}));
  EXPECT_EQ(RunLanes32("cvt.rn.f16x2.e4m3x2 %r1, %ah;", {0x38c0, 0x7f01}), (Words{0x3c00c000, 0x7fff1800}));
}

TEST(Narrow, HalfArithmetic) {
  EXPECT_EQ(RunLanes32("add.rn.f16x2 %r1, %a0, %b0;", {0x3c003c00}, {0x40007bff}), (Words{0x42007bff}));
  EXPECT_EQ(RunLanes32("mul.rn.bf16x2 %r1, %a0, %b0;", {0x40003f80}, {0x40404040}), (Words{0x40c04040}));
  EXPECT_EQ(RunLanes32("fma.rn.relu.f16x2 %r1, %a0, %b0, %c0;", {0xbc003c00}, {0x3c003c00}, {0}), (Words{0x00003c00}));
  EXPECT_EQ(RunLanes32("max.NaN.f16x2 %r1, %a0, %b0;", {0x7e003c00}, {0x3c004000}), (Words{0x7fff4000}));
  EXPECT_EQ(
      RunLanes32(
          "setp.gt.f16x2 %p1|%p2, %a0, %b0; selp.u32 %r1, 1, 0, %p1; selp.u32 %r2, 2, 0, %p2; or.b32 %r1, %r1, %r2;",
          {0x3c004000}, {0x40003c00}),
      (Words{1}));
}

TEST(Move, PacksAndUnpacks) {
  EXPECT_EQ(RunLanes32("mov.b32 {%h0, %h1}, %a0; mov.b32 %r1, {%h1, %h0};", {0x12345678}), (Words{0x56781234}));
  EXPECT_EQ(RunLanes("mov.b64 {%r1, %r2}, %a; mov.b64 %q0, {%r2, %r1};", {0x0123456789abcdefull}),
            (std::vector<uint64_t>{0x89abcdef01234567ull}));
  EXPECT_EQ(RunLanes32("mov.u32 %r1, %laneid;", {0, 0, 0}), (Words{0, 1, 2}));
}

}  // namespace
}  // namespace solstice::device
