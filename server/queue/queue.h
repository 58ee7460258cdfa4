// What waits for a stage, in memory; the store alone is durable (state::Evaluations::Recover fills it again). Bounded,
// first come first served within a tenant, round robin between tenants. Thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::queue {

struct Entry {
  std::string tenant;
  std::string id;
  int attempt = 1;
  v1::DeviceKind device_kind = v1::DEVICE_KIND_UNSPECIFIED;  // unspecified: any
  int device_ordinal = -1;                                   // -1: any
};

class Queue {
 public:
  explicit Queue(int capacity) : capacity_(capacity) {}

  // RESOURCE_EXHAUSTED (message with the capacity) when full, unless `force` (recovery and later stages: what was
  // accepted is never refused). FAILED_PRECONDITION after Close.
  Status Push(Entry entry, bool force = false);
  // Whether one more Push would be refused now.
  bool Full() const;
  // The next entry that `accepts`, in fair order; waits up to `timeout`. None after the timeout or Close.
  std::optional<Entry> Pop(const std::function<bool(const Entry&)>& accepts, std::chrono::nanoseconds timeout);
  // True if it was there.
  bool Remove(const std::string& tenant, const std::string& id);
  // How many entries go before it, 0 the next one; -1: not here.
  int Position(const std::string& tenant, const std::string& id) const;
  int size() const;
  // Wakes everyone; nothing is popped any more.
  void Close();

 private:
  const int capacity_;
  mutable base::Mutex mutex_;
  base::CondVar changed_;
  std::map<std::string, std::deque<Entry>> by_tenant_ SOLSTICE_GUARDED_BY(mutex_);
  std::string last_tenant_ SOLSTICE_GUARDED_BY(mutex_);
  int size_ SOLSTICE_GUARDED_BY(mutex_) = 0;
  bool closed_ SOLSTICE_GUARDED_BY(mutex_) = false;
};

}  // namespace solstice::queue
