// Who wants to hear of an evaluation's new events. Thread-safe.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/mutex.h"
#include "server/state/evaluations.h"

namespace solstice::state {

class Watchers {
 public:
  using Notify = std::function<void(const v1::Event* progress)>;

  // After the handle's destruction `notify` neither runs nor will run; so never destroy it inside `notify`. Handles may
  // outlive the Watchers.
  std::unique_ptr<Evaluations::Subscription> Subscribe(const std::string& tenant, const std::string& id, Notify notify);
  void Tell(const std::string& tenant, const std::string& id, const v1::Event* progress);

 private:
  // Its lock is held while `notify` runs, so that removal can wait for a call under way.
  struct Watcher {
    base::Mutex mutex;
    Notify notify SOLSTICE_GUARDED_BY(mutex);
  };
  struct Registry {
    base::Mutex mutex;
    std::map<std::pair<std::string, std::string>, std::vector<std::shared_ptr<Watcher>>> watchers
        SOLSTICE_GUARDED_BY(mutex);
  };
  class Handle;

  std::shared_ptr<Registry> registry_ = std::make_shared<Registry>();
};

}  // namespace solstice::state
