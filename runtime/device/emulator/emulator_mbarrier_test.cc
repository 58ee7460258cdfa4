// mbarrier: counts, phases and transactions, and objects that are none.
#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<uint32_t>;

// One block; %r1, set by `body`, is stored for each thread.
std::string Kernel(const std::string& body) {
  return Wrap(R"(
.visible .entry k(.param .u64 out)
{
  .reg .pred %p<8>;
  .reg .b32 %t, %s, %r<16>;
  .reg .b64 %out, %d<16>, %q<8>;
  .shared .align 8 .b64 bar[4];
  .shared .align 16 .b8 s[4096];
  mov.u32 %t, %tid.x;
  ld.param.u64 %out, [out];
  mul.wide.u32 %d0, %t, 4;
  add.u64 %out, %out, %d0;
  mov.u32 %r1, 0;
  mov.u32 %s, bar;
)" + body + R"(
  st.global.u32 [%out], %r1;
  ret;
}
)");
}

struct Result {
  RunOutcome outcome;
  Words words;
};

Result RunKernel(const std::string& body, int64_t threads = 1, RunLimits limits = {}) {
  Machine machine(Kernel(body));
  const Address out = machine.Buffer(Words(static_cast<size_t>(threads) + 8));
  Result result;
  result.outcome = machine.Run("k", 1, threads, {Argument(out)}, 0, limits);
  result.words = machine.Read<uint32_t>(out, static_cast<size_t>(threads));
  return result;
}

// Appends to %r1 whether the phases of parity 0 and 1 are over: two bits.
const std::string kPhase = R"(
  mbarrier.test_wait.parity.shared.b64 %p6, [bar], 0;
  mbarrier.test_wait.parity.shared.b64 %p7, [bar], 1;
  selp.u32 %r14, 2, 0, %p6;
  selp.u32 %r15, 1, 0, %p7;
  shl.b32 %r1, %r1, 2;
  or.b32 %r1, %r1, %r14;
  or.b32 %r1, %r1, %r15;
)";

