// cp.async: when bytes arrive, what is checked where it is issued.
#include <numeric>

#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<uint32_t>;

// A kernel of one block: %in and %out are the addresses of the thread's 16 bytes of either buffer, %s its 16 bytes of
// shared memory, which hold 7s to start with.
std::string Kernel(const std::string& body) {
  return Wrap(R"(
.visible .entry k(.param .u64 in, .param .u64 out)
{
  .reg .pred %p<8>;
  .reg .b32 %t, %s, %r<16>;
  .reg .b64 %in, %out, %base, %d<16>;
  .shared .align 16 .b8 s[4096];
  .shared .align 8 .b64 bar[4];
  mov.u32 %t, %tid.x;
  mul.wide.u32 %d0, %t, 16;
  ld.param.u64 %base, [in];
  ld.param.u64 %out, [out];
  add.u64 %in, %base, %d0;
  add.u64 %out, %out, %d0;
  mov.u32 %s, s;
  mad.lo.u32 %s, %t, 16, %s;
  mov.u32 %r15, 7;
  st.shared.v4.u32 [%s], {%r15, %r15, %r15, %r15};
  bar.sync 0;
)" + body + R"(
  ret;
}
)");
}

const std::string kStore = R"(
  ld.shared.v4.u32 {%r0, %r1, %r2, %r3}, [%s];
  st.global.v4.u32 [%out], {%r0, %r1, %r2, %r3};
)";

Words Counted(size_t count) {
  Words words(count);
  std::iota(words.begin(), words.end(), 100);
  return words;
}

struct Result {
  RunOutcome outcome;
  Words words;
};

Result RunKernel(const std::string& body, int64_t threads = 64, int64_t words = 256) {
  Machine machine(Kernel(body));
  const Address in = machine.Buffer(Counted(static_cast<size_t>(words)), "x");
  const Address out = machine.Buffer(Words(static_cast<size_t>(threads) * 4));
  Result result;
  result.outcome = machine.Run("k", 1, threads, {Argument(in), Argument(out)});
  EXPECT_EQ(machine.Read<uint32_t>(in, static_cast<size_t>(words)), Counted(static_cast<size_t>(words)));
  result.words = machine.Read<uint32_t>(out, static_cast<size_t>(threads) * 4);
  return result;
}

// What a thread's 16 bytes hold when `copied` of `size` bytes came and the rest of `size` was zeroed.
Words Copied(size_t threads, size_t size, size_t copied) {
  std::vector<uint8_t> bytes(threads * 16);
  const Words source = Counted(threads * 4), seven(threads * 4, 7);
  for (size_t i = 0; i < bytes.size(); ++i) {
    const size_t at = i % 16;
    const auto* from = reinterpret_cast<const uint8_t*>(at < copied ? source.data() : seven.data());
    bytes[i] = at < copied || at >= size ? from[i] : 0;
  }
  Words words(threads * 4);
  std::memcpy(words.data(), bytes.data(), bytes.size());
  return words;
}

TEST(AsyncCopy, SizesAndShorterSources) {
  struct Case {
    const char* copy;
    size_t size, copied;
  };
  const Case cases[] = {{"cp.async.ca.shared.global [%s], [%in], 4;", 4, 4},
                        {"cp.async.ca.shared.global [%s], [%in], 8;", 8, 8},
                        {"cp.async.ca.shared::cta.global.L2::128B [%s], [%in], 16;", 16, 16},
                        {"cp.async.cg.shared.global [%s], [%in], 16;", 16, 16},
                        {"cp.async.cg.shared.global.L2::cache_hint [%s], [%in], 16, %d5;", 16, 16},
                        {"mov.u32 %r5, 5; cp.async.cg.shared.global [%s], [%in], 16, %r5;", 16, 5},
                        {"cp.async.ca.shared.global [%s], [%in], 8, 3;", 8, 3},
                        {"cp.async.ca.shared.global [%s], [%in], 8, 0xffffffff;", 8, 8},
                        // Nothing is read, so the source may be anywhere.
                        {"mov.u64 %d6, 64; cp.async.cg.shared.global [%s], [%d6], 16, 0;", 16, 0},
                        {"setp.eq.u32 %p1, 1, 1; cp.async.cg.shared.global [%s], [0], 16, %p1;", 16, 0},
                        {"setp.eq.u32 %p1, 1, 1; cp.async.cg.shared.global [%s], [%in], 16, !%p1;", 16, 16},
                        {"setp.eq.u32 %p1, 1, 2; @%p1 cp.async.cg.shared.global [%s], [0], 16;", 0, 0},
                        {"cvt.u64.u32 %d6, %s; cp.async.cg.shared.global [%d6], [%in], 16;", 16, 16},
                        {"sub.u64 %d6, %in, 48; sub.u32 %s, %s, 16; cp.async.cg.shared.global [%s+16], [%d6+48], 16; "
                         "add.u32 %s, %s, 16;",
                         16, 16}};
  for (const Case& c : cases) {
    for (const char* wait : {"cp.async.wait_all;", "cp.async.commit_group; cp.async.wait_group 0;"}) {
      const Result result = RunKernel(std::string(c.copy) + wait + kStore);
      ASSERT_EQ(result.outcome.kind(), RunOutcome::OK) << c.copy << result.outcome.reason();
      EXPECT_EQ(result.words, Copied(64, c.size, c.copied)) << c.copy;
    }
  }
}

