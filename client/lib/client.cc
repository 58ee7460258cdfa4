#include "client/lib/client.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <cstdlib>
#include <thread>

#include "runtime/base/strings.h"
#include "runtime/rpc/status.h"
#include "solstice/v1/service.grpc.pb.h"

namespace solstice::client {
namespace {

constexpr int kCallDeadlineS = 30;
constexpr int kCompileDeadlineS = 120;
constexpr int kMaxMessageBytes = 16 << 20;
constexpr std::chrono::seconds kResumeFor(60);

}  // namespace

struct Client::Stubs {
  explicit Stubs(const std::shared_ptr<grpc::Channel>& channel)
      : evaluations(v1::Evaluations::NewStub(channel)),
        catalogue(v1::Catalogue::NewStub(channel)),
        server(v1::Server::NewStub(channel)) {}
  std::unique_ptr<v1::Evaluations::Stub> evaluations;
  std::unique_ptr<v1::Catalogue::Stub> catalogue;
  std::unique_ptr<v1::Server::Stub> server;
};

Client::~Client() = default;

StatusOr<std::unique_ptr<Client>> Client::Connect(const ConnectOptions& options) {
  std::unique_ptr<Client> client(new Client);
  client->tenant_ = options.tenant;
  client->address_ = options.server;
  if (client->address_.empty()) {
    const char* variable = std::getenv("SOLSTICE_SERVER");
    if (variable != nullptr) client->address_ = variable;
  }
  if (client->address_.empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(client->address_, EnsurePrivateServer(options.data_dir));
  }
  grpc::ChannelArguments arguments;
  // A proxy variable would catch even 127.0.0.1.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  arguments.SetMaxSendMessageSize(kMaxMessageBytes);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 30000);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 1000);
  auto channel = grpc::CreateCustomChannel(client->address_, grpc::InsecureChannelCredentials(), arguments);
  if (!channel->WaitForConnected(std::chrono::system_clock::now() + std::chrono::seconds(10))) {
    return base::Unavailable(base::StrCat("no server answers at ", client->address_),
                             "start one with `solsticed`, or leave out --server for a private one");
  }
  client->stubs_ = std::make_unique<Stubs>(channel);
  return client;
}

void Client::Prepare(grpc::ClientContext* context, int deadline_s) const {
  if (deadline_s > 0) context->set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(deadline_s));
  if (!tenant_.empty()) context->AddMetadata("solstice-tenant", tenant_);
}

#define SOLSTICE_CLIENT_CALL(stub, Method, request, Response, deadline_s)   \
  grpc::ClientContext context;                                              \
  Prepare(&context, deadline_s);                                            \
  Response response;                                                        \
  grpc::Status status = stubs_->stub->Method(&context, request, &response); \
  if (!status.ok()) return rpc::FromGrpc(status);                           \
  return response

StatusOr<v1::SubmitResponse> Client::Submit(const v1::SubmitRequest& request) {
  SOLSTICE_CLIENT_CALL(evaluations, Submit, request, v1::SubmitResponse, kCallDeadlineS);
}

StatusOr<v1::Evaluation> Client::Get(const std::string& id) {
  v1::GetRequest request;
  request.set_evaluation_id(id);
  SOLSTICE_CLIENT_CALL(evaluations, Get, request, v1::Evaluation, kCallDeadlineS);
}

StatusOr<v1::ListResponse> Client::List(const v1::ListRequest& request) {
  SOLSTICE_CLIENT_CALL(evaluations, List, request, v1::ListResponse, kCallDeadlineS);
}

StatusOr<v1::Evaluation> Client::Cancel(const std::string& id) {
  v1::CancelRequest request;
  request.set_evaluation_id(id);
  SOLSTICE_CLIENT_CALL(evaluations, Cancel, request, v1::Evaluation, kCallDeadlineS);
}

StatusOr<v1::CompileResponse> Client::Compile(const v1::CompileRequest& request) {
  SOLSTICE_CLIENT_CALL(evaluations, Compile, request, v1::CompileResponse, kCompileDeadlineS);
}

StatusOr<v1::ListDefinitionsResponse> Client::ListDefinitions() {
  v1::ListDefinitionsRequest request;
  SOLSTICE_CLIENT_CALL(catalogue, ListDefinitions, request, v1::ListDefinitionsResponse, kCallDeadlineS);
}

StatusOr<v1::DefinitionBundle> Client::GetDefinition(const std::string& name) {
  v1::GetDefinitionRequest request;
  request.set_name(name);
  SOLSTICE_CLIENT_CALL(catalogue, GetDefinition, request, v1::DefinitionBundle, kCallDeadlineS);
}

StatusOr<v1::ServerInfo> Client::GetInfo(bool probe) {
  v1::GetInfoRequest request;
  request.set_probe(probe);
  SOLSTICE_CLIENT_CALL(server, GetInfo, request, v1::ServerInfo, kCallDeadlineS);
}

#undef SOLSTICE_CLIENT_CALL

StatusOr<v1::Evaluation> Client::WatchOnce(const std::string& id, int64_t* next_seq,
                                           const std::function<void(const v1::Event&)>& on_event) {
  grpc::ClientContext context;
  Prepare(&context, 0);
  {
    base::MutexLock lock(mutex_);
    if (stopped_.load()) return base::Cancelled("stopped watching");
    watching_ = &context;
  }
  v1::WatchRequest request;
  request.set_evaluation_id(id);
  request.set_from_seq(*next_seq);
  auto stream = stubs_->evaluations->Watch(&context, request);
  v1::Event event;
  v1::Evaluation last;
  bool ended = false;
  while (stream->Read(&event)) {
    if (event.seq() > 0) *next_seq = event.seq() + 1;
    on_event(event);
    if (event.has_final()) {
      last = event.final();
      ended = true;
    }
  }
  grpc::Status status = stream->Finish();
  base::MutexLock lock(mutex_);
  watching_ = nullptr;
  if (ended) return last;
  if (stopped_.load()) return base::Cancelled("stopped watching");
  if (status.ok()) return base::Unavailable("the stream ended before the evaluation did");
  return rpc::FromGrpc(status);
}

StatusOr<v1::Evaluation> Client::Watch(const std::string& id, const std::function<void(const v1::Event&)>& on_event) {
  int64_t next_seq = 1;
  auto give_up = std::chrono::steady_clock::now() + kResumeFor;
  while (true) {
    const int64_t before = next_seq;
    auto result = WatchOnce(id, &next_seq, on_event);
    if (!absl::IsUnavailable(result.status())) return result;
    if (next_seq != before) give_up = std::chrono::steady_clock::now() + kResumeFor;
    if (stopped_.load()) return base::Cancelled("stopped watching");
    if (std::chrono::steady_clock::now() > give_up) return result;
    std::this_thread::sleep_for(std::chrono::milliseconds(250));
  }
}

void Client::StopWatching() {
  stopped_.store(true);
  base::MutexLock lock(mutex_);
  if (watching_ != nullptr) watching_->TryCancel();
}

}  // namespace solstice::client
