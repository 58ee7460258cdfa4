#include "runtime/worker/batch_clock.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

#include "runtime/base/file.h"

namespace solstice::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

base::UniqueFd Copy(int fd) { return base::UniqueFd(::fcntl(fd, F_DUPFD_CLOEXEC, 3)); }

// Another process that works as a runner does; its exit code is 0 if all was well.
pid_t Runner(const BatchClock& clock, int batches, milliseconds work, bool end = true) {
  pid_t pid = ::fork();
  if (pid != 0) return pid;
  auto opened = BatchClock::Open(Copy(clock.fd()));
  for (int i = 0; i < batches; ++i) {
    if (!opened.ok() || !(*opened)->AwaitGo(seconds(20)).ok()) ::_exit(1);
    std::this_thread::sleep_for(work);
    if (end) (*opened)->End();
  }
  ::_exit(0);
}

int ExitCode(pid_t pid) {
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

TEST(BatchClockTest, TimesWhatTheOtherProcessDoesBetweenGoAndItsEnd) {
  auto clock = BatchClock::Create();
  ASSERT_TRUE(clock.ok()) << clock.status();
  pid_t pid = Runner(**clock, 1, milliseconds(30));
  std::this_thread::sleep_for(milliseconds(40));  // that the runner waits for go is none of the batch's time
  const auto started = std::chrono::steady_clock::now();
  const double us = (*clock)->Time(seconds(20), nullptr);
  const double most_us = std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - started).count();
  EXPECT_GE(us, 30e3);
  EXPECT_LE(us, most_us);
  EXPECT_EQ(ExitCode(pid), 0);
}

TEST(BatchClockTest, ServesOneBatchAfterAnother) {
  auto clock = BatchClock::Create();
  ASSERT_TRUE(clock.ok()) << clock.status();
  for (int i = 0; i < 3; ++i) {
    (*clock)->Reset();
    pid_t pid = Runner(**clock, 1, milliseconds(2));
    EXPECT_GE((*clock)->Time(seconds(20), nullptr), 2e3);
    EXPECT_EQ(ExitCode(pid), 0);
  }
}

TEST(BatchClockTest, EndsWaitingWhenTheRunnerIsGone) {
  auto clock = BatchClock::Create();
  ASSERT_TRUE(clock.ok()) << clock.status();
  pid_t pid = Runner(**clock, 1, milliseconds(1), /*end=*/false);
  int asked = 0;
  bool reaped = false;
  const double us = (*clock)->Time(seconds(60), [&] {
    ++asked;
    reaped = reaped || ::waitpid(pid, nullptr, WNOHANG) == pid;
    return reaped;
  });
  EXPECT_TRUE(reaped);
  EXPECT_GT(asked, 0);
  EXPECT_GE(us, 1e3);
  EXPECT_LT(us, 30e6);
}

TEST(BatchClockTest, ARunnerThatIsNeverReadyCostsTheTimeout) {
  auto clock = BatchClock::Create();
  ASSERT_TRUE(clock.ok()) << clock.status();
  EXPECT_EQ((*clock)->Time(milliseconds(5), nullptr), 0);
  EXPECT_EQ((*clock)->Time(seconds(60), [] { return true; }), 0);
}

TEST(BatchClockTest, ARunnerDoesNotWaitForEver) {
  auto clock = BatchClock::Create();
  ASSERT_TRUE(clock.ok()) << clock.status();
  auto runner = BatchClock::Open(Copy((*clock)->fd()));
  ASSERT_TRUE(runner.ok()) << runner.status();
  EXPECT_EQ((*runner)->AwaitGo(milliseconds(5)).code(), absl::StatusCode::kDeadlineExceeded);
}

TEST(BatchClockTest, OpensOnlyAPageThatCannotShrink) {
  base::UniqueFd unsealed(::memfd_create("x", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(unsealed.get(), 4096), 0);
  EXPECT_EQ(BatchClock::Open(std::move(unsealed)).status().code(), absl::StatusCode::kInvalidArgument);
  auto small = base::SizedMemfd("x", 16);
  ASSERT_TRUE(small.ok()) << small.status();
  EXPECT_EQ(BatchClock::Open(*std::move(small)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BatchClock::Open(base::UniqueFd(::open("/dev/null", O_RDWR))).status().code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(BatchClock::Open(base::UniqueFd()).status().code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace solstice::worker
