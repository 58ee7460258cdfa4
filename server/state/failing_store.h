// For tests: a Store that crashes. After `writes` further writes every call fails, as if the process were gone; the
// last write is done or lost, as `applied` says: a crash can come before or after the data reached the disk.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/mutex.h"
#include "server/store/store.h"

namespace solstice::state {

class FailingStore : public store::Store {
 public:
  explicit FailingStore(store::Store* base) : base_(base) {}

  void CrashAtWrite(int writes, bool applied) {
    base::MutexLock lock(mutex_);
    left_ = writes;
    applied_ = applied;
  }
  bool crashed() const {
    base::MutexLock lock(mutex_);
    return crashed_;
  }
  int writes() const {
    base::MutexLock lock(mutex_);
    return writes_;
  }

  Status Write(const store::Batch& batch, store::Durability durability) override {
    base::MutexLock lock(mutex_);
    if (crashed_) return Gone();
    ++writes_;
    if (left_ > 0 && --left_ == 0) {
      crashed_ = true;
      if (applied_) SOLSTICE_RETURN_IF_ERROR(base_->Write(batch, durability));
      return Gone();
    }
    return base_->Write(batch, durability);
  }
  StatusOr<std::string> Get(std::string_view key) const override {
    if (crashed()) return Gone();
    return base_->Get(key);
  }
  Status Scan(std::string_view prefix, std::string_view start, bool reverse,
              const std::function<bool(std::string_view, std::string_view)>& visit) const override {
    if (crashed()) return Gone();
    return base_->Scan(prefix, start, reverse, visit);
  }

 private:
  static Status Gone() { return base::Unavailable("the store crashed (test)"); }

  store::Store* const base_;
  mutable base::Mutex mutex_;
  int left_ SOLSTICE_GUARDED_BY(mutex_) = 0;
  int writes_ SOLSTICE_GUARDED_BY(mutex_) = 0;
  bool applied_ SOLSTICE_GUARDED_BY(mutex_) = false;
  bool crashed_ SOLSTICE_GUARDED_BY(mutex_) = false;
};

}  // namespace solstice::state
