// The page by which a server starts a runner's batch and sees it end, each within a microsecond. Messages are no good for
// that: an answer takes 50 to 300 us, which is more than the iterations of a batch of short kernels may exceed together.
// The page holds three words. Neither end waits in the kernel; a runner that writes nonsense ends the batch early for
// the server, as a wrong answer would.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::worker {

// Either end's mapping of the page. Not thread-safe; two processes share it.
class BatchClock {
 public:
  // Server: a new page, closed. Its descriptor travels with Batch.
  static StatusOr<std::unique_ptr<BatchClock>> Create();
  // Runner: a page that came. INVALID_ARGUMENT: it is none of Create().
  static StatusOr<std::unique_ptr<BatchClock>> Open(base::UniqueFd page);
  ~BatchClock();

  int fd() const { return page_.get(); }

  // ---- Server ----------------------------------------------------------------------------------------------------

  // Forgets the last batch. Call before the runner is told to go.
  void Reset();
  // Waits until the runner is ready, says go, waits until it has ended: microseconds between the two. `gone` is asked
  // now and then; when it is true, or after `timeout`, waiting ends with what it is by then, 0 where go was not said.
  double Time(std::chrono::nanoseconds timeout, const std::function<bool()>& gone);

  // ---- Runner ----------------------------------------------------------------------------------------------------

  // Awake until the server says go. DEADLINE_EXCEEDED: it did not.
  Status AwaitGo(std::chrono::nanoseconds timeout);
  void End();

 private:
  struct Page {
    std::atomic<uint32_t> ready, go, ended;
  };
  static_assert(std::atomic<uint32_t>::is_always_lock_free);

  BatchClock() = default;
  Status Map();

  base::UniqueFd page_;
  Page* words_ = nullptr;
};

}  // namespace solstice::worker
