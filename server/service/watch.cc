#include "server/service/watch.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "runtime/base/strings.h"
#include "server/state/keys.h"
#include "server/state/transition.h"

namespace solstice::service {
namespace {

constexpr int kEventsPerRead = 64;
// A slow reader loses the oldest progress.
constexpr size_t kMaxProgress = 8;

// One stream. `busy_` is a token: whoever sets it alone may read, write or finish, and clears it when done. So a write
// and the end of the call never overlap, whichever threads they come from.
class WatchStream : public WatchRegistry::Stream, public std::enable_shared_from_this<WatchStream> {
 public:
  WatchStream(const Backend& backend, std::string tenant, std::string id, int64_t from)
      : backend_(backend), tenant_(std::move(tenant)), id_(std::move(id)), next_seq_(std::max<int64_t>(from, 1)) {}

  void Begin(grpc::ServerWriteReactor<v1::Event>* reactor) {
    {
      base::MutexLock lock(mutex_);
      reactor_ = reactor;
    }
    std::weak_ptr<WatchStream> weak = weak_from_this();
    // Before the first read, so that nothing falls between the two.
    subscription_ = backend_.evaluations->Subscribe(tenant_, id_, [weak](const v1::Event* progress) {
      if (auto self = weak.lock()) self->Notify(progress);
    });
    Step();
  }

  // Ends the call. The first reason stands.
  void Stop(const Status& why) override {
    {
      base::MutexLock lock(mutex_);
      if (end_.ok()) end_ = why;
      ending_ = true;
    }
    Step();
  }

  void WriteDone(bool ok) {
    {
      base::MutexLock lock(mutex_);
      busy_ = false;
      if (!ok) {
        ending_ = true;
        if (end_.ok()) end_ = base::Cancelled("the client has gone");
      } else if (current_.has_final()) {
        ending_ = true;
      }
    }
    Step();
  }

  void Done() { subscription_.reset(); }

 private:
  enum class Action { kNone, kRead, kWrite, kFinish };

  void Notify(const v1::Event* progress) {
    {
      base::MutexLock lock(mutex_);
      if (progress == nullptr) {
        more_ = true;
      } else {
        progress_.push_back(*progress);
        if (progress_.size() > kMaxProgress) progress_.pop_front();
      }
    }
    Step();
  }

  // Takes the token and does the next thing, if there is one and nobody else has the token.
  void Step() {
    grpc::ServerWriteReactor<v1::Event>* reactor = nullptr;
    Action action = Action::kNone;
    Status end;
    {
      base::MutexLock lock(mutex_);
      if (busy_ || finished_ || reactor_ == nullptr) return;
      reactor = reactor_;
      end = end_;
      action = Choose();
      busy_ = action == Action::kRead || action == Action::kWrite;
      finished_ = action == Action::kFinish;
    }
    // Outside the lock: gRPC may call back at once.
    switch (action) {
      case Action::kNone:
        break;
      case Action::kRead:
        if (!backend_.executor->Post([self = shared_from_this()] { self->Read(); })) {
          {
            base::MutexLock lock(mutex_);
            busy_ = false;
          }
          Stop(Overloaded());
        }
        break;
      case Action::kWrite:
        reactor->StartWrite(&current_);
        break;
      case Action::kFinish:
        RecordFailure("Watch", tenant_, end);
        reactor->Finish(rpc::ToGrpc(end));
        break;
    }
  }

  Action Choose() SOLSTICE_REQUIRES(mutex_) {
    if (ending_) return Action::kFinish;
    if (!stored_.empty()) {
      current_ = std::move(stored_.front());
      stored_.pop_front();
      return Action::kWrite;
    }
    if (more_) {
      more_ = false;
      return Action::kRead;
    }
    if (!progress_.empty()) {
      current_ = std::move(progress_.front());
      progress_.pop_front();
      return Action::kWrite;
    }
    return Action::kNone;
  }

  // With the token.
  void Read() {
    int64_t from;
    {
      base::MutexLock lock(mutex_);
      from = next_seq_;
    }
    StatusOr<std::vector<v1::Event>> events = backend_.evaluations->Events(tenant_, id_, from, kEventsPerRead);
    bool over = false;
    Status failed = events.status();
    if (events.ok() && events->empty()) {
      // Asked from beyond the end of what has ended: no event will ever come.
      StatusOr<v1::Evaluation> evaluation = backend_.evaluations->Get(tenant_, id_);
      failed = evaluation.status();
      over = evaluation.ok() && state::IsFinal(evaluation->state()) && from > evaluation->last_seq();
    }
    {
      base::MutexLock lock(mutex_);
      busy_ = false;
      if (!failed.ok() || over) {
        ending_ = true;
        if (end_.ok()) end_ = failed;
      } else if (!events->empty()) {
        next_seq_ = events->back().seq() + 1;
        // Until a read comes back empty there may be more.
        more_ = true;
        for (v1::Event& event : *events) stored_.push_back(std::move(event));
      }
    }
    Step();
  }