// In each phase: its own parity is not over, the other one is.
TEST(Mbarrier, PhasesFollowTheCounts) {
  struct Case {
    const char* text;
    uint32_t phases;  // as kPhase writes them
  };
  const std::string a = "mbarrier.arrive.shared.b64 _, [bar];", p = kPhase;
  const Case cases[] = {
      // Two arrivals end a phase, and again.
      {"mbarrier.init.shared.b64 [bar], 2; ? A ? A ? A A ?", 0b01'01'10'01},
      {"mbarrier.init.shared.b64 [bar], 5; mbarrier.arrive.shared.b64 %q0, [bar], 4; ? A ?", 0b01'10},
      {"mbarrier.init.shared.b64 [bar], 5; mbarrier.arrive.noComplete.shared.b64 %q0, [bar], 4; ? A ?", 0b01'10},
      // Transactions hold a phase back, whichever comes first.
      {"mbarrier.init.shared.b64 [bar], 1; mbarrier.arrive.expect_tx.shared.b64 _, [bar], 8; ? "
       "mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [bar], 3; ? mbarrier.complete_tx.shared.b64 [bar], 5; ?",
       0b01'01'10},
      {"mbarrier.init.shared.b64 [bar], 1; mbarrier.complete_tx.shared.b64 [bar], 8; A ? "
       "mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [bar], 8; ?",
       0b01'10},
      // What is dropped is expected no more.
      {"mbarrier.init.shared.b64 [bar], 3; mbarrier.arrive_drop.shared.b64 _, [bar]; A ? A ? A ? A ?", 0b01'10'10'01},
      {"mbarrier.init.shared.b64 [bar], 3; mbarrier.arrive_drop.noComplete.shared.b64 %q0, [bar], 2; ? A ? A ?",
       0b01'10'01},
      {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive_drop.shared.b64 %q0, [bar], 2; ?", 0b10},
      {"mbarrier.init.shared.b64 [bar], 2; mbarrier.arrive_drop.expect_tx.shared.b64 _, [bar], 4; A ? "
       "mbarrier.complete_tx.shared.b64 [bar], 4; ? A ?",
       0b01'10'01},
      // A new object after another.
      {"mbarrier.init.shared.b64 [bar], 1; A ? mbarrier.inval.shared.b64 [bar]; mbarrier.init.shared.b64 [bar], 2; ?",
       0b10'01},
      {"mbarrier.init.shared.b64 [bar], 1048575; mbarrier.arrive.shared.b64 %q0, [bar], 1048575; ?", 0b10}};
  for (const Case& c : cases) {
    std::string body;
    for (const char* at = c.text; *at != 0; ++at) {
      if (*at == '?') {
        body += p;
      } else if (*at == 'A' && (at[1] == ' ' || at[1] == 0)) {
        body += a;
      } else {
        body += *at;
      }
    }
    const Result result = RunKernel(body);
    ASSERT_EQ(result.outcome.kind(), RunOutcome::OK) << c.text << result.outcome.reason();
    EXPECT_EQ(result.words[0], c.phases) << c.text;
  }
}

// Addresses of every kind, and states: a state is over when its own phase is.
TEST(Mbarrier, StatesAndAddresses) {
  const std::string body = R"(
  cvta.shared.u64 %d1, 0;
  cvt.u64.u32 %d2, %s;
  add.u64 %d1, %d1, %d2;
  mbarrier.init.b64 [%d1+8], 2;
  mbarrier.arrive.release.cta.b64 %q0, [%d1+8];
  mbarrier.test_wait.acquire.cta.shared::cta.b64 %p0, [%s+8], %q0;
  mbarrier.arrive.release.cluster.shared::cta.b64 %q1, [bar+8];
  mbarrier.test_wait.shared.b64 %p1, [%d2+8], %q0;
  mbarrier.try_wait.b64 %p2, [%d1+8], %q1, 20;
  mbarrier.arrive.shared.b64 %q2, [%s+8];
  mbarrier.try_wait.relaxed.cta.shared::cta.b64 %p3, [%s+8], %q2;
  selp.u32 %r2, 1, 0, %p0;
  selp.u32 %r3, 2, 0, %p1;
  selp.u32 %r4, 4, 0, %p2;
  selp.u32 %r5, 8, 0, %p3;
  or.b32 %r1, %r2, %r3;
  or.b32 %r1, %r1, %r4;
  or.b32 %r1, %r1, %r5;
)";
  const Result result = RunKernel(body);
  ASSERT_EQ(result.outcome.kind(), RunOutcome::OK) << result.outcome.reason();
  EXPECT_EQ(result.words[0], 2u | 4u);
}

TEST(Mbarrier, PendingCount) {
  const Result result = RunKernel(R"(
  mbarrier.init.shared.b64 [bar], 9;
  mbarrier.arrive.noComplete.shared.b64 %q0, [bar], 3;
  mbarrier.arrive_drop.noComplete.shared.b64 %q1, [bar], 2;
  mbarrier.pending_count.b64 %r2, %q0;
  mbarrier.pending_count.b64 %r3, %q1;
  shl.b32 %r2, %r2, 8;
  or.b32 %r1, %r2, %r3;
)");
  ASSERT_EQ(result.outcome.kind(), RunOutcome::OK) << result.outcome.reason();
  EXPECT_EQ(result.words[0], 9u << 8 | 6u);
}

// A producer warp fills four slots in turn while the others spin, for many rounds: spinning must hand over.
TEST(Mbarrier, SpinningThreadsMakeProgress) {
  for (const char* wait : {"mbarrier.try_wait.parity.shared.b64", "mbarrier.test_wait.parity.shared::cta.b64"}) {
    const std::string body = std::string(R"(
  setp.ne.u32 %p1, %t, 0;
  @%p1 bra READY;
  mbarrier.init.shared.b64 [bar], 32;
  mbarrier.init.shared.b64 [bar+8], 96;
READY:
  bar.sync 0;
  mov.u32 %r2, 0;
  setp.lt.u32 %p2, %t, 96;
  @%p2 bra CONSUME;
PRODUCE:
  and.b32 %r3, %r2, 1;
  xor.b32 %r4, %r3, 1;
FREE:
  )") + wait + R"( %p3, [bar+8], %r4;
  @!%p3 bra FREE;
  st.shared.u32 [s], %r2;
  mbarrier.arrive.shared.b64 _, [bar];
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p4, %r2, 300;
  @%p4 bra PRODUCE;
  bra END;
CONSUME:
  and.b32 %r3, %r2, 1;
FULL:
  )" + wait + R"( %p3, [bar], %r3;
  @!%p3 bra FULL;
  ld.shared.u32 %r5, [s];
  add.u32 %r1, %r1, %r5;
  mbarrier.arrive.shared.b64 _, [bar+8];
  add.u32 %r2, %r2, 1;
  setp.lt.u32 %p4, %r2, 300;
  @%p4 bra CONSUME;
END:
)";
    const Result result = RunKernel(body, 128);
    ASSERT_EQ(result.outcome.kind(), RunOutcome::OK) << result.outcome.reason();
    for (uint32_t t = 0; t < 96; ++t) EXPECT_EQ(result.words[t], 300u * 299u / 2) << t;
  }
}

// Within one warp the lanes that wait and those that arrive are groups that take turns.
TEST(Mbarrier, LanesOfOneWarpWaitForOneAnother) {
  const std::string body = R"(
  setp.eq.u32 %p1, %t, 0;
  @%p1 mbarrier.init.shared.b64 [bar], 1;
  bar.warp.sync -1;
  setp.eq.u32 %p2, %t, 31;
  @%p2 bra ARRIVE;
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
  @!%p3 bra WAIT;
  ld.shared.u32 %r1, [s];
  bra END;
ARRIVE:
  mov.u32 %r1, 77;
  st.shared.u32 [s], %r1;
  mbarrier.arrive.shared.b64 _, [bar];
END:
)";
  const Result result = RunKernel(body, 32);
  ASSERT_EQ(result.outcome.kind(), RunOutcome::OK) << result.outcome.reason();
  EXPECT_EQ(result.words, Words(32, 77));
}

TEST(Mbarrier, WaitingForeverTimesOut) {
  RunLimits limits;
  limits.timeout = std::chrono::milliseconds(200);
  const Result result = RunKernel(R"(
  mbarrier.init.shared.b64 [bar], 2;
  mbarrier.arrive.shared.b64 _, [bar];
WAIT:
  mbarrier.try_wait.parity.shared.b64 %p3, [bar], 0;
  @!%p3 bra WAIT;
)",
                                  1, limits);
  EXPECT_EQ(result.outcome.kind(), RunOutcome::TIMEOUT) << result.outcome.reason();
}

TEST(Mbarrier, WrongUsesAreFaults) {
  const std::string init = "mbarrier.init.shared.b64 [bar], 2;";
  struct Case {
    std::string body;
    Fault::Kind kind;
    const char* text;
  };
  const Case cases[] = {
      {"mbarrier.arrive.shared.b64 _, [bar];", Fault::BARRIER, "not initialised"},
      {"st.shared.u64 [bar], 0; mbarrier.test_wait.parity.shared.b64 %p1, [bar], 0;", Fault::BARRIER,
       "not initialised"},
      {init + "mbarrier.inval.shared.b64 [bar]; mbarrier.inval.shared.b64 [bar];", Fault::BARRIER, "not initialised"},
      {init + "st.shared.u8 [bar], 0; mbarrier.arrive.shared.b64 _, [bar];", Fault::BARRIER, "overwritten"},
      {"mbarrier.init.shared.b64 [bar], 0;", Fault::BARRIER, "for 0 arrivals"},
      {"mbarrier.init.shared.b64 [bar], 1048576;", Fault::BARRIER, "1048575"},
      {init + "mbarrier.arrive.shared.b64 %q0, [bar], 3;", Fault::BARRIER, "arrives 3 times"},
      {init + "mbarrier.arrive.shared.b64 %q0, [bar], 0;", Fault::BARRIER, "arrives 0 times"},
      {init + "mbarrier.arrive.noComplete.shared.b64 %q0, [bar], 2;", Fault::BARRIER, "without completing"},
      {init + "mbarrier.arrive_drop.shared.b64 %q0, [bar], 0xffffffff;", Fault::BARRIER, "drops 4294967295"},
      {init + "mbarrier.expect_tx.shared.b64 [bar], 1048576;", Fault::BARRIER, "transactions"},
      {init + "mbarrier.complete_tx.shared.b64 [bar], 1048575; mbarrier.complete_tx.shared.b64 [bar], 1;",
       Fault::BARRIER, "transactions"},
      {"mbarrier.init.shared.b64 [bar], 1048575; cp.async.mbarrier.arrive.shared.b64 [bar];", Fault::BARRIER,
       "more than 1048575"},
      {"mov.u64 %d1, 72; mbarrier.pending_count.b64 %r1, %d1;", Fault::BARRIER, "not the state"},
      {"mbarrier.init.shared.b64 [%s+4], 1;", Fault::MISALIGNED, "8 bytes"},
      {"mbarrier.init.shared.b64 [%s+65536], 1;", Fault::OUT_OF_BOUNDS, "shared memory"},
      {"ld.param.u64 %d1, [out]; mbarrier.init.b64 [%d1], 1;", Fault::BARRIER, "not in shared memory"},
      {"mov.u64 %d1, 8; mbarrier.init.b64 [%d1], 1;", Fault::OUT_OF_BOUNDS, "8 bytes"}};
  for (const Case& c : cases) {
    const Result result = RunKernel(c.body);
    ASSERT_EQ(result.outcome.kind(), RunOutcome::FAULT) << c.body << result.outcome.reason();
    EXPECT_EQ(result.outcome.fault().kind(), c.kind) << c.body << result.outcome.reason();
    EXPECT_THAT(result.outcome.reason(), HasSubstr(c.text)) << c.body;
    EXPECT_THAT(result.outcome.reason(), HasSubstr("PTX line ")) << c.body;
  }
}

// Whatever bits lie in shared memory, and whatever is done with them, ends in a result or a fault.
TEST(Mbarrier, AnyBitsAreHandled) {
  for (const uint64_t word : {0x4ull, 0x5ull, 0xfffffffffffffffcull, 0xfffffffffffffffdull, 0x8000000000000004ull,
                              0xfffff80000000004ull, 0x7ffffffffffffffcull, 0x000007fffffffffcull}) {
    for (const char* use : {"mbarrier.arrive.shared.b64 %q0, [bar];", "mbarrier.arrive_drop.shared.b64 _, [bar], 7;",
                            "mbarrier.expect_tx.shared.b64 [bar], 1;", "mbarrier.complete_tx.shared.b64 [bar], 1;",
                            "mbarrier.arrive.expect_tx.shared.b64 _, [bar], 0;", "mbarrier.pending_count.b64 %r1, %d1;",
                            "cp.async.mbarrier.arrive.shared.b64 [bar];"}) {
      const Result result =
          RunKernel(base::StrCat("mov.u64 %d1, ", word, "; st.shared.u64 [bar], %d1; ") + use + kPhase);
      EXPECT_TRUE(result.outcome.kind() == RunOutcome::OK || result.outcome.kind() == RunOutcome::FAULT) << use;
    }
  }
}

}  // namespace
}  // namespace solstice::device
