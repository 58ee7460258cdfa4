// Divergence, calls, synchronisation, atomics, limits and what device code prints.
#include <set>

#include "runtime/base/file.h"
#include "runtime/device/emulator/emulator_test_support.h"
#include "runtime/device/emulator/float_bits.h"

namespace solstice::device {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Words = std::vector<uint32_t>;

TEST(Control, DivergentLoopReconverges) {
  // Lane i goes round i times; afterwards all lanes vote together.
  const std::string text = R"(
  mov.u32 %r1, 0;
LOOP:
  setp.ge.u32 %p1, %r1, %r0;
  @%p1 bra DONE;
  add.u32 %r1, %r1, 1;
  bra LOOP;
DONE:
  activemask.b32 %r2;
  setp.eq.u32 %p2, %r2, 0xff;
  selp.u32 %r3, 100, 0, %p2;
  add.u32 %r1, %r1, %r3;)";
  EXPECT_EQ(RunLanes32(text, std::vector<uint64_t>(8)), (Words{100, 101, 102, 103, 104, 105, 106, 107}));
}

TEST(Control, ShuffleInBothBranchesMeets) {
  const std::string text = R"(
  and.b32 %r2, %r0, 1;
  setp.eq.u32 %p1, %r2, 0;
  @%p1 bra EVEN;
  shfl.sync.idx.b32 %r1, %r0, 2, 31, 0xff;
  bra DONE;
EVEN:
  shfl.sync.idx.b32 %r1, %r0, 3, 31, 0xff;
DONE:)";
  EXPECT_EQ(RunLanes32(text, std::vector<uint64_t>(8)), (Words{3, 2, 3, 2, 3, 2, 3, 2}));
}

TEST(Control, ShuffleModes) {
  const std::vector<uint64_t> lanes(32);
  const Words up =
      RunLanes32("shfl.sync.up.b32 %r1|%p1, %r0, 1, 0, -1; selp.u32 %r2, 100, 0, %p1; add.u32 %r1, %r1, %r2;", lanes);
  EXPECT_EQ(up[0], 0u);
  EXPECT_EQ(up[5], 104u);
  const Words down = RunLanes32("shfl.sync.down.b32 %r1, %r0, 4, 0x181f, -1;", lanes);  // segments of 8
  EXPECT_EQ(down[3], 7u);
  EXPECT_EQ(down[5], 5u);
  EXPECT_EQ(RunLanes32("shfl.sync.bfly.b32 %r1, %r0, 16, 31, -1;", lanes)[3], 19u);
}

TEST(Control, VotesMatchesAndReductions) {
  const std::vector<uint64_t> lanes(4);
  EXPECT_EQ(RunLanes32("setp.gt.u32 %p1, %r0, 1; vote.sync.ballot.b32 %r1, %p1, 15;", lanes), (Words{12, 12, 12, 12}));
  EXPECT_EQ(RunLanes32("and.b32 %r2, %r0, 1; match.any.sync.b32 %r1, %r2, 15;", lanes), (Words{5, 10, 5, 10}));
  EXPECT_EQ(RunLanes32("redux.sync.add.s32 %r1, %r0, 15;", lanes), (Words{6, 6, 6, 6}));
  EXPECT_EQ(RunLanes32("setp.ge.u32 %p1, %r0, 0; vote.sync.all.pred %p2, %p1, 15; selp.u32 %r1, 1, 0, %p2;", lanes),
            (Words{1, 1, 1, 1}));
  EXPECT_EQ(RunLanes32("elect.sync %r1|%p1, 15; selp.u32 %r1, 7, 0, %p1;", lanes), (Words{7, 0, 0, 0}));
}

TEST(Control, JumpTable) {
  const std::string text = R"(
TABLE: .branchtargets L0, L1, L2;
  brx.idx %a0, TABLE;
L0: mov.u32 %r1, 10; bra DONE;
L1: mov.u32 %r1, 11; bra DONE;
L2: mov.u32 %r1, 12;
DONE:)";
  EXPECT_EQ(RunLanes32(text, {2, 0, 1, 2}), (Words{12, 10, 11, 12}));
}

