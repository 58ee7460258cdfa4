// What the sanitizer finds and what it does not, in small kernels.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device/emulator/emulator_sanitizer_test_support.h"

namespace solstice::device {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(SanitizerTest, BarriersOrderWarpsAndSyncwarpOrdersLanes) {
  EXPECT_THAT(Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  bar.sync 0;
  ld.shared.u32 %v1, [%x];
  bar.sync 0;
  st.shared.u32 [%s], %v1;
  bar.warp.sync 0xffffffff;
  ld.shared.u32 %v2, [%s];
  st.global.u32 [%o], %v2;)")),
              IsEmpty());
  // A warp's own lanes, without a barrier.
  EXPECT_THAT(Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  bar.warp.sync 0xffffffff;
  ld.shared.u32 %v1, [%n];
  st.global.u32 [%o], %v1;)"),
                   32),
              testing::ElementsAre(Is(Finding::UNINITIALIZED_READ, "offset 128 of shared memory")));
}

TEST(SanitizerTest, ReadsOfAnotherWarpsWriteWithoutABarrier) {
  const auto findings = Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  ld.shared.u32 %v1, [%x];
  st.global.u32 [%o], %v1;)"));
  ASSERT_THAT(findings, testing::Contains(Is(Finding::SHARED_RACE, "with no barrier between")));
  for (const Finding& finding : findings) {
    if (finding.kind() != Finding::SHARED_RACE) continue;
    EXPECT_EQ(finding.kernel(), "k");
    EXPECT_EQ(finding.buffer(), "shared memory");
    EXPECT_EQ(finding.thread_size(), 3);
    EXPECT_EQ(finding.block(0), 0);
    EXPECT_GE(finding.count(), 1);
  }
}

TEST(SanitizerTest, AWriteAfterAnotherWarpsReadIsARaceToo) {
  EXPECT_THAT(Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  bar.sync 0;
  ld.shared.u32 %v1, [%x];
  st.shared.u32 [%s], %v1;
  st.global.u32 [%o], %v1;)")),
              testing::ElementsAre(Is(Finding::SHARED_RACE, "offset")));
}

TEST(SanitizerTest, LanesOfAWarpNeedSyncwarp) {
  EXPECT_THAT(Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  bar.sync 0;
  ld.shared.u32 %v1, [%n];
  add.u32 %v1, %v1, 1;
  setp.lt.u32 %p0, %t, 31;
  @%p0 st.shared.u32 [%s], %v1;
  st.global.u32 [%o], %v1;)"),
                   32),
              testing::Contains(Is(Finding::MISSING_SYNCWARP, "with no __syncwarp between")));
}

TEST(SanitizerTest, LanesOfOneStoreMayNotDisagree) {
  EXPECT_THAT(Find(Kernel("  mov.u32 %v1, memory;\n  st.shared.u32 [%v1], %t;"), 32),
              testing::ElementsAre(Is(Finding::MISSING_SYNCWARP, "writes to")));
  EXPECT_THAT(Find(Kernel("  mov.u32 %v1, memory;\n  st.shared.u32 [%v1], 7;")), IsEmpty()) << "the same value";
}

TEST(SanitizerTest, NamedBarriersOrderThoseThatTakePart) {
  // Warp 0 writes and arrives, warp 1 waits and reads.
  const std::string producer = R"(
  setp.ge.u32 %p0, %t, 32;
  @%p0 bra WAIT;
  st.shared.u32 [%s], %t;
  SIGNAL
  bra END;
WAIT:
  bar.sync 1, 64;
  ld.shared.u32 %v1, [%x];
  st.global.u32 [%o], %v1;
END:)";
  auto with = [&](const std::string& signal) {
    std::string text = producer;
    return Kernel(text.replace(text.find("SIGNAL"), 6, signal));
  };
  EXPECT_THAT(Find(with("bar.arrive 1, 64;")), IsEmpty());
  EXPECT_THAT(Find(with("bar.arrive 1, 64; add.u32 %v2, %t, 1; st.shared.u32 [%s], %v2;")),
              testing::Contains(Is(Finding::SHARED_RACE, "offset")));
}

