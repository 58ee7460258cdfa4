// Matrix instructions of lanes that are missing, of odd numbers, and those that are refused.
#include "runtime/device/emulator/alu.h"
#include "runtime/device/emulator/emulator_matrix_test_support.h"

namespace solstice::device {
namespace {

using ::testing::HasSubstr;

TEST(MatrixEdges, MmaOfLanesThatExitedCountsZeros) {
  const Form f{16, 8, 8, "f32", "tf32", "tf32", "f32", "", ""};
  const Shares s(f);
  // Ones everywhere: lanes 4 to 31 end, which leaves row 0 of a and c and column 0 of b.
  const std::vector<uint64_t> in(static_cast<size_t>(s.a.registers() + s.b.registers() + s.c.registers()) * 32,
                                 __builtin_bit_cast(uint32_t, 1.0f));
  const std::vector<uint64_t> out =
      RunMatrix(MatrixKernel(f.Name(), s.d, s.a, s.b, s.c, "setp.gt.u32 %p, %t, 3;\n@%p exit;\n"), in, s.d.registers());
  const uint64_t one = __builtin_bit_cast(uint32_t, 1.0f), nine = __builtin_bit_cast(uint32_t, 9.0f);
  EXPECT_EQ(out[0], nine);      // row 0, column 0
  EXPECT_EQ(out[32], one);      // row 0, column 1
  EXPECT_EQ(out[64 + 1], one);  // row 8, column 2
  EXPECT_EQ(out[4], uint64_t{0});
}

TEST(MatrixEdges, DivergedLanesMeet) {
  const Form f{16, 8, 16, "f32", "f16", "f16", "f32", "", ""};
  const Shares s(f);
  std::mt19937_64 random(3);
  const std::vector<uint64_t> in = RandomWords(s, random);
  const std::string straight = MatrixKernel(f.Name(), s.d, s.a, s.b, s.c);
  // The same instruction stands on both sides of a branch.
  const std::string registers =
      base::StrCat(Registers("d", 4), ", ", Registers("a", 4), ", ", Registers("b", 2), ", ", Registers("c", 4), ";\n");
  std::string forked = MatrixKernel(f.Name(), s.d, s.a, s.b, s.c,
                                    "and.b32 %t, %t, 1;\nsetp.eq.u32 %p, %t, 0;\n@%p bra EVEN;\n" + f.Name() + " " +
                                        registers + "bra JOIN;\nEVEN:\n");
  forked.insert(forked.find("st.global"), "JOIN:\n");
  EXPECT_EQ(RunMatrix(straight, in, 4), RunMatrix(forked, in, 4));
}

// A lane under a false guard never comes; neither do lanes that execute another shape.
TEST(MatrixEdges, LanesThatNeverMeet) {
  const Form f{16, 8, 16, "f32", "f16", "f16", "f32", "", ""};
  const Shares s(f);
  const std::vector<uint64_t> in(10 * 32);
  auto fault = [&](const std::string& ptx) {
    Machine machine(ptx);
    const Address from = machine.Buffer(in), to = machine.Buffer(std::vector<uint64_t>(4 * 32));
    return machine.Run("k", 1, 32, {Argument(from), Argument(to)});
  };
  std::string guarded = MatrixKernel(f.Name(), s.d, s.a, s.b, s.c, "setp.eq.u32 %p, %t, 5;\n@!%p ");
  guarded.insert(guarded.rfind("ret;"), "bar.warp.sync 0xffffffff;\n");
  RunOutcome outcome = fault(guarded);
  EXPECT_EQ(outcome.fault().kind(), Fault::BARRIER) << outcome.reason();
  EXPECT_THAT(outcome.reason(), HasSubstr("never arrive"));

  std::string other = MatrixKernel(f.Name(), s.d, s.a, s.b, s.c,
                                   "setp.eq.u32 %p, %t, 5;\n@!%p bra OTHER;\n"
                                   "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%d0, %d1, %d2, %d3}, {%a0, %a1}, "
                                   "{%b0}, {%c0, %c1, %c2, %c3};\nOTHER:\n");
  outcome = fault(other);
  EXPECT_EQ(outcome.fault().kind(), Fault::BARRIER) << outcome.reason();
  EXPECT_THAT(outcome.reason(), HasSubstr("another matrix instruction"));
}

TEST(MatrixEdges, SumsAreRoundedOnceAndNansAreCanonical) {
  // Element 0 of d when every register of a, of b and of c holds the same bits.
  auto run = [](const Form& f, uint64_t a, uint64_t b, uint64_t c) {
    const Shares s(f);
    std::vector<uint64_t> in;
    in.insert(in.end(), static_cast<size_t>(s.a.registers()) * 32, a);
    in.insert(in.end(), static_cast<size_t>(s.b.registers()) * 32, b);
    in.insert(in.end(), static_cast<size_t>(s.c.registers()) * 32, c);
    return RunMatrix(MatrixKernel(f.Name(), s.d, s.a, s.b, s.c), in, s.d.registers())[0];
  };
  const Form wide{16, 8, 8, "f32", "f16", "f16", "f32", "", ""}, narrow{16, 8, 8, "f16", "f16", "f16", "f16", "", ""};
  // Eight products of 2^-26: together one unit in the last place of 1, one by one nothing.
  EXPECT_EQ(run(wide, 0x0800'0800, 0x0800'0800, __builtin_bit_cast(uint32_t, 1.0f)),
            __builtin_bit_cast(uint32_t, 1.0f + 0x1p-23f));
  EXPECT_EQ(run(wide, 0x7c00'7c00, 0, 0), uint64_t{0x7fffffff});
  EXPECT_EQ(run(wide, 0x7c00'7c00, 0xbc00'3c00, 0), uint64_t{0x7fffffff});
  EXPECT_EQ(run(wide, 0x7c00'7c00, 0x3c00'3c00, 0), uint64_t{0x7f800000});
  EXPECT_EQ(run(narrow, 0x7c00'7c00, 0, 0), uint64_t{0x7fff'7fff});
  EXPECT_EQ(run(narrow, 0x7bff'7bff, 0x3c00'3c00, 0), uint64_t{0x7c00'7c00});
  EXPECT_EQ(run({16, 8, 4, "f64", "f64", "f64", "f64", "", ""}, 0x7ff0'0000'0000'0000, 0, 0),
            uint64_t{0xfff8'0000'0000'0000});
  // The low bits of tf32 do not count, not even to tell NaN from infinity.
  EXPECT_EQ(run({16, 8, 4, "f32", "tf32", "tf32", "f32", "", ""}, 0x7f80'1fff, 0x3f80'1fff, 0), uint64_t{0x7f800000});
  EXPECT_EQ(run({16, 8, 16, "f32", "e4m3", "e4m3", "f32", "", ""}, 0x7f7f7f7f, 0x38383838, 0), uint64_t{0x7fffffff});
  EXPECT_EQ(run({16, 8, 16, "f32", "e5m2", "e5m2", "f32", "", ""}, 0x7c7c7c7c, 0x3c3c3c3c, 0), uint64_t{0x7f800000});
}

// Plain x86-64 and AVX2 give the same bits, whatever the registers hold.
TEST(MatrixEdges, BothInstructionSetsAgree) {
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma") || !__builtin_cpu_supports("bmi2")) {
    GTEST_SKIP() << "no AVX2 here";
  }
  using E = Element;
  struct Kinds {
    int m, n, k;
    E ab, cd;
  };
  std::mt19937_64 random(11);
  for (const Kinds& kinds :
       {Kinds{16, 8, 16, E::kF16, E::kF32}, Kinds{16, 8, 16, E::kF16, E::kF16}, Kinds{16, 8, 16, E::kBf16, E::kF32},
        Kinds{16, 8, 8, E::kTf32, E::kF32}, Kinds{16, 8, 16, E::kF64, E::kF64}, Kinds{16, 8, 32, E::kU8, E::kS32},
        Kinds{16, 8, 64, E::kS4, E::kS32}, Kinds{16, 8, 8, E::kB1, E::kS32}, Kinds{16, 8, 32, E::kE5m2, E::kF16},
        Kinds{16, 8, 32, E::kE2m1, E::kF32}}) {
    const int k = kinds.ab == E::kB1 ? kinds.k * 32 : kinds.k;
    const Fragment a = MakeFragment({MatrixRole::kA, kinds.ab, kinds.m, kinds.n, k});
    const Fragment b = MakeFragment({MatrixRole::kB, kinds.ab, kinds.m, kinds.n, k});
    const Fragment c = MakeFragment({MatrixRole::kAccumulator, kinds.cd, kinds.m, kinds.n, k});
    MatrixPlan plan;
    plan.m = kinds.m;
    plan.n = kinds.n;
    plan.k = kinds.k;
    plan.a = &a;
    plan.b = &b;
    plan.c = plan.d = &c;
    for (int round = 0; round < 20; ++round) {
      alignas(64) uint64_t words[3][kMostFragmentRegisters][32], results[2][kMostFragmentRegisters][32] = {};
      for (auto& operand : words) {
        for (auto& word : operand) {
          for (uint64_t& lanes : word) lanes = random();
        }
      }
      const IsaTable* const tables[] = {&BaselineIsa(), &Avx2Isa()};
      for (int table = 0; table < 2; ++table) {
        MatrixRegisters registers;
        for (int r = 0; r < kMostFragmentRegisters; ++r) {
          registers.a[r] = reinterpret_cast<const uint8_t*>(words[0][r]);
          registers.b[r] = reinterpret_cast<const uint8_t*>(words[1][r]);
          registers.c[r] = reinterpret_cast<const uint8_t*>(words[2][r]);
          registers.d[r] = reinterpret_cast<uint8_t*>(results[table][r]);
        }
        tables[table]->multiply(plan)(plan, registers);
      }
      ASSERT_EQ(std::memcmp(results[0], results[1], sizeof results[0]), 0) << static_cast<int>(kinds.ab);
    }
  }
}

TEST(MatrixEdges, RefusedByName) {
  const std::string four = "{%r0, %r1, %r2, %r3}", two = "{%r0, %r1}";
  for (const std::string& text : {
           "mma.sp.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + four + ", " + two + ", " + two + ", " + four +
               ", %r4, 0x0",
           "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X.f32.e4m3.e4m3.f32.ue8m0 " +
               four + ", " + four + ", " + two + ", " + four + ", %r0, {0, 0}, %r0, {0, 0}",
           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f16 " + four + ", " + four + ", " + two + ", " + two,
           "mma.sync.aligned.m16n8k16.col.col.f32.f16.f16.f32 " + four + ", " + four + ", " + two + ", " + four,
           "mma.sync.aligned.m16n8k16.row.col.satfinite.f32.f16.f16.f32 " + four + ", " + four + ", " + two + ", " +
               four,
           "mma.sync.aligned.m16n8k32.row.col.f32.e2m1.e2m1.f32 " + four + ", " + four + ", " + two + ", " + four,
           "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + four + ", " + two + ", " + two + ", " + four,
           "mma.aligned.m16n8k16.row.col.f32.f16.f16.f32 " + four + ", " + four + ", " + two + ", " + four,
           "mma.sync.aligned.m999999999999n8k16.row.col.f32.f16.f16.f32 " + four + ", " + four + ", " + two + ", " +
               four,
           std::string("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 %r0"),
           std::string("wmma.load.a.sync.aligned.row.m8n8k32.s4 {%r0}, [%q0]"),
           std::string("wmma.load.a.sync.aligned.row.m16n16k16.f32 {%r0}, [%q0]"),
           std::string("ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {%r0, %r1}, [%r2]"),
           std::string("ldmatrix.sync.aligned.m8n16.x1.shared.b8x16.b4x16_p64 {%r0}, [%r2]"),
           std::string("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r0}, [%r2]"),
           std::string("ldmatrix.sync.aligned.m8n8.x1.global.b16 {%r0}, [%q0]"),
           std::string("stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [%r2], {%r0}"),
           std::string("movmatrix.sync.aligned.m8n8.b16 %r0, %r1"),
       }) {
    Machine machine(Wrap(".visible .entry k()\n{\n.reg .b32 %r<8>;\n.reg .b64 %q<8>;\n" + text + ";\nret;\n}\n"));
    const RunOutcome outcome = machine.Run("k", 1, 32, {});
    EXPECT_EQ(outcome.kind(), RunOutcome::NEEDS_DEVICE) << text << ": " << outcome.reason();
    EXPECT_THAT(outcome.reason(), HasSubstr(text.substr(0, text.find(' ')).substr(0, 60)));
  }
}

}  // namespace
}  // namespace solstice::device