// Before the wait, and after a wait that does not cover the group, shared memory holds what it held.
TEST(AsyncCopy, ArrivesAtTheWaitThatCoversIt) {
  const std::string copy = "cp.async.cg.shared.global [%s], [%in], 16;";
  const Words before(64 * 4, 7), after = Copied(64, 16, 16);
  EXPECT_EQ(RunKernel(copy + kStore).words, before);
  EXPECT_EQ(RunKernel(copy + "cp.async.commit_group;" + kStore).words, before);
  EXPECT_EQ(RunKernel(copy + "cp.async.commit_group; cp.async.wait_group 1;" + kStore).words, before);
  EXPECT_EQ(RunKernel(copy + "cp.async.wait_group 0;" + kStore).words, before) << "the copy is in no group yet";
  EXPECT_EQ(RunKernel(copy + "cp.async.commit_group; cp.async.commit_group; cp.async.wait_group 1;" + kStore).words,
            after);
  EXPECT_EQ(RunKernel(copy + "bar.sync 0;" + kStore).words, before) << "a barrier is no wait";
  EXPECT_EQ(RunKernel(copy + "cp.async.commit_group; cp.async.wait_group 4294967295;" + kStore).words, before);
}

TEST(AsyncCopy, GroupsCompleteInOrder) {
  // Three groups of four bytes each; after waiting for all but one, two are there.
  const std::string body = R"(
  cp.async.ca.shared.global [%s], [%in], 4;
  cp.async.commit_group;
  cp.async.ca.shared.global [%s+4], [%in+4], 4;
  cp.async.commit_group;
  cp.async.ca.shared.global [%s+8], [%in+8], 4;
  cp.async.commit_group;
  cp.async.wait_group 1;
)" + kStore;
  EXPECT_EQ(RunKernel(body).words, Copied(64, 8, 8));
}

// Lanes wait on their own: only the even ones do here.
TEST(AsyncCopy, DivergedLanesHaveTheirOwnGroups) {
  const std::string body = R"(
  cp.async.cg.shared.global [%s], [%in], 16;
  and.b32 %r4, %t, 1;
  setp.eq.u32 %p1, %r4, 0;
  @%p1 cp.async.commit_group;
  @%p1 cp.async.wait_group 0;
)" + kStore;
  const Words all = Copied(48, 16, 16), got = RunKernel(body, 48).words;
  for (size_t i = 0; i < got.size(); ++i) EXPECT_EQ(got[i], i / 4 % 2 == 0 ? all[i] : 7u) << i;
}

// Other threads see the copies of a thread that has ended.
TEST(AsyncCopy, EndingThreadsFinishTheirs) {
  const std::string body = R"(
  cp.async.cg.shared.global [%s], [%in], 16;
  setp.ge.u32 %p1, %t, 32;
  @%p1 exit;
  nanosleep.u32 1000;
  add.u32 %s, %s, 512;
)" + kStore;
  const Result result = RunKernel(body);
  ASSERT_EQ(result.outcome.kind(), RunOutcome::OK) << result.outcome.reason();
  const Words all = Copied(64, 16, 16);
  EXPECT_EQ(Words(result.words.begin(), result.words.begin() + 128), Words(all.begin() + 128, all.end()));
}

// A thread that never waits keeps a bounded number pending: the oldest are done.
TEST(AsyncCopy, PendingCopiesAreBounded) {
  const std::string body = R"(
  mov.u32 %r4, 0;
LOOP:
  cp.async.cg.shared.global [%s], [%in], 16;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p1, %r4, 5000;
  @%p1 bra LOOP;
)" + kStore;
  EXPECT_EQ(RunKernel(body).words, Copied(64, 16, 16));
}

