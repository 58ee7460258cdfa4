#include "server/queue/queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/strings.h"

namespace solstice::queue {

Status Queue::Push(Entry entry, bool force) {
  base::MutexLock lock(mutex_);
  if (closed_) return base::FailedPrecondition("the queue is closed: the server is stopping");
  if (size_ >= capacity_ && !force) {
    return base::ResourceExhausted(base::StrCat("the queue is full: ", capacity_, " evaluations are waiting"),
                                   "submit again after the delay that this error names");
  }
  by_tenant_[entry.tenant].push_back(std::move(entry));
  ++size_;
  // All, not one: each waiter accepts other entries.
  changed_.NotifyAll();
  return absl::OkStatus();
}

bool Queue::Full() const {
  base::MutexLock lock(mutex_);
  return closed_ || size_ >= capacity_;
}

std::optional<Entry> Queue::Pop(const std::function<bool(const Entry&)>& accepts, std::chrono::nanoseconds timeout) {
  using Clock = std::chrono::steady_clock;
  // Bounded, so that "for ever" does not overflow the clock.
  const auto give_up = Clock::now() + std::clamp(timeout, std::chrono::nanoseconds(0),
                                                 std::chrono::nanoseconds(std::chrono::hours(24 * 365)));
  base::MutexLock lock(mutex_);
  while (!closed_) {
    // Round robin: the tenants after the one served last, then the others.
    auto tenant = by_tenant_.upper_bound(last_tenant_);
    for (size_t visited = 0, tenants = by_tenant_.size(); visited < tenants; ++visited, ++tenant) {
      if (tenant == by_tenant_.end()) tenant = by_tenant_.begin();
      std::deque<Entry>& entries = tenant->second;
      auto found = std::find_if(entries.begin(), entries.end(), accepts);
      if (found == entries.end()) continue;
      Entry entry = std::move(*found);
      entries.erase(found);
      --size_;
      last_tenant_ = tenant->first;
      if (entries.empty()) by_tenant_.erase(tenant);
      return entry;
    }
    auto left = give_up - Clock::now();
    if (left <= Clock::duration::zero()) return std::nullopt;
    changed_.WaitFor(mutex_, left);
  }
  return std::nullopt;
}

bool Queue::Remove(const std::string& tenant, const std::string& id) {
  base::MutexLock lock(mutex_);
  auto found = by_tenant_.find(tenant);
  if (found == by_tenant_.end()) return false;
  std::deque<Entry>& entries = found->second;
  auto entry = std::find_if(entries.begin(), entries.end(), [&](const Entry& e) { return e.id == id; });
  if (entry == entries.end()) return false;
  entries.erase(entry);
  --size_;
  if (entries.empty()) by_tenant_.erase(found);
  return true;
}

int Queue::Position(const std::string& tenant, const std::string& id) const {
  base::MutexLock lock(mutex_);
  auto found = by_tenant_.find(tenant);
  if (found == by_tenant_.end()) return -1;
  const std::deque<Entry>& own = found->second;
  auto entry = std::find_if(own.begin(), own.end(), [&](const Entry& e) { return e.id == id; });
  if (entry == own.end()) return -1;
  // In each round every tenant is served once, in cyclic order from the one after the last served.
  const size_t round = static_cast<size_t>(entry - own.begin());
  const std::string last = last_tenant_;
  auto after_last = [&last](const std::string& name) { return name > last; };
  auto served_before = [&](const std::string& name) {
    return after_last(name) != after_last(tenant) ? after_last(name) : name < tenant;
  };
  size_t before = round;
  for (const auto& [name, entries] : by_tenant_) {
    if (name != tenant) before += std::min(entries.size(), round + (served_before(name) ? 1 : 0));
  }
  return static_cast<int>(before);
}

int Queue::size() const {
  base::MutexLock lock(mutex_);
  return size_;
}

void Queue::Close() {
  base::MutexLock lock(mutex_);
  closed_ = true;
  changed_.NotifyAll();
}

}  // namespace solstice::queue
