// Blocks that wait for one another, and sleep.
#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<uint32_t>;

// Three barriers across the grid, written by hand: each block adds one and waits for a multiple of their number.
std::string GridBarrier(const std::string& pause) {
  return Wrap(R"(
.visible .entry k(.param .u64 counter)
{
  .reg .pred %p<4>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [counter];
  mov.u32 %r1, %nctaid.x;
  mov.u32 %r2, %tid.x;
  mov.u32 %r3, 0;
  setp.ne.u32 %p1, %r2, 0;
AGAIN:
  add.u32 %r3, %r3, %r1;
  bar.sync 0;
  @%p1 bra MEET;
  membar.gl;
  red.global.add.u32 [%rd1], 1;
WAIT:
)" + pause + R"(
  ld.acquire.gpu.global.u32 %r4, [%rd1];
  setp.lt.u32 %p2, %r4, %r3;
  @%p2 bra WAIT;
MEET:
  bar.sync 0;
  mul.lo.u32 %r5, %r1, 3;
  setp.lt.u32 %p3, %r3, %r5;
  @%p3 bra AGAIN;
  ret;
}
)");
}

EmulatorOptions TwoThreads() {
  EmulatorOptions options;
  options.threads = 2;
  return options;
}

TEST(Residency, BarrierAcrossAResidentGridCompletes) {
  for (const char* pause : {"", "nanosleep.u32 100;"}) {
    Machine machine(GridBarrier(pause), TwoThreads());
    const Address counter = machine.Buffer(Words(1));
    RunLimits limits;
    limits.timeout = std::chrono::minutes(2);
    const RunOutcome outcome = machine.Run("k", 2 * 132, 64, {Argument(counter)}, 0, limits);
    ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
    EXPECT_EQ(machine.Read<uint32_t>(counter, 1), Words{3 * 2 * 132});
  }
}

// Two blocks of this much shared memory do not fit in a multiprocessor.
TEST(Residency, BarrierAcrossMoreThanIsResidentTimesOut) {
  Machine machine(GridBarrier("nanosleep.u32 100;"), TwoThreads());
  const Address counter = machine.Buffer(Words(1));
  RunLimits limits;
  limits.timeout = std::chrono::minutes(2);
  EXPECT_EQ(machine.Run("k", 132, 32, {Argument(counter)}, 150'000, limits).kind(), RunOutcome::OK);
  const Address other = machine.Buffer(Words(1));
  limits.timeout = std::chrono::milliseconds(500);
  const RunOutcome outcome = machine.Run("k", 133, 32, {Argument(other)}, 150'000, limits);
  EXPECT_EQ(outcome.kind(), RunOutcome::TIMEOUT);
  // Every block but one had arrived at the first barrier.
  EXPECT_LE(machine.Read<uint32_t>(other, 1)[0], 132u);
}

TEST(Residency, BudgetCountsAllBlocksThatWait) {
  Machine machine(GridBarrier(""), TwoThreads());
  const Address counter = machine.Buffer(Words(1));
  RunLimits limits;
  limits.timeout = std::chrono::minutes(2);
  limits.instruction_budget = 2e6;
  // Too large a grid for its barrier.
  const RunOutcome outcome = machine.Run("k", 133, 32, {Argument(counter)}, 150'000, limits);
  EXPECT_EQ(outcome.kind(), RunOutcome::OVER_BUDGET) << outcome.reason();
  EXPECT_THAT(outcome.reason(), HasSubstr("blocks that wait for one another"));
}

// The first block waits for the last of many that do end, which must not need more than the residents' places.
TEST(Residency, BlocksThatEndMakeRoom) {
  Machine machine(Wrap(R"(
.visible .entry k(.param .u64 flag)
{
  .reg .pred %p<4>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [flag];
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %nctaid.x;
  sub.u32 %r2, %r2, 1;
  red.global.add.u32 [%rd1+4], 1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra WAIT;
  setp.eq.u32 %p2, %r1, %r2;
  @%p2 st.volatile.global.u32 [%rd1], 1;
  ret;
WAIT:
  ld.volatile.global.u32 %r3, [%rd1];
  setp.eq.u32 %p3, %r3, 0;
  @%p3 bra WAIT;
  ret;
}
)"));
  const Address flag = machine.Buffer(Words(2));
  const RunOutcome outcome = machine.Run("k", 1000, 32, {Argument(flag)}, 150'000);
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint32_t>(flag, 2), (Words{1, 1000 * 32}));
}

const char kSleep[] = R"(
.visible .entry k(.param .u32 times, .param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<6>;
  ld.param.u32 %r1, [times];
  ld.param.u64 %rd1, [out];
  mov.u64 %rd2, %clock64;
LOOP:
  nanosleep.u32 1000000;
  sub.u32 %r1, %r1, 1;
  setp.ne.u32 %p1, %r1, 0;
  @%p1 bra LOOP;
  mov.u64 %rd3, %clock64;
  sub.u64 %rd4, %rd3, %rd2;
  mov.u32 %r2, %tid.x;
  setp.eq.u32 %p2, %r2, 0;
  @%p2 st.global.u64 [%rd1], %rd4;
  ret;
}
)";

TEST(Sleep, TakesItsTime) {
  Machine machine{Wrap(kSleep)};
  const Address out = machine.Buffer(std::vector<uint64_t>(1));
  const RunOutcome outcome = machine.Run("k", 1, 64, {Argument(uint32_t{30}), Argument(out)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_GE(outcome.milliseconds(), 30);  // a lower bound holds on any machine
  EXPECT_GE(machine.Read<uint64_t>(out, 1)[0], 30'000'000u);
}

TEST(Sleep, PastTheLimitTimesOut) {
  Machine machine{Wrap(kSleep)};
  const Address out = machine.Buffer(std::vector<uint64_t>(1));
  RunLimits limits;
  limits.timeout = std::chrono::milliseconds(20);
  const RunOutcome outcome = machine.Run("k", 1, 64, {Argument(uint32_t{100'000}), Argument(out)}, 0, limits);
  EXPECT_EQ(outcome.kind(), RunOutcome::TIMEOUT);
  EXPECT_THAT(outcome.reason(), HasSubstr("k was still running after 0.02 s"));
}

// One warp sleeps before a barrier at which the other waits: neither a deadlock nor a barrier passed too early.
TEST(Sleep, OthersWaitAtTheBarrier) {
  Machine machine(Wrap(R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<3>;
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  .shared .align 4 .b32 s;
  ld.param.u64 %rd1, [out];
  mov.u32 %r1, %tid.x;
  setp.lt.u32 %p1, %r1, 32;
  @%p1 bra MEET;
  nanosleep.u32 1000000;
  st.shared.u32 [s], 7;
MEET:
  bar.sync 0;
  ld.shared.u32 %r2, [s];
  mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd1, %rd1, %rd2;
  st.global.u32 [%rd1], %r2;
  ret;
}
)"));
  const Address out = machine.Buffer(Words(64));
  const RunOutcome outcome = machine.Run("k", 1, 64, {Argument(out)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<uint32_t>(out, 64), Words(64, 7));
}

TEST(Load, UnreadableTextNeedsADevice) {
  Machine machine("this is not PTX");
  EXPECT_EQ(machine.module(), nullptr);
  EXPECT_EQ(machine.load().kind(), RunOutcome::NEEDS_DEVICE);
  EXPECT_THAT(machine.load().reason(), HasSubstr("the emulator cannot read the program: ptx:1"));
}

}  // namespace
}  // namespace solstice::device