const char kFactorial[] = R"(
.func (.param .b32 result) factorial(.param .b32 n)
{
  .reg .pred %p<2>;
  .reg .b32 %r<5>;
  ld.param.u32 %r1, [n];
  mov.u32 %r2, 1;
  setp.le.u32 %p1, %r1, 1;
  @%p1 bra DONE;
  add.u32 %r3, %r1, -1;
  {
  .param .b32 argument;
  st.param.b32 [argument], %r3;
  .param .b32 value;
  call (value), factorial, (argument);
  ld.param.b32 %r4, [value];
  }
  mul.lo.u32 %r2, %r1, %r4;
DONE:
  st.param.b32 [result], %r2;
  ret;
}
.visible .entry k(.param .u64 out, .param .u32 base)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r3, [base];
  mov.u32 %r1, %tid.x;
  add.u32 %r3, %r3, %r1;
  {
  .param .b32 argument;
  st.param.b32 [argument], %r3;
  .param .b32 value;
  call (value), factorial, (argument);
  ld.param.b32 %r2, [value];
  }
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r2;
  ret;
}
)";

TEST(Control, RecursionAndStackOverflow) {
  Machine machine(Wrap(kFactorial));
  const Address out = machine.Buffer(Words(8));
  const RunOutcome good = machine.Run("k", 1, 8, {Argument(out), Argument(uint32_t{0})});
  ASSERT_EQ(good.kind(), RunOutcome::OK) << good.reason();
  EXPECT_EQ(machine.Read<uint32_t>(out, 8), (Words{1, 1, 2, 6, 24, 120, 720, 5040}));
  const RunOutcome bad = machine.Run("k", 1, 8, {Argument(out), Argument(uint32_t{100000000})});
  EXPECT_EQ(bad.fault().kind(), Fault::STACK_OVERFLOW);
  EXPECT_THAT(bad.reason(), HasSubstr("overflows its stack"));
}

TEST(Control, TrapAndInvalidLaunch) {
  Machine machine(Wrap(".visible .entry k()\n.maxntid 64, 1, 1\n{\n .reg .b32 %r<2>;\n trap;\n ret;\n}\n"));
  EXPECT_EQ(machine.Run("k", 1, 32, {}).fault().kind(), Fault::TRAP);
  EXPECT_THAT(machine.Run("k", 1, 128, {}).reason(), AllOf(HasSubstr("128"), HasSubstr("64")));
  EXPECT_EQ(machine.Run("k", 1, 128, {}).fault().kind(), Fault::INVALID_LAUNCH);
  EXPECT_EQ(machine.Run("k", 1, 2048, {}).fault().kind(), Fault::INVALID_LAUNCH);
  EXPECT_THAT(machine.Run("k", 1, 32, {}, 232449).reason(), AllOf(HasSubstr("232449"), HasSubstr("232448")));
  EXPECT_EQ(machine.Run("k", 0, 32, {}).fault().kind(), Fault::INVALID_LAUNCH);
}

TEST(Control, EnqueueRefusesWhatDoesNotFit) {
  Machine machine(Wrap(kFactorial));
  LaunchParameters launch;
  launch.entry = "kk";
  EXPECT_EQ(machine.device().EnqueueLaunch(*machine.module(), launch).code(), absl::StatusCode::kNotFound);
  launch.entry = "k";
  EXPECT_EQ(machine.device().EnqueueLaunch(*machine.module(), launch).code(), absl::StatusCode::kInvalidArgument);
}

// Warp 1 sets a flag that warp 0 spins on; then all meet.
const char kSpin[] = R"(
.visible .entry k(.param .u64 flag)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [flag];
  mov.u32 %r1, %tid.x;
  setp.ge.u32 %p1, %r1, 32;
  @%p1 bra SET;
WAIT:
  ld.volatile.global.u32 %r2, [%rd1];
  setp.eq.u32 %p2, %r2, 0;
  @%p2 bra WAIT;
  bra MEET;
SET:
  mov.u32 %r3, 1;
  st.volatile.global.u32 [%rd1], %r3;
MEET:
  bar.sync 0;
  atom.global.add.u32 %r4, [%rd1+4], 1;
  ret;
}
)";

