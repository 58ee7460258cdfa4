// What the three services share, and the one way in which unary calls are answered.
#pragma once

#include <grpcpp/grpcpp.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/catalog/catalog.h"
#include "runtime/rpc/status.h"
#include "server/pipeline/pipeline.h"
#include "server/service/executor.h"
#include "server/state/evaluations.h"
#include "solstice/v1/config.pb.h"

namespace solstice::service {

// How many calls are under way, and when the last one ended. Thread-safe.
class Activity {
 public:
  explicit Activity(const base::Clock* clock) : clock_(clock), last_ns_(clock->NowSteadyNs()) {}
  // The call is under way as long as the handle lives.
  std::shared_ptr<void> Begin() {
    active_.fetch_add(1);
    return std::shared_ptr<void>(nullptr, [this](void*) {
      Touch();
      active_.fetch_sub(1);
    });
  }
  void Touch() { last_ns_.store(clock_->NowSteadyNs()); }
  int active() const { return active_.load(); }
  // Nanoseconds of the steady clock.
  int64_t last_ns() const { return last_ns_.load(); }

 private:
  const base::Clock* const clock_;
  std::atomic<int> active_{0};
  std::atomic<int64_t> last_ns_;
};

// Nothing here is owned; all of it outlives the services.
struct Backend {
  const v1::ServerConfig* config = nullptr;
  const catalog::Catalog* catalog = nullptr;
  state::Evaluations* evaluations = nullptr;
  pipeline::Pipeline* pipeline = nullptr;
  Executor* executor = nullptr;
  Executor* compile_executor = nullptr;
  Activity* activity = nullptr;
  // Set while the server stops or hands over: nothing new is accepted.
  const std::atomic<bool>* draining = nullptr;
  std::string version;
  std::string build_id;
};

// "local", or, where the configuration trusts it, the metadata `solstice-tenant`. INVALID_ARGUMENT for a bad name.
StatusOr<std::string> TenantOf(const grpc::CallbackServerContext& context, bool trust_metadata);
// UNAVAILABLE while draining.
Status CheckAccepting(const Backend& backend);
// One line for failures that are ours.
void RecordFailure(const char* method, const std::string& tenant, const Status& status);
Status Overloaded();

// Runs `work(tenant)` on `executor` and answers with what it returns.
template <typename Response>
grpc::ServerUnaryReactor* Answer(const Backend& backend, Executor& executor, const char* method,
                                 grpc::CallbackServerContext* context, Response* response,
                                 std::function<StatusOr<Response>(const std::string& tenant)> work) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  StatusOr<std::string> tenant = TenantOf(*context, backend.config->trust_tenant_metadata());
  if (!tenant.ok()) {
    reactor->Finish(rpc::ToGrpc(tenant.status()));
    return reactor;
  }
  std::shared_ptr<void> call = backend.activity->Begin();
  bool posted = executor.Post([method, context, response, reactor, call, tenant = *tenant, work = std::move(work)] {
    // The client has gone or its deadline has passed: it hears this status only if it still listens.
    if (context->IsCancelled()) {
      reactor->Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the call ended before its turn came"));
      return;
    }
    StatusOr<Response> result = work(tenant);
    if (result.ok()) {
      *response = *std::move(result);
      reactor->Finish(grpc::Status::OK);
    } else {
      RecordFailure(method, tenant, result.status());
      reactor->Finish(rpc::ToGrpc(result.status()));
    }
  });
  if (!posted) reactor->Finish(rpc::ToGrpc(Overloaded()));
  return reactor;
}

}  // namespace solstice::service