TEST(SanitizerTest, FlagsWithFencesOrder) {
  // Thread 0 of warp 0 publishes; warp 1 waits for the flag.
  auto kernel = [](const std::string& fence) {
    return Kernel(R"(
  .shared .align 4 .b32 flag;
  setp.eq.u32 %p1, %t, 0;
  @%p1 st.shared.u32 [flag], 0;
  bar.sync 0;
  setp.ge.u32 %p0, %t, 32;
  @%p0 bra WAIT;
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra END;
  st.shared.u32 [%s], %t;
)" + fence + R"(
  atom.shared.exch.b32 %v1, [flag], 1;
  bra END;
WAIT:
  ld.volatile.shared.u32 %v1, [flag];
  setp.eq.u32 %p1, %v1, 0;
  @%p1 bra WAIT;
)" + fence + R"(
  mov.u32 %v2, memory;
  ld.shared.u32 %v1, [%v2];
  st.global.u32 [%o], %v1;
END:)");
  };
  EXPECT_THAT(Find(kernel("  fence.acq_rel.cta;")), IsEmpty());
  EXPECT_THAT(Find(kernel("")), testing::ElementsAre(Is(Finding::SHARED_RACE, "reads offset")));
}

TEST(SanitizerTest, AtomicsDoNotRaceWithOneAnother) {
  EXPECT_THAT(Find(Kernel(R"(
  mov.u32 %v1, memory;
  setp.eq.u32 %p0, %t, 0;
  @%p0 st.shared.u32 [%v1], 0;
  bar.sync 0;
  red.shared.add.u32 [%v1], 1;
  bar.sync 0;
  ld.shared.u32 %v2, [%v1];
  st.global.u32 [%o], %v2;)")),
              IsEmpty());
  EXPECT_THAT(Find(Kernel(R"(
  mov.u32 %v1, memory;
  setp.eq.u32 %p0, %t, 0;
  @%p0 st.shared.u32 [%v1], 5;
  red.shared.add.u32 [%v1], 1;)")),
              testing::Contains(Is(Finding::SHARED_RACE, "offset")));
}

TEST(SanitizerTest, MemoryThatNothingWasWrittenTo) {
  EXPECT_THAT(Find(Kernel("  ld.shared.u32 %v1, [%s];\n  st.global.u32 [%o], %v1;")),
              testing::ElementsAre(Is(Finding::UNINITIALIZED_READ, "of shared memory, to which nothing was written")));
  EXPECT_THAT(Find(Kernel("  ld.global.u32 %v1, [%o];\n  st.global.u32 [%o], %v1;")),
              testing::ElementsAre(Is(Finding::UNINITIALIZED_READ, "of output 'y' (256 bytes)")));
  EXPECT_THAT(Find(Kernel("  ld.local.u32 %v1, [own+4];\n  st.global.u32 [%o], %v1;")),
              testing::ElementsAre(Is(Finding::UNINITIALIZED_READ, "of the thread's local memory")));
  EXPECT_THAT(Find(Kernel(R"(
  st.local.u32 [own+4], %t;
  ld.local.u32 %v1, [own+4];
  st.global.u32 [%o], %v1;
  ld.global.u32 %v1, [%o];
  ld.global.u32 %v2, [%i];)")),
              IsEmpty());
  EXPECT_THAT(Find(Kernel("  atom.global.add.u32 %v1, [%o], 1;")),
              testing::ElementsAre(Is(Finding::UNINITIALIZED_READ, "output 'y'")));
}

TEST(SanitizerTest, APieceOfAVectorIsEnoughToFind) {
  EXPECT_THAT(Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  bar.sync 0;
  shl.b32 %v0, %t, 2;
  mov.u32 %v1, memory;
  add.u32 %v1, %v1, %v0;
  setp.lt.u32 %p0, %t, 32;
  @!%p0 bra END;
  and.b32 %v1, %v1, 0xfffffff8;
  ld.shared.v2.u32 {%v2, %v3}, [%v1];
END:)"),
                   32),
              IsEmpty());
  EXPECT_THAT(Find(Kernel(R"(
  and.b32 %v2, %t, 1;
  setp.eq.u32 %p0, %v2, 0;
  @%p0 st.shared.u32 [%s], %t;
  bar.sync 0;
  @%p0 ld.shared.v2.u32 {%v2, %v3}, [%s];)")),
              testing::ElementsAre(Is(Finding::UNINITIALIZED_READ, "of shared memory")));
}

TEST(SanitizerTest, ABlockKnowsNothingOfTheOneBefore) {
  EXPECT_THAT(Find(Kernel(R"(
  mov.u32 %v1, %ctaid.x;
  setp.eq.u32 %p0, %v1, 0;
  @%p0 st.shared.u32 [%s], %t;
  ld.shared.u32 %v2, [%s];)"),
                   kThreads, 2),
              testing::ElementsAre(testing::AllOf(Is(Finding::UNINITIALIZED_READ, "block (1,0,0)"),
                                                  testing::Property("count", &Finding::count, kThreads))));
}

TEST(SanitizerTest, ThreadsThatPartAtBarriers) {
  // Whole warps at two places.
  EXPECT_THAT(Find(Kernel(R"(
  setp.lt.u32 %p0, %t, 32;
  @%p0 bra HERE;
  bar.sync 0;
  bra END;
HERE:
  bar.sync 0;
END:)")),
              testing::ElementsAre(Is(Finding::BARRIER_DIVERGENCE, "other threads of its block")));
  // Half a warp, which ends while the others wait.
  EXPECT_THAT(Find(Kernel(R"(
  setp.lt.u32 %p0, %l, 16;
  @%p0 bra END;
  bar.sync 0;
END:)")),
              testing::ElementsAre(Is(Finding::BARRIER_DIVERGENCE, "32 of 64 threads of the block")));
  // Two halves of each warp at two places.
  EXPECT_THAT(Find(Kernel(R"(
  setp.lt.u32 %p0, %l, 16;
  @%p0 bra HERE;
  bar.sync 0;
  bra END;
HERE:
  bar.sync 0;
END:)")),
              testing::Contains(Is(Finding::BARRIER_DIVERGENCE, "other threads of its warp")));
  EXPECT_THAT(Find(Kernel(R"(
  setp.lt.u32 %p0, %l, 16;
  @%p0 bra HERE;
  add.u32 %v1, %t, 1;
HERE:
  bar.sync 0;)")),
              IsEmpty());
}

TEST(SanitizerTest, MatrixInstructionsReadAndWrite) {
  // Lanes 0 to 7 name the rows, lane t holds a word of row t / 4.
  const std::string rows = R"(
  mov.u32 %v1, memory;
  shl.b32 %v2, %l, 4;
  and.b32 %v2, %v2, 127;
  add.u32 %v1, %v1, %v2;)";
  const std::string write = rows + "\n  stmatrix.sync.aligned.m8n8.x1.shared.b16 [%v1], {%t};";
  const std::string read = "\n  ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%v3}, [%v1];";
  EXPECT_THAT(Find(Kernel(write + "\n  bar.warp.sync 0xffffffff;" + read), 32), IsEmpty());
  EXPECT_THAT(Find(Kernel(write + read), 32), IsEmpty()) << "each lane reads the row that it wrote";
  EXPECT_THAT(Find(Kernel(rows + read), 32),
              testing::ElementsAre(Is(Finding::UNINITIALIZED_READ, "reads 16 bytes at offset 0 of shared memory")));
  EXPECT_THAT(Find(Kernel(rows + "\n  st.shared.u32 [%s], %t;" + read), 32),
              testing::Contains(Is(Finding::MISSING_SYNCWARP, "with no __syncwarp between")));
}

TEST(SanitizerTest, CallsPassWhatWasWritten) {
  const std::string ptx = Wrap(R"(
.func (.param .b32 r) twice(.param .b32 a)
{
  .reg .b32 %a<2>;
  ld.param.b32 %a0, [a];
  add.u32 %a1, %a0, %a0;
  st.param.b32 [r], %a1;
  ret;
}
.visible .entry k(.param .u64 pi, .param .u64 po)
{
  .reg .b32 %v<4>;
  .reg .b64 %o;
  ld.param.u64 %o, [po];
  mov.u32 %v0, 21;
  {
  .param .b32 x;
  .param .b32 y;
  st.param.b32 [x], %v0;
  call.uni (y), twice, (x);
  ld.param.b32 %v1, [y];
  }
  st.global.u32 [%o], %v1;
  ret;
}
)");
  EXPECT_THAT(Find(ptx), IsEmpty());
}

TEST(SanitizerTest, FindsNothingUnlessAsked) {
  Machine machine(Kernel("  ld.shared.u32 %v1, [%s];"));
  const Address buffer = machine.Buffer(std::vector<uint32_t>(kThreads));
  const RunOutcome outcome = machine.Run("k", 1, kThreads, {Argument(buffer), Argument(buffer)});
  EXPECT_EQ(outcome.findings_size(), 0);
}

TEST(SanitizerTest, AMemsetAndAnEarlierLaunchWrite) {
  Machine machine(Kernel("  ld.global.u32 %v1, [%o];"));
  const Address in = machine.Buffer(std::vector<uint32_t>(kThreads), "x");
  auto out = machine.device().Allocate(kPage, Extent{"y", 0, 4 * kThreads, "scratch"});
  ASSERT_TRUE(out.ok()) << out.status();
  RunLimits limits;
  limits.sanitize = true;
  EXPECT_TRUE(machine.device().EnqueueMemset((*out)->address(), 0, 128).ok());
  RunOutcome outcome = machine.Run("k", 1, kThreads, {Argument(in), Argument((*out)->address())}, 0, limits);
  ASSERT_EQ(outcome.findings_size(), 1) << outcome.DebugString();
  EXPECT_EQ(outcome.findings(0).count(), 32) << "the other half";
  EXPECT_THAT(outcome.findings(0).message(), HasSubstr("scratch 'y'"));
  // What ran unwatched may have written anything.
  machine.Run("k", 1, kThreads, {Argument(in), Argument((*out)->address())});
  outcome = machine.Run("k", 1, kThreads, {Argument(in), Argument((*out)->address())}, 0, limits);
  EXPECT_EQ(outcome.findings_size(), 0);
}

// Bytes that were written together are told apart once they are accessed apart.
TEST(SanitizerTest, SmallAccessesWithinAWideOne) {
  auto after = [](const char* offset) {
    return Kernel(std::string(R"(
  mov.u32 %v1, memory;
  setp.eq.u32 %p0, %t, 0;
  @%p0 st.shared.v4.u32 [%v1], {%t, %t, %t, %t};
  bar.sync 0;
  mov.u32 %v3, 7;
  setp.eq.u32 %p1, %t, 0;
  setp.eq.u32 %p2, %t, 32;
  @%p1 st.shared.u8 [%v1+5], %v3;
  @%p2 ld.shared.u16 %v2, [%v1+)") + offset + "];\n  st.global.u32 [%o], %t;");
  };
  for (const char* apart : {"0", "2", "6", "8", "14"}) EXPECT_THAT(Find(after(apart)), IsEmpty()) << apart;
  EXPECT_THAT(Find(after("4")), testing::ElementsAre(Is(Finding::SHARED_RACE, "offset 5 ")));
}

}  // namespace
}  // namespace solstice::device
