// Threads that run tasks from a bounded queue, so that no gRPC thread waits for a disk or a compiler. Thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"

namespace solstice::service {

class Executor {
 public:
  Executor(int threads, int capacity);
  ~Executor() { Stop(); }

  // False when `capacity` tasks wait, or after Stop(); the task is then dropped.
  [[nodiscard]] bool Post(std::function<void()> task);
  // Runs what waits, then joins. Idempotent; not from a task.
  void Stop();

 private:
  void Work();

  const size_t capacity_;
  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<std::function<void()>> tasks_ SOLSTICE_GUARDED_BY(mutex_);
  bool stopping_ SOLSTICE_GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace solstice::service