TEST(AsyncCopy, FaultsNameTheCopy) {
  struct Case {
    const char* copy;
    Fault::Kind kind;
    const char* text;
  };
  const Case cases[] = {
      {"cp.async.cg.shared.global [%s], [%in+4], 16;", Fault::MISALIGNED, "reads 16 bytes"},
      {"cp.async.ca.shared.global [%s+2], [%in], 4;", Fault::MISALIGNED, "writes 4 bytes"},
      {"cp.async.cg.shared.global [%s+8192], [%in], 16;", Fault::OUT_OF_BOUNDS, "of shared memory"},
      {"cp.async.cg.shared.global [%s], [%in+1024], 16;", Fault::OUT_OF_BOUNDS, "past the end of output 'x'"},
      {"mov.u32 %s, 0xfffffff0; cp.async.cg.shared.global [%s+8], [%in], 16;", Fault::MISALIGNED, "writes"},
      {"mov.u64 %in, -16; cp.async.cg.shared.global [%s], [%in], 16;", Fault::OUT_OF_BOUNDS, "reads 16 bytes"},
      {"mov.u64 %in, 64; cp.async.ca.shared.global [%s], [%in], 16, 1;", Fault::OUT_OF_BOUNDS, "reads 1 byte"}};
  for (const Case& c : cases) {
    const RunOutcome outcome = RunKernel(c.copy).outcome;
    ASSERT_EQ(outcome.kind(), RunOutcome::FAULT) << c.copy;
    EXPECT_EQ(outcome.fault().kind(), c.kind) << c.copy << outcome.reason();
    EXPECT_THAT(outcome.reason(), HasSubstr(c.text));
    EXPECT_THAT(outcome.reason(), HasSubstr("PTX line ")) << "no line";
  }
}

// The bytes of the source are read when the copy is done.
TEST(AsyncCopy, ReadsItsSourceLate) {
  const std::string body = R"(
  cp.async.cg.shared.global [%s], [%out], 16;
  mov.u32 %r5, 42;
  st.global.v4.u32 [%out], {%r5, %r5, %r5, %r5};
  cp.async.wait_all;
  mov.u32 %r6, 1;
  st.global.v4.u32 [%out], {%r6, %r6, %r6, %r6};
)" + kStore;
  EXPECT_EQ(RunKernel(body).words, Words(64 * 4, 42));
}

// Each thread copies what its neighbour of the other warp reads; the mbarrier says when.
TEST(AsyncCopy, ArrivesAtAnMbarrier) {
  for (const bool noinc : {false, true}) {
    const std::string body =
        std::string(R"(
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared.b64 [bar], 64;
  bar.sync 0;
  cp.async.cg.shared.global [%s], [%in], 16;
)") +
        (noinc ? "cp.async.mbarrier.arrive.noinc.shared::cta.b64 [bar];"
               : "cp.async.mbarrier.arrive.shared.b64 [bar]; mbarrier.arrive.shared.b64 _, [bar];") +
        R"(
  xor.b32 %r5, %t, 63;
  mov.u32 %s, s;
  mad.lo.u32 %s, %r5, 16, %s;
)" + "WAIT: mbarrier.try_wait.parity.shared.b64 %p2, [bar], 0; @!%p2 bra WAIT;" +
        kStore;
    const Result result = RunKernel(body);
    ASSERT_EQ(result.outcome.kind(), RunOutcome::OK) << result.outcome.reason();
    const Words all = Copied(64, 16, 16);
    for (size_t i = 0; i < all.size(); ++i) EXPECT_EQ(result.words[i], all[(63 - i / 4) * 4 + i % 4]) << noinc;
  }
}

// The object may be gone when the arrival is due.
TEST(AsyncCopy, LateArrivalAtAnOverwrittenMbarrierIsAFault) {
  const RunOutcome outcome = RunKernel(R"(
  mbarrier.init.shared.b64 [bar], 1;
  cp.async.mbarrier.arrive.noinc.shared.b64 [bar];
  st.shared.u64 [bar], -1;
)",
                                       1)
                                 .outcome;
  ASSERT_EQ(outcome.kind(), RunOutcome::FAULT);
  EXPECT_EQ(outcome.fault().kind(), Fault::BARRIER);
  EXPECT_THAT(outcome.reason(), HasSubstr("not initialised"));
}

}  // namespace
}  // namespace solstice::device