TEST(Control, SpinBetweenWarpsMakesProgress) {
  Machine machine(Wrap(kSpin));
  const Address flag = machine.Buffer(Words(2));
  const RunOutcome outcome = machine.Run("k", 1, 64, {Argument(flag)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint32_t>(flag, 2), (Words{1, 64}));
}

TEST(Control, SpinBetweenLanesOfAWarpMakesProgress) {
  Machine machine(Wrap(R"(
.visible .entry k(.param .u64 lock)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [lock];
TRY:
  atom.global.cas.b32 %r1, [%rd1], 0, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra TRY;
  ld.volatile.global.u32 %r2, [%rd1+4];
  add.u32 %r2, %r2, 1;
  st.volatile.global.u32 [%rd1+4], %r2;
  membar.gl;
  atom.global.exch.b32 %r3, [%rd1], 0;
  ret;
}
)"));
  const Address lock = machine.Buffer(Words(2));
  const RunOutcome outcome = machine.Run("k", 3, 64, {Argument(lock)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint32_t>(lock, 2), (Words{0, 192}));
}

TEST(Barrier, ExitedThreadsDoNotHoldItAndDeadlockIsFound) {
  const char text[] = R"(
.visible .entry k(.param .u32 leave)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  ld.param.u32 %r1, [leave];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, 32;
  @!%p1 bra MEET;
  setp.eq.u32 %p2, %r1, 1;
  @%p2 exit;
  bar.sync 1;
MEET:
  bar.sync 0;
  ret;
}
)";
  Machine machine{Wrap(text)};
  EXPECT_EQ(machine.Run("k", 1, 64, {Argument(uint32_t{1})}).kind(), RunOutcome::OK);
  const RunOutcome outcome = machine.Run("k", 1, 64, {Argument(uint32_t{0})});
  EXPECT_EQ(outcome.fault().kind(), Fault::BARRIER);
  EXPECT_THAT(outcome.reason(), HasSubstr("waits at barrier"));
}

