#include "server/state/watchers.h"

#include <algorithm>

namespace solstice::state {

class Watchers::Handle : public Evaluations::Subscription {
 public:
  Handle(std::shared_ptr<Registry> registry, std::pair<std::string, std::string> key, std::shared_ptr<Watcher> watcher)
      : registry_(std::move(registry)), key_(std::move(key)), watcher_(std::move(watcher)) {}

  ~Handle() override {
    {
      base::MutexLock lock(registry_->mutex);
      auto found = registry_->watchers.find(key_);
      if (found != registry_->watchers.end()) {
        std::erase(found->second, watcher_);
        if (found->second.empty()) registry_->watchers.erase(found);
      }
    }
    base::MutexLock lock(watcher_->mutex);
    watcher_->notify = nullptr;
  }

 private:
  const std::shared_ptr<Registry> registry_;
  const std::pair<std::string, std::string> key_;
  const std::shared_ptr<Watcher> watcher_;
};

std::unique_ptr<Evaluations::Subscription> Watchers::Subscribe(const std::string& tenant, const std::string& id,
                                                               Notify notify) {
  auto watcher = std::make_shared<Watcher>();
  {
    base::MutexLock lock(watcher->mutex);
    watcher->notify = std::move(notify);
  }
  std::pair<std::string, std::string> key(tenant, id);
  {
    base::MutexLock lock(registry_->mutex);
    registry_->watchers[key].push_back(watcher);
  }
  return std::make_unique<Handle>(registry_, std::move(key), std::move(watcher));
}

void Watchers::Tell(const std::string& tenant, const std::string& id, const v1::Event* progress) {
  std::vector<std::shared_ptr<Watcher>> told;
  {
    base::MutexLock lock(registry_->mutex);
    auto found = registry_->watchers.find({tenant, id});
    if (found == registry_->watchers.end()) return;
    told = found->second;
  }
  for (const std::shared_ptr<Watcher>& watcher : told) {
    base::MutexLock lock(watcher->mutex);
    if (watcher->notify) watcher->notify(progress);
  }
}

}  // namespace solstice::state
