#include "runtime/device/emulator/clock.h"

#include <algorithm>
#include <thread>

namespace solstice::device {

Clock::Clock(std::chrono::nanoseconds timeout)
    : start_(std::chrono::steady_clock::now()),
      timeout_ns_(static_cast<uint64_t>(std::max<int64_t>(timeout.count(), 0))) {}

uint64_t Clock::NowNs() const {
  const auto real = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start_).count();
  return static_cast<uint64_t>(real) + skipped_ns_.load(std::memory_order_relaxed);
}

uint64_t Clock::WallNs() const {
  const auto real = std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
  return static_cast<uint64_t>(real) + skipped_ns_.load(std::memory_order_relaxed);
}

void Clock::Enter(uint64_t threads) {
  std::lock_guard<std::mutex> lock(mutex_);
  threads_ += threads;
}

void Clock::Leave() {
  std::lock_guard<std::mutex> lock(mutex_);
  --threads_;
}

void Clock::WaitUntil(uint64_t wake_ns, const std::atomic<bool>& stop) {
  std::unique_lock<std::mutex> lock(mutex_);
  // A thread stays listed until it runs on, so nobody skips past what it is about to do.
  const auto place = wakes_.insert(wake_ns);
  while (!stop.load(std::memory_order_relaxed)) {
    const uint64_t now = NowNs();
    if (now >= wake_ns || now > timeout_ns_) break;
    const uint64_t first = *wakes_.begin();
    if (wakes_.size() >= threads_) {
      if (first > now) skipped_ns_.fetch_add(first - now, std::memory_order_relaxed);
      if (first == wake_ns) continue;
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::microseconds(20));
    lock.lock();
  }
  wakes_.erase(place);
}

}  // namespace solstice::device
