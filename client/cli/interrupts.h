// Ctrl-C as a callback on a thread of its own, so that the callback may lock and call.
#pragma once

#include <atomic>
#include <functional>
#include <thread>

namespace solstice::cli {

class Interrupts {
 public:
  // Blocks SIGINT and SIGTERM in the calling thread; call before any other thread exists.
  static void Block();

  // Runs `callback` once, at the first signal; a second one ends the process with code 130.
  explicit Interrupts(std::function<void()> callback);
  ~Interrupts();
  bool fired() const { return fired_.load(); }

 private:
  std::function<void()> callback_;
  std::atomic<bool> fired_{false}, done_{false};
  std::thread thread_;
};

}  // namespace solstice::cli
