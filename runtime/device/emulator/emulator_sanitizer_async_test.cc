// The sanitizer on copies that are waited for later, and on mbarriers.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/device/emulator/emulator_sanitizer_test_support.h"

namespace solstice::device {
namespace {

using testing::Contains;
using testing::Each;
using testing::IsEmpty;

// The wait of every thread for phase 0.
const char kWait[] = R"(
  mov.u32 %v5, barrier;
wait:
  mbarrier.try_wait.parity.shared.b64 %p1, [%v5], 0;
  @!%p1 bra wait;
)";
// Thread 0 makes an mbarrier that counts every thread.
const char kMake[] = R"(
  mov.u32 %v5, barrier;
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [%v5], 64;
  bar.sync 0;
)";

std::string Text(std::initializer_list<const char*> parts) {
  std::string text;
  for (const char* part : parts) text += part;
  return Kernel(text);
}

TEST(SanitizerAsyncTest, CopyThatIsWaitedForAndPublishedIsClean) {
  EXPECT_THAT(Find(Kernel(R"(
  cp.async.ca.shared.global [%s], [%i], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ld.shared.u32 %v1, [%s];
  bar.sync 0;
  ld.shared.u32 %v2, [%x];
  add.u32 %v1, %v1, %v2;
  st.global.u32 [%o], %v1;)")),
              IsEmpty());
}

TEST(SanitizerAsyncTest, ReadBeforeTheWait) {
  EXPECT_THAT(Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  cp.async.ca.shared.global [%s], [%i], 4;
  cp.async.commit_group;
  ld.shared.u32 %v1, [%s];
  cp.async.wait_group 0;
  st.global.u32 [%o], %v1;)")),
              Contains(Is(Finding::SHARED_RACE, "before the copy was waited for")));
}

TEST(SanitizerAsyncTest, WaitForTheWrongGroup) {
  // wait_group 1 leaves the youngest group under way.
  EXPECT_THAT(Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  cp.async.ca.shared.global [%s], [%i], 4;
  cp.async.commit_group;
  cp.async.wait_group 1;
  ld.shared.u32 %v1, [%s];
  cp.async.wait_all;
  st.global.u32 [%o], %v1;)")),
              Contains(Is(Finding::SHARED_RACE, "before the copy was waited for")));
}

