#include "server/service/executor.h"

#include <utility>

namespace solstice::service {

Executor::Executor(int threads, int capacity) : capacity_(static_cast<size_t>(capacity)) {
  for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { Work(); });
}

bool Executor::Post(std::function<void()> task) {
  base::MutexLock lock(mutex_);
  if (stopping_ || tasks_.size() >= capacity_) return false;
  tasks_.push_back(std::move(task));
  changed_.NotifyOne();
  return true;
}

void Executor::Stop() {
  {
    base::MutexLock lock(mutex_);
    stopping_ = true;
    changed_.NotifyAll();
  }
  for (std::thread& thread : threads_) {
    if (thread.joinable()) thread.join();
  }
}

void Executor::Work() {
  while (true) {
    std::function<void()> task;
    {
      base::MutexLock lock(mutex_);
      while (tasks_.empty() && !stopping_) changed_.Wait(mutex_);
      if (tasks_.empty()) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    task();
  }
}

}  // namespace solstice::service
