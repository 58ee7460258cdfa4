// For tests: a whole server on a unix socket over a real store, with a pipeline that does what the test says, for the
// paths that a working pipeline does not take.
#pragma once

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/crypto.h"
#include "runtime/base/mutex.h"
#include "runtime/base/strings.h"
#include "runtime/rpc/status.h"
#include "server/service/config.h"
#include "server/service/log.h"
#include "server/service/server.h"
#include "solstice/v1/service.grpc.pb.h"

namespace solstice::service {

// What the test and its pipeline share; outlives both.
struct Script {
  state::Evaluations* evaluations = nullptr;
  Status start, admit;
  std::function<StatusOr<v1::CompileResponse>(const std::string& tenant)> compile =
      [](const std::string&) -> StatusOr<v1::CompileResponse> { return v1::CompileResponse(); };
  base::Mutex mutex;
  std::vector<std::string> enqueued SOLSTICE_GUARDED_BY(mutex), cancelled SOLSTICE_GUARDED_BY(mutex);
  int running SOLSTICE_GUARDED_BY(mutex) = 0;
  bool shut_down SOLSTICE_GUARDED_BY(mutex) = false;

  std::vector<std::string> Enqueued() {
    base::MutexLock lock(mutex);
    return enqueued;
  }
  std::vector<std::string> Cancelled() {
    base::MutexLock lock(mutex);
    return cancelled;
  }
  void SetRunning(int count) {
    base::MutexLock lock(mutex);
    running = count;
  }
};

class ScriptedPipeline : public pipeline::Pipeline {
 public:
  explicit ScriptedPipeline(Script* script) : script_(*script) {}
  Status Admit(const v1::EvaluationOptions&) override { return script_.admit; }
  void Enqueue(const v1::Evaluation& evaluation) override {
    base::MutexLock lock(script_.mutex);
    script_.enqueued.push_back(evaluation.id());
  }
  void Cancel(const std::string&, const std::string& id) override {
    base::MutexLock lock(script_.mutex);
    script_.cancelled.push_back(id);
  }
  StatusOr<v1::CompileResponse> Compile(const std::string& tenant, const v1::CompileRequest&) override {
    return script_.compile(tenant);
  }
  v1::ServerInfo Info(bool probe) override {
    v1::ServerInfo info;
    base::MutexLock lock(script_.mutex);
    if (probe) info.mutable_host()->set_driver_error("probed");
    info.set_running(script_.running);
    return info;
  }
  void Shutdown() override {
    base::MutexLock lock(script_.mutex);
    script_.shut_down = true;
  }

 private:
  Script& script_;
};

class ServiceTest : public testing::Test {
 protected:
  ServiceTest() : folder_(base::StrCat(testing::TempDir(), "/sol_", base::Hex(base::RandomBytes(6)))) {
    std::filesystem::create_directories(folder_);
    ::chmod(folder_.c_str(), 0700);
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
    SetLogLevel("off");
  }
  ~ServiceTest() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }

  ServerOptions Options() {
    ServerOptions options;
    options.config.set_data_dir(folder_ + "/data");
    options.config.add_listen(base::StrCat("unix:", folder_, "/s.sock"));
    options.config.add_definition_roots(SOLSTICE_SOURCE_DIR "/definitions/flashinfer-bench/rmsnorm_h128");
    options.config.set_reference_kernels(SOLSTICE_SOURCE_DIR "/reference_kernels");
    options.config.set_trust_tenant_metadata(true);
    Status completed = CompleteConfig("/nowhere/bin", &options.config);
    EXPECT_TRUE(completed.ok()) << completed;
    options.version = "1.2.3";
    options.build_id = "build-a";
    options.stop_grace = std::chrono::milliseconds(2000);
    options.start_pipeline = [this](const pipeline::Options&, const catalog::Catalog*, state::Evaluations* evaluations,
                                    store::Store*,
                                    const base::Clock*) -> StatusOr<std::unique_ptr<pipeline::Pipeline>> {
      SOLSTICE_RETURN_IF_ERROR(script_.start);
      script_.evaluations = evaluations;
      return std::unique_ptr<pipeline::Pipeline>(new ScriptedPipeline(&script_));
    };
    return options;
  }
  void Start() { Start(Options()); }
  void Start(ServerOptions options) {
    auto server = Server::Start(std::move(options));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    Dial(server_->addresses()[0]);
  }
  void Dial(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
    arguments.SetMaxReceiveMessageSize(-1);
    arguments.SetMaxSendMessageSize(-1);
    // A channel of its own, lest a dead connection be reused.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    channel_ = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
    evaluations_ = v1::Evaluations::NewStub(channel_);
    catalogue_ = v1::Catalogue::NewStub(channel_);
    info_ = v1::Server::NewStub(channel_);
  }

  static std::unique_ptr<grpc::ClientContext> Context(const std::string& tenant = "") {
    auto context = std::make_unique<grpc::ClientContext>();
    if (!tenant.empty()) context->AddMetadata("solstice-tenant", tenant);
    // A bound for a broken server only.
    context->set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(2));
    return context;
  }
  static v1::SubmitRequest Request() {
    v1::SubmitRequest request;
    request.mutable_solution()->set_name("s");
    request.mutable_solution()->set_definition("rmsnorm_h128");
    v1::SourceFile* source = request.mutable_solution()->add_sources();
    source->set_path("kernel.cu");
    source->set_content(
        "//@ launch k grid=(1) block=(1) args=(hidden_states, weight, output)\n"
        "extern \"C\" __global__ void k(const void* a, const void* b, void* c) {}\n");
    return request;
  }
  StatusOr<v1::SubmitResponse> Submit(const v1::SubmitRequest& request, const std::string& tenant = "") {
    v1::SubmitResponse response;
    grpc::Status status = evaluations_->Submit(Context(tenant).get(), request, &response);
    if (!status.ok()) return rpc::FromGrpc(status);
    return response;
  }
  std::string MustSubmit(const std::string& tenant = "") {
    auto response = Submit(Request(), tenant);
    EXPECT_TRUE(response.ok()) << response.status() << base::MendOf(response.status());
    return response.ok() ? response->evaluation_id() : "";
  }
  // `Method` of any stub with one request.
  template <typename Stub, typename Request, typename Response>
  static Status Call(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                     const Request& request, Response* response, const std::string& tenant = "") {
    auto context = Context(tenant);
    return rpc::FromGrpc((stub.*method)(context.get(), request, response));
  }

  const std::string folder_;
  Script script_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Evaluations::Stub> evaluations_;
  std::unique_ptr<v1::Catalogue::Stub> catalogue_;
  std::unique_ptr<v1::Server::Stub> info_;
};

}  // namespace solstice::service
