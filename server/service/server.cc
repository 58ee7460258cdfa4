#include "server/service/server.h"

#include <grpc/grpc.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/health_check_service_interface.h>
#include <sys/stat.h>

#include <atomic>
#include <optional>
#include <thread>

#include "runtime/base/strings.h"
#include "runtime/rpc/private_server.h"
#include "server/service/backend.h"
#include "server/service/config.h"
#include "server/service/listen.h"
#include "server/service/log.h"
#include "server/service/services.h"
#include "server/store/rocksdb/rocksdb_store.h"

namespace solstice::service {
namespace {

constexpr int kCallThreads = 8;
constexpr int kMaxWaitingCalls = 4096;
constexpr int kMaxWaitingCompiles = 64;
constexpr std::chrono::milliseconds kMonitorInterval(200);
// Clients may ping this often: shorter than the idle limits of common proxies.
constexpr int kMinClientPingMs = 10000;
constexpr int kServerPingMs = 60000;

class ServerImpl : public Server {
 public:
  explicit ServerImpl(ServerOptions options)
      : options_(std::move(options)),
        activity_(options_.clock),
        executor_(kCallThreads, kMaxWaitingCalls),
        compile_executor_(std::max(1, options_.config.compile_workers()), kMaxWaitingCompiles),
        evaluations_service_(&backend_),
        catalogue_service_(&backend_),
        server_service_(&backend_) {}
  ~ServerImpl() override { Shutdown(); }

  Status Start();
  const std::vector<std::string>& addresses() const override { return addresses_; }
  std::string Wait() override;
  void RequestShutdown(const std::string& reason) override;
  void RequestHandover() override;
  void Shutdown() override;

 private:
  Status OpenData();
  Status StartPipeline();
  Status Listen();
  // A private server's own reasons to end.
  void Monitor();
  bool Idle() const;

  ServerOptions options_;
  std::optional<rpc::PrivateLock> lock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<state::Evaluations> evaluations_;
  std::unique_ptr<catalog::Catalog> catalog_;
  std::unique_ptr<pipeline::Pipeline> pipeline_;
  std::atomic<bool> draining_{false};
  Activity activity_;
  Backend backend_;
  Executor executor_, compile_executor_;
  EvaluationsService evaluations_service_;
  CatalogueService catalogue_service_;
  ServerService server_service_;
  std::unique_ptr<grpc::Server> grpc_;
  std::vector<std::string> addresses_;

