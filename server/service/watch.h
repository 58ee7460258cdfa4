// Streaming an evaluation's log. Events come from the store, so a slow reader costs no memory: only what is being sent
// and a few progress events are held. Thread-safe.
#pragma once

#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "server/service/backend.h"
#include "solstice/v1/service.pb.h"

namespace solstice::service {

// Every stream under way, so that a stopping server can end them.
class WatchRegistry {
 public:
  class Stream {
   public:
    virtual ~Stream() = default;
    virtual void Stop(const Status& why) = 0;
  };
  // After StopAll, new streams are stopped at once.
  void Add(const std::shared_ptr<Stream>& stream);
  void Remove(const Stream* stream);
  void StopAll(const Status& why);

 private:
  base::Mutex mutex_;
  std::vector<std::weak_ptr<Stream>> streams_ SOLSTICE_GUARDED_BY(mutex_);
  bool stopped_ SOLSTICE_GUARDED_BY(mutex_) = false;
  Status why_ SOLSTICE_GUARDED_BY(mutex_);
};

// The reactor deletes itself when the call is done.
grpc::ServerWriteReactor<v1::Event>* StartWatch(const Backend& backend, WatchRegistry* registry,
                                                grpc::CallbackServerContext* context, const v1::WatchRequest& request);

}  // namespace solstice::service