  const Backend& backend_;
  const std::string tenant_, id_;
  std::unique_ptr<state::Evaluations::Subscription> subscription_;
  v1::Event current_;  // with the token
  base::Mutex mutex_;
  grpc::ServerWriteReactor<v1::Event>* reactor_ SOLSTICE_GUARDED_BY(mutex_) = nullptr;
  int64_t next_seq_ SOLSTICE_GUARDED_BY(mutex_);
  std::deque<v1::Event> stored_ SOLSTICE_GUARDED_BY(mutex_);
  std::deque<v1::Event> progress_ SOLSTICE_GUARDED_BY(mutex_);
  bool more_ SOLSTICE_GUARDED_BY(mutex_) = true;
  bool busy_ SOLSTICE_GUARDED_BY(mutex_) = false;
  bool ending_ SOLSTICE_GUARDED_BY(mutex_) = false;
  bool finished_ SOLSTICE_GUARDED_BY(mutex_) = false;
  Status end_ SOLSTICE_GUARDED_BY(mutex_);
};

class WatchReactor : public grpc::ServerWriteReactor<v1::Event> {
 public:
  WatchReactor(const Backend& backend, WatchRegistry* registry, std::shared_ptr<WatchStream> stream)
      : call_(backend.activity->Begin()), registry_(registry), stream_(std::move(stream)) {
    stream_->Begin(this);
    registry_->Add(stream_);
  }
  void OnWriteDone(bool ok) override { stream_->WriteDone(ok); }
  void OnCancel() override { stream_->Stop(base::Cancelled("the client has gone")); }
  void OnDone() override {
    registry_->Remove(stream_.get());
    stream_->Done();
    delete this;
  }

 private:
  const std::shared_ptr<void> call_;
  WatchRegistry* const registry_;
  const std::shared_ptr<WatchStream> stream_;
};

// Refuses the call.
class RefusingReactor : public grpc::ServerWriteReactor<v1::Event> {
 public:
  explicit RefusingReactor(const Status& status) { Finish(rpc::ToGrpc(status)); }
  void OnDone() override { delete this; }
};

Status CheckRequest(const v1::WatchRequest& request) {
  if (!state::IsEvaluationId(request.evaluation_id())) {
    return base::InvalidArgument(base::StrCat("evaluation_id ", base::Quote(request.evaluation_id()), " is not an id"),
                                 "ids look like ev_01ARZ3NDEKTSV4RRFFQ69G5FAV; `solstice list` shows them");
  }
  if (request.from_seq() < 0) {
    return base::InvalidArgument(base::StrCat("from_seq ", request.from_seq(), " is negative"),
                                 "use 1 for the first event, or 0");
  }
  return absl::OkStatus();
}

}  // namespace

void WatchRegistry::Add(const std::shared_ptr<Stream>& stream) {
  Status why;
  {
    base::MutexLock lock(mutex_);
    streams_.push_back(stream);
    if (!stopped_) return;
    why = why_;
  }
  stream->Stop(why);
}

void WatchRegistry::Remove(const Stream* stream) {
  base::MutexLock lock(mutex_);
  std::erase_if(streams_, [stream](const std::weak_ptr<Stream>& known) {
    std::shared_ptr<Stream> held = known.lock();
    return held == nullptr || held.get() == stream;
  });
}

void WatchRegistry::StopAll(const Status& why) {
  std::vector<std::weak_ptr<Stream>> streams;
  {
    base::MutexLock lock(mutex_);
    stopped_ = true;
    why_ = why;
    streams = streams_;
  }
  for (const std::weak_ptr<Stream>& stream : streams) {
    if (auto held = stream.lock()) held->Stop(why);
  }
}

grpc::ServerWriteReactor<v1::Event>* StartWatch(const Backend& backend, WatchRegistry* registry,
                                                grpc::CallbackServerContext* context, const v1::WatchRequest& request) {
  StatusOr<std::string> tenant = TenantOf(*context, backend.config->trust_tenant_metadata());
  if (!tenant.ok()) return new RefusingReactor(tenant.status());
  Status valid = CheckRequest(request);
  if (!valid.ok()) return new RefusingReactor(valid);
  return new WatchReactor(backend, registry,
                          std::make_shared<WatchStream>(backend, *tenant, request.evaluation_id(), request.from_seq()));
}

}  // namespace solstice::service
