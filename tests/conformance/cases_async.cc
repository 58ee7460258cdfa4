// Asynchronous copies and mbarriers.
#include "tests/conformance/kernel.h"

namespace solstice::conformance {

void AddAsync(std::vector<Case>* cases) {
  const std::string words = "b32 b32 b32 b32";
  const std::string to_shared = "cvt.u32.u64 %r0, %mine;\n  st.shared.v4.b32 [%mine], {-1, -1, -1, -1};\n  ";
  const std::string read_back = "\n  ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%mine];";
  // One thread makes the barrier; `wait` is what all do afterwards. %r4 is the barrier's address.
  const std::string barrier =
      "mov.u32 %r4, $E_shared;\n  add.u32 %r4, %r4, 4096;\n  setp.eq.u32 %p0, %t, 0;\n  "
      "@%p0 mbarrier.init.shared.b64 [%r4], ";
  const std::string wait = R"(
again: mbarrier.test_wait.parity.shared.b64 %p1, [%r4], 0;
  @!%p1 bra again;)";
  constexpr int kTuples = 64;
  AddRows(
      "async",
      {
          {"cp.async.ca.shared.global {4|8|16}", words, words,
           to_shared +
               "cp.async.ca.shared.global [%r0], [%src], [0];\n  cp.async.commit_group;\n  cp.async.wait_group 0;" +
               read_back,
           kTuples},
          {"cp.async.cg.shared.global 16", words, words,
           to_shared + "cp.async.cg.shared.global [%r0], [%src], 16;\n  cp.async.wait_all;" + read_back, kTuples},
          {"cp.async.ca.shared.global {4|8|16} {0|4}", words, words,
           to_shared + "mov.u32 %r1, [1];\n  cp.async.ca.shared.global [%r0], [%src], [0], %r1;\n  cp.async.wait_all;" +
               read_back,
           kTuples},
          {"cp.async.wait_group 1", "b32 b32", words,
           "cvt.u32.u64 %r0, %mine;\n  cp.async.ca.shared.global [%r0], [%src], 4;\n  cp.async.commit_group;\n"
           "  cp.async.ca.shared.global [%r0+4], [%src+4], 4;\n  cp.async.commit_group;\n  cp.async.wait_group 1;\n"
           "  ld.shared.b32 %o0, [%mine];\n  cp.async.wait_group 0;\n  ld.shared.b32 %o1, [%mine+4];",
           kTuples},
          {"mbarrier.arrive.shared.b64", "b32", words,
           barrier + "64;\n  bar.sync 0;\n  st.shared.b32 [%mine], %i0;\n  mbarrier.arrive.shared.b64 %q0, [%r4];" +
               wait +
               "\n  xor.b32 %r0, %t, 33;\n  shl.b32 %r0, %r0, 4;\n  mov.u32 %r1, $E_shared;\n  add.u32 %r0, %r0, %r1;\n"
               "  ld.shared.b32 %o0, [%r0];",
           kTuples},
          {"mbarrier.try_wait.shared.b64", "b32", words,
           barrier + "64;\n  bar.sync 0;\n  st.shared.b32 [%mine], %i1;\n  mbarrier.arrive.shared.b64 %q0, [%r4];\n"
                     "again: mbarrier.try_wait.shared.b64 %p1, [%r4], %q0;\n  @!%p1 bra again;\n"
                     "  xor.b32 %r0, %t, 33;\n  shl.b32 %r0, %r0, 4;\n  mov.u32 %r1, $E_shared;\n"
                     "  add.u32 %r0, %r0, %r1;\n  ld.shared.b32 %o0, [%r0];",
           kTuples},
          {"mbarrier.pending_count.b64", "b32", words,
           barrier + "64;\n  bar.sync 0;\n  mov.b32 %o0, 0;\n  @%p0 mbarrier.arrive.shared.b64 %q0, [%r4];\n"
                     "  @%p0 mbarrier.pending_count.b64 %o0, %q0;\n  bar.sync 0;",
           kTuples},
          {"mbarrier.arrive_drop.shared.b64", "pred", words,
           barrier + "64;\n  bar.sync 0;\n  mbarrier.arrive_drop.shared.b64 %q0, [%r4];\n  bar.sync 0;\n"
                     "  mbarrier.test_wait.parity.shared.b64 %o0, [%r4], 0;",
           kTuples},
          {"cp.async.mbarrier.arrive.noinc.shared.b64", words, words,
           barrier +
               "64;\n  bar.sync 0;\n  cvt.u32.u64 %r0, %mine;\n  cp.async.ca.shared.global [%r0], [%src], 16;\n"
               "  cp.async.mbarrier.arrive.noinc.shared.b64 [%r4];" +
               wait + read_back,
           kTuples},
          {"cp.async.bulk.shared::cluster.global", words, words,
           barrier +
               "1;\n  mov.u32 %r0, $E_shared;\n  fence.proxy.async;\n  bar.sync 0;\n"
               "  @!%p0 bra again;\n  mbarrier.arrive.expect_tx.shared.b64 %q0, [%r4], 1024;\n"
               "  cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r0], [%src], 1024, [%r4];" +
               wait + read_back,
           kTuples},
          {"cp.async.bulk.global.shared::cta", words, words,
           "st.shared.v4.b32 [%mine], {%i3, %i2, %i1, %i0};\n  fence.proxy.async;\n  bar.sync 0;\n"
           "  setp.eq.u32 %p0, %t, 0;\n  mov.u32 %r0, $E_shared;\n  @!%p0 bra ready;\n"
           "  cp.async.bulk.global.shared::cta.bulk_group [%common], [%r0], 1024;\n  cp.async.bulk.commit_group;\n"
           "  cp.async.bulk.wait_group 0;\nready: bar.sync 0;\n  mul.wide.u32 %q0, %t, 16;\n  add.s64 %q0, %q0, "
           "%common;\n"
           "  ld.volatile.global.v4.b32 {%o0, %o1, %o2, %o3}, [%q0];",
           kTuples},
          {"griddepcontrol.{wait|launch_dependents}", "b32", words, "griddepcontrol.[0];\n  mov.b32 %o0, %i0;",
           kTuples},
      },
      cases);
}

}  // namespace solstice::conformance
