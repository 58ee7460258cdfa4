// The clock of one Synchronize: real time, plus what was skipped while every host thread had only sleeping warps.
// Sleeping so costs nothing, yet counts against the timeout. Thread-safe after Start.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <set>

namespace solstice::device {

class Clock {
 public:
  explicit Clock(std::chrono::nanoseconds timeout);

  uint64_t NowNs() const;   // since the start
  uint64_t WallNs() const;  // since 1970, for %globaltimer
  bool TimedOut() const { return NowNs() > timeout_ns_; }

  // How many host threads may be in WaitUntil before time is skipped; each calls Leave when it has no more to run.
  void Enter(uint64_t threads);
  void Leave();
  // Returns when the clock has reached `wake_ns` or past the timeout, or soon after `stop` is set.
  void WaitUntil(uint64_t wake_ns, const std::atomic<bool>& stop);

 private:
  const std::chrono::steady_clock::time_point start_;
  const uint64_t timeout_ns_;
  std::atomic<uint64_t> skipped_ns_{0};
  std::mutex mutex_;  // guards what follows
  uint64_t threads_ = 0;
  std::multiset<uint64_t> wakes_;  // of the threads in WaitUntil
};

}  // namespace solstice::device
