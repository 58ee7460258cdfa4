// A std::mutex that clang's thread-safety analysis understands. Guarded members say by what: `int x SOLSTICE_GUARDED_BY(mu_)`.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

#if defined(__clang__)
#define SOLSTICE_TSA(x) __attribute__((x))
#else
#define SOLSTICE_TSA(x)
#endif
#define SOLSTICE_GUARDED_BY(x) SOLSTICE_TSA(guarded_by(x))
#define SOLSTICE_REQUIRES(...) SOLSTICE_TSA(requires_capability(__VA_ARGS__))
#define SOLSTICE_EXCLUDES(...) SOLSTICE_TSA(locks_excluded(__VA_ARGS__))

namespace solstice::base {

class SOLSTICE_TSA(capability("mutex")) Mutex {
 public:
  void Lock() SOLSTICE_TSA(acquire_capability()) { mutex_.lock(); }
  void Unlock() SOLSTICE_TSA(release_capability()) { mutex_.unlock(); }
  // For CondVar only.
  std::mutex& native() { return mutex_; }

 private:
  std::mutex mutex_;
};

class SOLSTICE_TSA(scoped_lockable) MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) SOLSTICE_TSA(acquire_capability(mutex)) : mutex_(mutex) { mutex_.Lock(); }
  ~MutexLock() SOLSTICE_TSA(release_capability()) { mutex_.Unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

// Waits release and take back a Mutex that the caller holds. Spurious wake-ups happen: wait in a loop.
class CondVar {
 public:
  void Wait(Mutex& mutex) SOLSTICE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native(), std::adopt_lock);
    condition_.wait(lock);
    lock.release();
  }
  // False when `timeout` passed without a notification.
  bool WaitFor(Mutex& mutex, std::chrono::nanoseconds timeout) SOLSTICE_REQUIRES(mutex) {
    std::unique_lock<std::mutex> lock(mutex.native(), std::adopt_lock);
    bool notified = condition_.wait_for(lock, timeout) == std::cv_status::no_timeout;
    lock.release();
    return notified;
  }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace solstice::base