TEST(SanitizerAsyncTest, AWaitIsNoBarrier) {
  const auto findings = Find(Kernel(R"(
  cp.async.ca.shared.global [%s], [%i], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  ld.shared.u32 %v1, [%x];
  st.global.u32 [%o], %v1;)"));
  EXPECT_THAT(findings, Contains(Is(Finding::SHARED_RACE, "with no barrier between")));
}

TEST(SanitizerAsyncTest, CopyOverWhatOthersStillRead) {
  const auto findings = Find(Kernel(R"(
  st.shared.u32 [%s], %t;
  bar.sync 0;
  ld.shared.u32 %v1, [%x];
  cp.async.ca.shared.global [%s], [%i], 4;
  cp.async.wait_all;
  st.global.u32 [%o], %v1;)"));
  EXPECT_THAT(findings, Contains(Is(Finding::SHARED_RACE, "copies to")));
}

// 32 threads: words 0..31 are one buffer, 32..63 the other, each read by the lane's neighbour.
std::string TwoBuffers(const char* before_reuse) {
  return Text({R"(
  cp.async.ca.shared.global [%s], [%i], 4;
  cp.async.commit_group;
  cp.async.ca.shared.global [%s+128], [%i], 4;
  cp.async.commit_group;
  xor.b32 %v7, %l, 1;
  shl.b32 %v7, %v7, 2;
  mov.u32 %v1, memory;
  add.u32 %v7, %v7, %v1;
  cp.async.wait_group 1;
  bar.warp.sync -1;
  ld.shared.u32 %v1, [%v7];)",
               before_reuse, R"(
  cp.async.ca.shared.global [%s], [%i+128], 4;
  cp.async.commit_group;
  cp.async.wait_group 1;
  bar.warp.sync -1;
  ld.shared.u32 %v2, [%v7+128];
  cp.async.wait_group 0;
  bar.warp.sync -1;
  ld.shared.u32 %v3, [%v7];
  add.u32 %v1, %v1, %v2;
  add.u32 %v1, %v1, %v3;
  st.global.u32 [%o], %v1;)"});
}

TEST(SanitizerAsyncTest, TwoBuffersInTurn) {
  EXPECT_THAT(Find(TwoBuffers("\n  bar.warp.sync -1;"), 32), IsEmpty());
  EXPECT_THAT(Find(TwoBuffers(""), 32), testing::ElementsAre(Is(Finding::MISSING_SYNCWARP, "copies to")));
}

TEST(SanitizerAsyncTest, MbarrierOrdersWhatItsThreadsDid) {
  EXPECT_THAT(Find(Text({kMake, R"(
  st.shared.u32 [%s], %t;
  mbarrier.arrive.shared.b64 %w1, [%v5];)",
                         kWait, R"(
  ld.shared.u32 %v1, [%x];
  st.global.u32 [%o], %v1;)"})),
              IsEmpty());
}

TEST(SanitizerAsyncTest, ArriveWithoutTheWait) {
  EXPECT_THAT(Find(Text({kMake, R"(
  st.shared.u32 [%s], %t;
  mbarrier.arrive.shared.b64 %w1, [%v5];
  ld.shared.u32 %v1, [%x];
  st.global.u32 [%o], %v1;)"})),
              Contains(Is(Finding::SHARED_RACE, "with no barrier between")));
}

TEST(SanitizerAsyncTest, MbarrierDoesNotOrderWhatFollowsItsArrive) {
  EXPECT_THAT(Find(Text({kMake, R"(
  mbarrier.arrive.shared.b64 %w1, [%v5];
  st.shared.u32 [%s], %t;)",
                         kWait, R"(
  ld.shared.u32 %v1, [%x];
  st.global.u32 [%o], %v1;)"})),
              Contains(Is(Finding::SHARED_RACE, "with no barrier between")));
}

TEST(SanitizerAsyncTest, MbarrierMadeWithoutABarrierAfter) {
  const auto findings = Find(Text({R"(
  mov.u32 %v5, barrier;
  setp.eq.u32 %p0, %t, 0;
  @%p0 mbarrier.init.shared.b64 [%v5], 64;
  bar.warp.sync -1;
  mbarrier.arrive.shared.b64 %w1, [%v5];)",
                                   kWait, "  st.global.u32 [%o], %t;"}));
  EXPECT_THAT(findings, Contains(Is(Finding::SHARED_RACE, "offset 256")));
}

TEST(SanitizerAsyncTest, CopiesThatArriveOnAnMbarrier) {
  EXPECT_THAT(Find(Text({kMake, R"(
  cp.async.ca.shared.global [%s], [%i], 4;
  cp.async.mbarrier.arrive.noinc.shared.b64 [%v5];)",
                         kWait, R"(
  ld.shared.u32 %v1, [%x];
  st.global.u32 [%o], %v1;)"})),
              IsEmpty());
}

TEST(SanitizerAsyncTest, CopyOfWhatWasNeverWritten) {
  // 16 bytes from the output, which nobody has written.
  const auto findings = Find(Kernel(R"(
  and.b32 %v1, %t, 3;
  setp.eq.u32 %p0, %v1, 0;
  @%p0 cp.async.cg.shared.global [%s], [%o], 16;
  cp.async.wait_all;
  st.global.u32 [%o], %t;)"));
  EXPECT_THAT(findings, testing::Not(IsEmpty()));
  EXPECT_THAT(findings, Each(Is(Finding::UNINITIALIZED_READ, "")));
}

}  // namespace
}  // namespace solstice::device
