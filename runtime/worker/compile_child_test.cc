#include "runtime/worker/compile_child.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <vector>

#include "runtime/sandbox/channel.h"

namespace solstice::worker {
namespace {

using testing::HasSubstr;
using v1::internal::CompileLimits;
using v1::internal::Program;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

class CompileChildTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = sandbox::Channel::MakePair();
    ASSERT_TRUE(pair.ok());
    ours_ = std::move(pair->first);
    peer_ = std::move(pair->second);
  }

  // `work` runs in the child; what it stands for is a source that makes the compiler do so.
  StatusOr<Program> Compile(const std::function<StatusOr<Program>()>& work, CompileLimits limits = {}) {
    return CompileInChild(work, EffectiveLimits(limits), ours_.get());
  }

  base::UniqueFd ours_, peer_;
};

TEST_F(CompileChildTest, ResultComesBack) {
  auto program = Compile([]() -> StatusOr<Program> {
    Program made;
    made.set_verdict(v1::PASSED);
    made.set_ptx(std::string(1 << 20, 'p'));
    made.set_log("bad \xFF text");
    return made;
  });
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->verdict(), v1::PASSED);
  EXPECT_EQ(program->ptx().size(), size_t{1} << 20);
  EXPECT_EQ(program->log(), "bad ? text");
}

TEST_F(CompileChildTest, OurFailureStaysAStatus) {
  auto program = Compile([]() -> StatusOr<Program> { return base::FailedPrecondition("versions do not match"); });
  EXPECT_EQ(program.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(program.status()), HasSubstr("versions do not match"));
}

TEST_F(CompileChildTest, ImpossibleShapesAreRefused) {
  auto program = Compile([]() -> StatusOr<Program> {
    Program made;
    for (int i = 0; i < 100000; ++i) made.add_kernels();
    return made;
  });
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInternal);
}

TEST_F(CompileChildTest, DeadlineIsACompileError) {
  CompileLimits limits;
  limits.set_time_s(0.2);
  auto program = Compile(
      []() -> StatusOr<Program> {
        for (;;) pause();
      },
      limits);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(program->reason(), HasSubstr("compile time limit of 0.2 s"));
  EXPECT_FALSE(program->mend().empty());
}

TEST_F(CompileChildTest, CrashIsACompileError) {
  for (int signal : {SIGSEGV, SIGABRT, SIGILL}) {
    auto program = Compile([signal]() -> StatusOr<Program> {
      ::signal(signal, SIG_DFL);
      raise(signal);
      return Program();
    });
    ASSERT_TRUE(program.ok());
    EXPECT_EQ(program->verdict(), v1::COMPILE_ERROR);
    EXPECT_THAT(program->reason(), HasSubstr("crashed"));
  }
}

TEST_F(CompileChildTest, ExitInsideTheCompilerIsACompileError) {
  auto program = Compile([]() -> StatusOr<Program> { _exit(3); });
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(program->reason(), HasSubstr("exit code 3"));
}

TEST_F(CompileChildTest, ExitWithoutAResultIsOurFailure) {
  auto program = Compile([]() -> StatusOr<Program> { _exit(0); });
  EXPECT_EQ(program.status().code(), absl::StatusCode::kInternal);
}

TEST_F(CompileChildTest, MemoryIsACompileError) {
  if (kSanitized) GTEST_SKIP() << "address space cannot be limited under AddressSanitizer";
  CompileLimits limits;
  limits.set_memory_bytes(300 << 20);
  auto program = Compile(
      []() -> StatusOr<Program> {
        std::vector<std::string> all;
        while (true) all.emplace_back(1 << 20, 'x');
      },
      limits);
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(program->reason(), HasSubstr("compile memory limit of 300 MiB"));
  // As the library itself reports it.
  program = Compile([]() -> StatusOr<Program> { return base::ResourceExhausted("out of memory"); });
  ASSERT_TRUE(program.ok());
  EXPECT_THAT(program->reason(), HasSubstr("compile memory limit"));
}

TEST_F(CompileChildTest, FilesAreLimited) {
  CompileLimits limits;
  limits.set_cubin_bytes(1 << 20);
  auto program = Compile(
      []() -> StatusOr<Program> {
        Program made;
        made.set_cubin(std::string(110 << 20, 'x'));
        return made;
      },
      limits);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_EQ(program->verdict(), v1::COMPILE_ERROR);
  EXPECT_THAT(program->reason(), HasSubstr("larger than"));
}

TEST_F(CompileChildTest, DeathInScratchSpaceIsForAnotherToJudge) {
  auto work = []() -> StatusOr<Program> { _exit(3); };
  auto program = CompileInChild(work, EffectiveLimits({}), ours_.get(), 1 << 20);
  EXPECT_EQ(program.status().code(), absl::StatusCode::kAborted);
  CompileLimits limits;
  limits.set_time_s(0.2);
  auto endless = []() -> StatusOr<Program> {
    for (;;) pause();
  };
  program = CompileInChild(endless, EffectiveLimits(limits), ours_.get(), 1 << 20);
  ASSERT_TRUE(program.ok()) << program.status();
  EXPECT_THAT(program->reason(), HasSubstr("time limit"));
}

TEST_F(CompileChildTest, PeerThatGoesAwayEndsTheCompile) {
  peer_.Reset();
  auto program = Compile([]() -> StatusOr<Program> {
    for (;;) pause();
  });
  EXPECT_EQ(program.status().code(), absl::StatusCode::kCancelled);
}

TEST_F(CompileChildTest, ChannelIsClosedInTheChild) {
  int fd = ours_.get();
  auto program = Compile([fd]() -> StatusOr<Program> {
    Program made;
    made.set_reason(fcntl(fd, F_GETFD) < 0 ? "closed" : "open");
    return made;
  });
  ASSERT_TRUE(program.ok());
  EXPECT_EQ(program->reason(), "closed");
}

TEST(EffectiveLimitsTest, DefaultsAndClamps) {
  CompileLimits limits;
  limits.set_time_s(std::nan(""));
  limits.set_memory_bytes(-1);
  limits.set_cubin_bytes(INT64_MAX);
  CompileLimits effective = EffectiveLimits(limits);
  EXPECT_EQ(effective.time_s(), 30);
  EXPECT_EQ(effective.memory_bytes(), int64_t{4} << 30);
  EXPECT_EQ(effective.cubin_bytes(), 128 << 20);
  EXPECT_EQ(effective.log_bytes(), 64 << 10);
}

}  // namespace
}  // namespace solstice::worker
