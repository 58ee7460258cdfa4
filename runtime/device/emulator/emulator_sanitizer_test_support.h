// Runs a kernel under the sanitizer and returns its findings.
#ifndef SOLSTICE_RUNTIME_DEVICE_EMULATOR_EMULATOR_SANITIZER_TEST_SUPPORT_H_
#define SOLSTICE_RUNTIME_DEVICE_EMULATOR_EMULATOR_SANITIZER_TEST_SUPPORT_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {

using v1::Finding;

inline constexpr int kThreads = 64;

// `body` runs in one block of 64 threads. %t: thread, %s: its word of shared memory, %n: its neighbour's (t + 1 modulo
// 64), %x: the word 32 threads further, %o: its word of the output, %i: of the input, which holds t + 1. `barrier` has
// room for an mbarrier.
inline std::string Kernel(const std::string& body) {
  return Wrap(R"(
.visible .entry k(.param .u64 pi, .param .u64 po)
{
  .reg .pred %p<8>;
  .reg .b32 %t, %s, %n, %x, %l, %v<8>;
  .reg .b64 %i, %o, %w<4>;
  .shared .align 16 .b8 memory[256];
  .shared .align 8 .b8 barrier[8];
  .local .align 8 .b8 own[16];
  mov.u32 %t, %tid.x;
  mov.u32 %s, memory;
  and.b32 %l, %t, 31;
  shl.b32 %v0, %t, 2;
  add.u32 %n, %v0, 4;
  and.b32 %n, %n, 255;
  add.u32 %n, %n, %s;
  add.u32 %x, %v0, 128;
  and.b32 %x, %x, 255;
  add.u32 %x, %x, %s;
  add.u32 %s, %s, %v0;
  mul.wide.u32 %w0, %t, 4;
  ld.param.u64 %i, [pi];
  add.u64 %i, %i, %w0;
  ld.param.u64 %o, [po];
  add.u64 %o, %o, %w0;
)" + body + "\n  ret;\n}\n");
}

inline std::vector<Finding> Find(const std::string& ptx, int threads = kThreads, int64_t grid = 1) {
  Machine machine(ptx);
  std::vector<uint32_t> input(kThreads);
  for (int i = 0; i < kThreads; ++i) input[i] = static_cast<uint32_t>(i + 1);
  const Address in = machine.Buffer(input, "x");
  auto out = machine.device().Allocate(kPage, Extent{"y", 0, 4 * kThreads, "output"});
  EXPECT_TRUE(out.ok()) << out.status();
  RunLimits limits;
  limits.sanitize = true;
  const RunOutcome outcome = machine.Run("k", grid, threads, {Argument(in), Argument((*out)->address())}, 0, limits);
  EXPECT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  return {outcome.findings().begin(), outcome.findings().end()};
}

inline testing::Matcher<const Finding&> Is(Finding::Kind kind, const std::string& text) {
  return testing::AllOf(testing::Property("kind", &Finding::kind, kind),
                        testing::Property("message", &Finding::message, testing::HasSubstr(text)));
}

}  // namespace solstice::device

#endif  // SOLSTICE_RUNTIME_DEVICE_EMULATOR_EMULATOR_SANITIZER_TEST_SUPPORT_H_