  base::Mutex mutex_;
  base::CondVar changed_;
  bool shutdown_requested_ SOLSTICE_GUARDED_BY(mutex_) = false;
  bool handover_ SOLSTICE_GUARDED_BY(mutex_) = false;
  std::string reason_ SOLSTICE_GUARDED_BY(mutex_);
  base::Mutex shutdown_mutex_;
  bool shut_down_ SOLSTICE_GUARDED_BY(shutdown_mutex_) = false;
  std::thread monitor_;
};

Status ServerImpl::OpenData() {
  v1::ServerConfig& config = options_.config;
  SOLSTICE_ASSIGN_OR_RETURN(std::string data_dir, rpc::PrepareDataDir(config.data_dir()));
  config.set_data_dir(data_dir);
  if (options_.private_server) {
    SOLSTICE_ASSIGN_OR_RETURN(lock_, rpc::PrivateLock::TryTake(data_dir));
    if (!lock_) {
      return base::FailedPrecondition(base::StrCat(data_dir, ": another private server holds this data folder"),
                                      "connect to it");
    }
    rpc::ClearHandover(data_dir);
    SOLSTICE_ASSIGN_OR_RETURN(std::string socket, rpc::PrivateSocketPath(data_dir));
    config.clear_listen();
    config.add_listen("unix:" + socket);
  }
  // Before anything is opened: these errors are the commonest.
  for (const std::string& address : config.listen()) SOLSTICE_RETURN_IF_ERROR(PrepareAddress(address));
  store::RocksDbOptions store_options;
  store_options.accept_loss = options_.accept_loss;
  SOLSTICE_ASSIGN_OR_RETURN(store_, store::OpenRocksDb(data_dir + "/store", store_options));
  SOLSTICE_ASSIGN_OR_RETURN(evaluations_, state::Evaluations::Open(store_.get(), options_.clock));
  std::vector<std::string> roots(config.definition_roots().begin(), config.definition_roots().end());
  StatusOr<std::unique_ptr<catalog::Catalog>> catalog = catalog::Catalog::Load(roots, config.reference_kernels());
  if (!catalog.ok()) {
    return base::InvalidArgument(base::StrCat("definitions: ", base::MessageOf(catalog.status())),
                                 base::MendOf(catalog.status()));
  }
  catalog_ = *std::move(catalog);
  for (const std::string& problem : catalog_->problems()) LogWarning(base::StrCat("definition left out: ", problem));
  return absl::OkStatus();
}

Status ServerImpl::StartPipeline() {
  SOLSTICE_ASSIGN_OR_RETURN(pipeline::Options options, PipelineOptions(options_.config, options_.build_id));
  SOLSTICE_ASSIGN_OR_RETURN(
      pipeline_, options_.start_pipeline(options, catalog_.get(), evaluations_.get(), store_.get(), options_.clock));
  backend_.config = &options_.config;
  backend_.catalog = catalog_.get();
  backend_.evaluations = evaluations_.get();
  backend_.pipeline = pipeline_.get();
  backend_.executor = &executor_;
  backend_.compile_executor = &compile_executor_;
  backend_.activity = &activity_;
  backend_.draining = &draining_;
  backend_.version = options_.version;
  backend_.build_id = options_.build_id;
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<v1::Evaluation> queued, evaluations_->Recover(options_.config.max_attempts()));
  for (const v1::Evaluation& evaluation : queued) pipeline_->Enqueue(evaluation);
  if (!queued.empty()) LogInfo(base::StrCat("recovered ", queued.size(), " unfinished evaluations"));
  return absl::OkStatus();
}

Status ServerImpl::Listen() {
  // Once more than it is shut down: the library's own shutdown waits 10 s after a call broken by an oversized message.
  static const bool initialised = [] {
    grpc_init();
    return true;
  }();
  (void)initialised;
  grpc::EnableDefaultHealthCheckService(true);
  grpc::reflection::InitProtoReflectionServerBuilderPlugin();
  grpc::ServerBuilder builder;
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.SetMaxSendMessageSize(kMaxMessageBytes);
  // Otherwise a second server on the same port would silently share its calls.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinClientPingMs);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kServerPingMs);
  std::vector<int> ports(static_cast<size_t>(options_.config.listen_size()), -1);
  for (int i = 0; i < options_.config.listen_size(); ++i) {
    builder.AddListeningPort(options_.config.listen(i), grpc::InsecureServerCredentials(), &ports[i]);
  }
  builder.RegisterService(&evaluations_service_);
  builder.RegisterService(&catalogue_service_);
  builder.RegisterService(&server_service_);
  grpc_ = builder.BuildAndStart();
  for (int i = 0; i < options_.config.listen_size(); ++i) {
    const std::string& address = options_.config.listen(i);
    if (grpc_ == nullptr || ports[i] <= 0) {
      return base::FailedPrecondition(base::StrCat("cannot listen on ", address), "pass another --listen");
    }
    std::string path = SocketPath(address);
    if (!path.empty()) {
      // This user's alone: whoever reaches the socket may submit.
      if (::chmod(path.c_str(), 0600) != 0) return base::FromErrno(errno, path);
      addresses_.push_back(address);
    } else {
      addresses_.push_back(base::StrCat(address.substr(0, address.rfind(':') + 1), ports[i]));
    }
    if (!IsLocal(address)) {
      LogWarning(base::StrCat("listening on ", addresses_.back(),
                              ": calls are neither encrypted nor authenticated; keep this network trusted"));
    }
    LogInfo(base::StrCat("listening on ", addresses_.back()));
  }
  return absl::OkStatus();
}

Status ServerImpl::Start() {
  SOLSTICE_RETURN_IF_ERROR(OpenData());
  SOLSTICE_RETURN_IF_ERROR(StartPipeline());
  SOLSTICE_RETURN_IF_ERROR(Listen());
  activity_.Touch();
  monitor_ = std::thread([this] { Monitor(); });
  return absl::OkStatus();
}

bool ServerImpl::Idle() const {
  if (activity_.active() > 0) return false;
  v1::ServerInfo info = pipeline_->Info(/*probe=*/false);
  return info.queued() + info.running() == 0;
}

void ServerImpl::Monitor() {
  std::optional<int64_t> handover_since;
  while (true) {
    bool handover;
    {
      base::MutexLock lock(mutex_);
      if (!shutdown_requested_) changed_.WaitFor(mutex_, kMonitorInterval);
      if (shutdown_requested_) return;
      handover = handover_;
    }
    const int64_t now = options_.clock->NowSteadyNs();
    const bool idle = Idle();
    if (!idle) activity_.Touch();
    if (options_.private_server) {
      if (!lock_->StillOurs()) RequestShutdown("the lock file is gone");
      if (!handover && rpc::HandoverRequested(options_.config.data_dir(), options_.build_id)) {
        RequestHandover();
        handover = true;
      }
      if (idle && now - activity_.last_ns() > std::chrono::nanoseconds(options_.linger).count()) {
        RequestShutdown("nothing to do");
      }
    }
    if (!handover) continue;
    if (!handover_since) handover_since = now;
    if (idle || now - *handover_since > std::chrono::nanoseconds(options_.handover_timeout).count()) {
      RequestShutdown("handing over to another build");
    }
  }
}

std::string ServerImpl::Wait() {
  base::MutexLock lock(mutex_);
  while (!shutdown_requested_) changed_.Wait(mutex_);
  return reason_;
}

void ServerImpl::RequestShutdown(const std::string& reason) {
  base::MutexLock lock(mutex_);
  if (shutdown_requested_) return;
  shutdown_requested_ = true;
  reason_ = reason;
  changed_.NotifyAll();
}

void ServerImpl::RequestHandover() {
  draining_.store(true);
  base::MutexLock lock(mutex_);
  if (!handover_) LogInfo("draining for another build");
  handover_ = true;
  changed_.NotifyAll();
}

void ServerImpl::Shutdown() {
  base::MutexLock lock(shutdown_mutex_);
  if (shut_down_) return;
  shut_down_ = true;
  RequestShutdown("shut down");
  draining_.store(true);
  if (monitor_.joinable()) monitor_.join();
  evaluations_service_.StopWatches(
      base::Unavailable("the server is stopping", "watch again from the next event when it is back"));
  // Before the calls are waited for: a compilation under way ends with its worker.
  if (pipeline_ != nullptr) pipeline_->Shutdown();
  if (grpc_ != nullptr) {
    grpc_->Shutdown(std::chrono::system_clock::now() + options_.stop_grace);
    grpc_->Wait();
  }
  executor_.Stop();
  compile_executor_.Stop();
  grpc_.reset();
  pipeline_.reset();
  evaluations_.reset();
  store_.reset();
  lock_.reset();
}

}  // namespace

StatusOr<std::unique_ptr<Server>> Server::Start(ServerOptions options) {
  auto server = std::make_unique<ServerImpl>(std::move(options));
  SOLSTICE_RETURN_IF_ERROR(server->Start());
  return std::unique_ptr<Server>(std::move(server));
}

}  // namespace solstice::service
