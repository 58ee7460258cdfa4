#include "runtime/worker/batch_clock.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>
#include <thread>

#include "runtime/base/file.h"

namespace solstice::worker {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kPageBytes = 4096;
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW;
// A longer batch bears some delay, and whoever waits for it need not hold a core.
constexpr std::chrono::milliseconds kAwake(100);
constexpr std::chrono::microseconds kPause(50);
constexpr std::chrono::microseconds kAskEvery(500);

// Until the word is set; false: `gone`, or `end` came first.
bool Await(const std::atomic<uint32_t>& word, Clock::time_point end, const std::function<bool()>& gone) {
  const auto started = Clock::now();
  auto ask = started + kAskEvery;
  while (word.load(std::memory_order_acquire) == 0) {
    const auto now = Clock::now();
    if (now >= end) return false;
    if (now >= ask) {
      if (gone && gone()) return false;
      ask = now + kAskEvery;
    }
    if (now - started > kAwake) std::this_thread::sleep_for(kPause);
  }
  return true;
}

}  // namespace

StatusOr<std::unique_ptr<BatchClock>> BatchClock::Create() {
  std::unique_ptr<BatchClock> clock(new BatchClock);
  SOLSTICE_ASSIGN_OR_RETURN(clock->page_, base::SizedMemfd("batch-clock", kPageBytes));
  SOLSTICE_RETURN_IF_ERROR(clock->Map());
  return clock;
}

StatusOr<std::unique_ptr<BatchClock>> BatchClock::Open(base::UniqueFd page) {
  struct stat info = {};
  const int seals = page.valid() ? ::fcntl(page.get(), F_GET_SEALS) : -1;
  if (seals < 0 || (seals & kSeals) != kSeals || ::fstat(page.get(), &info) != 0 || info.st_size != kPageBytes) {
    return base::InvalidArgument("the batch clock's page is none");
  }
  std::unique_ptr<BatchClock> clock(new BatchClock);
  clock->page_ = std::move(page);
  SOLSTICE_RETURN_IF_ERROR(clock->Map());
  return clock;
}

Status BatchClock::Map() {
  void* at = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, page_.get(), 0);
  if (at == MAP_FAILED) return base::FromErrno(errno, "the batch clock's page");
  words_ = static_cast<Page*>(at);
  return absl::OkStatus();
}

BatchClock::~BatchClock() {
  if (words_ != nullptr) ::munmap(words_, kPageBytes);
}

void BatchClock::Reset() {
  words_->ready.store(0);
  words_->go.store(0);
  words_->ended.store(0);
}

double BatchClock::Time(std::chrono::nanoseconds timeout, const std::function<bool()>& gone) {
  const auto end = Clock::now() + timeout;
  if (!Await(words_->ready, end, gone)) return 0;
  const auto started = Clock::now();
  words_->go.store(1, std::memory_order_release);
  Await(words_->ended, end, gone);
  return std::chrono::duration<double, std::micro>(Clock::now() - started).count();
}

Status BatchClock::AwaitGo(std::chrono::nanoseconds timeout) {
  words_->ready.store(1, std::memory_order_release);
  if (Await(words_->go, Clock::now() + timeout, nullptr)) return absl::OkStatus();
  return base::DeadlineExceeded("the server did not start the batch that it asked for");
}

void BatchClock::End() { words_->ended.store(1, std::memory_order_release); }

}  // namespace solstice::worker