TEST(Barrier, ReductionAndProducerConsumer) {
  Machine machine(Wrap(R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<2>;
  .shared .align 4 .u32 s;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 40;
  bar.red.popc.u32 %r2, 0, %p1;
  setp.ge.u32 %p2, %r1, 32;
  @%p2 bra CONSUME;
  st.shared.u32 [s], 77;
  bar.arrive 3, 64;
  bra DONE;
CONSUME:
  bar.sync 3, 64;
  ld.shared.u32 %r3, [s];
  st.global.v2.u32 [%rd1], {%r2, %r3};
DONE:
  ret;
}
)"));
  const Address out = machine.Buffer(Words(2));
  const RunOutcome outcome = machine.Run("k", 1, 64, {Argument(out)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint32_t>(out, 2), (Words{40, 77}));
}

TEST(Atomics, AcrossBlocksAndTypes) {
  EmulatorOptions options;
  options.threads = 4;
  Machine machine(Wrap(R"(
.visible .entry k(.param .u64 p)
{
  .reg .b32 %r<8>;
  .reg .f32 %f<3>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  mov.u32 %r1, %tid.x;
  red.global.add.u32 [%rd1], 1;
  red.global.max.s32 [%rd1+4], %r1;
  mov.f32 %f1, 0f3F800000;
  red.global.add.f32 [%rd1+8], %f1;
  mov.b32 %r2, 0x3c003c00;
  red.global.add.noftz.f16x2 [%rd1+12], %r2;
  atom.global.inc.u32 %r3, [%rd1+16], 9;
  ret;
}
)"),
                  options);
  const Address p = machine.Buffer(Words{0, 0x80000000, 0, 0, 0});
  const RunOutcome outcome = machine.Run("k", 16, 64, {Argument(p)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint32_t>(p, 5), (Words{1024, 63, 0x44800000, 0x64006400, 1024 % 10}));
}

const char kForever[] = ".visible .entry k()\n{\n L: bra L;\n}\n";

TEST(Limits, TimeoutInstructionLimitAndBudget) {
  Machine machine{Wrap(kForever)};
  RunLimits limits;
  limits.timeout = std::chrono::milliseconds(50);
  RunOutcome outcome = machine.Run("k", 2, 32, {}, 0, limits);
  EXPECT_EQ(outcome.kind(), RunOutcome::TIMEOUT);
  EXPECT_THAT(outcome.reason(), AllOf(HasSubstr("k was still running after 0.05 s"), HasSubstr("block (")));

  limits.timeout = std::chrono::minutes(10);
  limits.instruction_budget = 1e6;
  outcome = machine.Run("k", 1, 32, {}, 0, limits);
  EXPECT_EQ(outcome.kind(), RunOutcome::OVER_BUDGET);
  EXPECT_GT(outcome.estimated_instructions(), 1e6);

  EmulatorOptions options;
  options.block_instruction_limit = 100000;
  Machine small(Wrap(kForever), options);
  limits.instruction_budget = 0;
  EXPECT_EQ(small.Run("k", 1, 32, {}, 0, limits).kind(), RunOutcome::TIMEOUT);
}

TEST(Limits, BudgetIsEstimatedFromTheFirstBlocks) {
  Machine machine(Wrap(".visible .entry k()\n{\n .reg .b32 %r<2>;\n mov.u32 %r1, 1;\n ret;\n}\n"));
  RunLimits limits;
  limits.instruction_budget = 63999;
  EXPECT_EQ(machine.Run("k", 1000, 32, {}, 0, limits).kind(), RunOutcome::OVER_BUDGET);
  limits.instruction_budget = 64000;
  const RunOutcome outcome = machine.Run("k", 1000, 32, {}, 0, limits);
  EXPECT_EQ(outcome.kind(), RunOutcome::OK);
  EXPECT_EQ(outcome.instructions(), 64000);
}

TEST(Unknown, NeedsADeviceOnlyWhereReached) {
  Machine machine(Wrap(R"(
.visible .entry good() { ret; }
.visible .entry bad()
{
  wgmma.fence.sync.aligned;
  ret;
}
)"));
  EXPECT_EQ(machine.Run("good", 1, 32, {}).kind(), RunOutcome::OK);
  const RunOutcome outcome = machine.Run("bad", 1, 32, {});
  EXPECT_EQ(outcome.kind(), RunOutcome::NEEDS_DEVICE);
  EXPECT_THAT(outcome.reason(), HasSubstr("wgmma.fence.sync.aligned"));
}

TEST(Output, PrintfAndAssert) {
  Machine machine(Wrap(R"(
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 a);
.extern .func __assertfail (.param .b64 a, .param .b64 b, .param .b32 c, .param .b64 d, .param .b64 e);
.global .align 1 .b8 format[15] = {37, 100, 32, 37, 53, 46, 50, 102, 32, 37, 99, 37, 37, 10, 0};
.global .align 1 .b8 text[6] = {120, 32, 62, 32, 48, 0};
.global .align 1 .b8 name[5] = {97, 46, 99, 117, 0};
.visible .entry k(.param .u32 fail)
{
  .local .align 8 .b8 depot[24];
  .reg .pred %p<2>;
  .reg .b32 %r<4>;
  .reg .b64 %rd<8>;
  ld.param.u32 %r1, [fail];
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra FAIL;
  mov.u64 %rd1, depot;
  cvta.local.u64 %rd2, %rd1;
  st.local.u32 [depot], -5;
  st.local.f64 [depot+8], 0d3FF8000000000000;
  st.local.u32 [depot+16], 65;
  mov.u64 %rd3, format;
  cvta.global.u64 %rd4, %rd3;
  {
  .param .b64 p0;
  st.param.b64 [p0], %rd4;
  .param .b64 p1;
  st.param.b64 [p1], %rd2;
  .param .b32 r0;
  call.uni (r0), vprintf, (p0, p1);
  ld.param.b32 %r2, [r0];
  }
  ret;
FAIL:
  mov.u64 %rd5, text;
  mov.u64 %rd6, name;
  {
  .param .b64 q0;
  st.param.b64 [q0], %rd5;
  .param .b64 q1;
  st.param.b64 [q1], %rd6;
  .param .b32 q2;
  st.param.b32 [q2], 9;
  .param .b64 q3;
  st.param.b64 [q3], %rd6;
  .param .b64 q4;
  st.param.b64 [q4], 1;
  call.uni __assertfail, (q0, q1, q2, q3, q4);
  }
  ret;
}
)"));
  const RunOutcome printed = machine.Run("k", 2, 1, {Argument(uint32_t{0})});
  ASSERT_EQ(printed.kind(), RunOutcome::OK) << printed.reason();
  EXPECT_EQ(printed.device_output(), "-5  1.50 A%\n-5  1.50 A%\n");
  const RunOutcome failed = machine.Run("k", 1, 1, {Argument(uint32_t{1})});
  EXPECT_EQ(failed.fault().kind(), Fault::ASSERT);
  EXPECT_THAT(failed.reason(), AllOf(HasSubstr("x > 0"), HasSubstr("a.cu:9")));
}

TEST(Unknown, TypesThatDoNotFitAreRefused) {
  for (const char* text :
       {"match.any.sync.b16 %r1, %h0, -1;", "dp4a.u16.u32 %r1, %h0, %h0, %r1;", "set.gt.u8.f32 %h0, %f0, %f0;",
        "cvt.b128.u32 %r1, %r1;", "add.u32 %r1, %r1;", "add.u32 %r1, %p1, %r1;", "mov.u32 %r1, %nothing;",
        "bra NOWHERE;", "ld.global.v3.u32 %r1, [%r1];", "add.pred %p1, %p1, %p1;", "st.global.v4.b64 {%r1}, %r1;"}) {
    const std::string ptx =
        Wrap(std::string(".visible .entry k()\n{\n .reg .pred %p<2>; .reg .b16 %h<2>; .reg .b32 %r<2>;"
                         " .reg .f32 %f<2>;\n ") +
             text + "\n ret;\n}\n");
    auto device = MakeEmulator();
    v1::internal::LoadProgram program;
    program.set_ptx(ptx);
    RunOutcome outcome;
    auto module = device->Load(program, &outcome);
    if (!module.ok() || *module == nullptr) continue;  // the parser refused it
    LaunchParameters launch;
    launch.entry = "k";
    ASSERT_TRUE(device->EnqueueLaunch(**module, launch).ok());
    auto ran = device->Synchronize({});
    ASSERT_TRUE(ran.ok());
    EXPECT_EQ(ran->kind(), RunOutcome::NEEDS_DEVICE) << text;
  }
}

TEST(Goldens, RmsNormOfOnes) {
  auto text =
      base::ReadFile(std::string(SOLSTICE_SOURCE_DIR) + "/runtime/device/emulator/testdata/rmsnorm.ptx", 1 << 20);
  ASSERT_TRUE(text.ok());
  Machine machine(*text);
  const std::vector<uint16_t> ones(2 * 2048, 0x3f80);
  const Address x = machine.Buffer(ones), residual = machine.Buffer(ones),
                weight = machine.Buffer(std::vector<uint16_t>(2048, 0x4000)),
                out = machine.Buffer(std::vector<uint16_t>(2 * 2048));
  const RunOutcome outcome = machine.Run(
      "fused_add_rmsnorm", 2, 256, {Argument(x), Argument(residual), Argument(weight), Argument(out), Argument(0.0f)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint16_t>(residual, 4096), std::vector<uint16_t>(4096, 0x4000));  // 1 + 1
  EXPECT_EQ(machine.Read<uint16_t>(out, 4096), std::vector<uint16_t>(4096, 0x4000));       // 2 / 2 * 2
}

TEST(Goldens, GemmMatchesTheHost) {
  auto text = base::ReadFile(std::string(SOLSTICE_SOURCE_DIR) + "/runtime/device/emulator/testdata/gemm.ptx", 1 << 20);
  ASSERT_TRUE(text.ok());
  Machine machine(*text);
  const int m = 70, n = 65, k = 33;
  // Small integers: every sum is exact.
  std::vector<uint16_t> a(m * k), b(k * n);
  const uint16_t kSmall[] = {0x0000, 0x3c00, 0x4000, 0xbc00};  // 0 1 2 -1
  const int kValue[] = {0, 1, 2, -1};
  std::vector<int> av(a.size()), bv(b.size());
  for (size_t i = 0; i < a.size(); ++i) a[i] = kSmall[i * 7 % 4], av[i] = kValue[i * 7 % 4];
  for (size_t i = 0; i < b.size(); ++i) b[i] = kSmall[i * 13 / 5 % 4], bv[i] = kValue[i * 13 / 5 % 4];
  const Address pa = machine.Buffer(a), pb = machine.Buffer(b), pc = machine.Buffer(std::vector<uint16_t>(m * n));
  LaunchParameters launch;
  launch.entry = "gemm";
  launch.grid[0] = launch.grid[1] = 2;
  launch.block[0] = 256;
  launch.arguments = {Argument(pa), Argument(pb), Argument(pc), Argument(m), Argument(n), Argument(k)};
  const RunOutcome outcome = machine.Launch(launch);
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  const auto c = machine.Read<uint16_t>(pc, m * n);
  for (int i = 0; i < m; ++i) {
    for (int j = 0; j < n; ++j) {
      int sum = 0;
      for (int l = 0; l < k; ++l) sum += av[i * k + l] * bv[l * n + j];
      ASSERT_EQ(HalfToFloat(c[i * n + j]), static_cast<float>(sum)) << i << "," << j;
    }
  }
}

}  // namespace
}  // namespace solstice::device
