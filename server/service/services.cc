#include "server/service/services.h"

#include "runtime/base/strings.h"
#include "server/state/keys.h"

namespace solstice::service {
namespace {

// A malformed id is the caller's mistake; an unknown one is NOT_FOUND, as is another tenant's.
Status CheckId(const std::string& id) {
  if (state::IsEvaluationId(id)) return absl::OkStatus();
  return base::InvalidArgument(base::StrCat("evaluation_id ", base::Quote(id), " is not an id"),
                               "ids look like ev_01ARZ3NDEKTSV4RRFFQ69G5FAV; `solstice list` shows them");
}

StatusOr<v1::SubmitResponse> Submit(const Backend& backend, const std::string& tenant,
                                    const v1::SubmitRequest& request) {
  SOLSTICE_RETURN_IF_ERROR(CheckAccepting(backend));
  SOLSTICE_ASSIGN_OR_RETURN(pipeline::ValidSubmission valid,
                            pipeline::Validate(request, *backend.catalog, backend.config->accept_inline_definitions()));
  SOLSTICE_RETURN_IF_ERROR(backend.pipeline->Admit(valid.submission.options()));
  state::Evaluations::Creation creation;
  creation.tenant = tenant;
  creation.client_request_id = request.client_request_id();
  creation.submission = std::move(valid.submission);
  creation.bundle = std::move(valid.bundle);
  creation.fields = std::move(valid.fields);
  SOLSTICE_ASSIGN_OR_RETURN(state::Evaluations::Created created, backend.evaluations->Create(creation));
  if (!created.duplicate) backend.pipeline->Enqueue(created.evaluation);
  v1::SubmitResponse response;
  response.set_evaluation_id(created.evaluation.id());
  response.set_duplicate(created.duplicate);
  return response;
}

StatusOr<v1::Evaluation> Cancel(const Backend& backend, const std::string& tenant, const std::string& id) {
  SOLSTICE_RETURN_IF_ERROR(CheckId(id));
  SOLSTICE_ASSIGN_OR_RETURN(v1::Evaluation evaluation, backend.evaluations->Cancel(tenant, id));
  // Also when it was cancelled before: the first call may have ended between the two.
  backend.pipeline->Cancel(tenant, id);
  return evaluation;
}

v1::DefinitionSummary Summary(const v1::DefinitionBundle& bundle) {
  v1::DefinitionSummary summary;
  summary.set_version(bundle.version());
  summary.set_op_type(bundle.definition().op_type());
  summary.set_description(bundle.definition().description());
  summary.set_workloads(bundle.workloads_size());
  summary.set_smoke_workloads(bundle.companion().smoke_workloads_size());
  summary.set_has_reference(!bundle.companion().reference_source().empty());
  return summary;
}

}  // namespace

grpc::ServerUnaryReactor* EvaluationsService::Submit(grpc::CallbackServerContext* context,
                                                     const v1::SubmitRequest* request, v1::SubmitResponse* response) {
  return Answer<v1::SubmitResponse>(
      backend_, *backend_.executor, "Submit", context, response,
      [this, request](const std::string& tenant) { return service::Submit(backend_, tenant, *request); });
}

grpc::ServerWriteReactor<v1::Event>* EvaluationsService::Watch(grpc::CallbackServerContext* context,
                                                               const v1::WatchRequest* request) {
  return StartWatch(backend_, &watches_, context, *request);
}

grpc::ServerUnaryReactor* EvaluationsService::Get(grpc::CallbackServerContext* context, const v1::GetRequest* request,
                                                  v1::Evaluation* response) {
  return Answer<v1::Evaluation>(backend_, *backend_.executor, "Get", context, response,
                                [this, request](const std::string& tenant) -> StatusOr<v1::Evaluation> {
                                  SOLSTICE_RETURN_IF_ERROR(CheckId(request->evaluation_id()));
                                  return backend_.evaluations->Get(tenant, request->evaluation_id());
                                });
}

grpc::ServerUnaryReactor* EvaluationsService::List(grpc::CallbackServerContext* context, const v1::ListRequest* request,
                                                   v1::ListResponse* response) {
  return Answer<v1::ListResponse>(
      backend_, *backend_.executor, "List", context, response,
      [this, request](const std::string& tenant) { return backend_.evaluations->List(tenant, *request); });
}

grpc::ServerUnaryReactor* EvaluationsService::Cancel(grpc::CallbackServerContext* context,
                                                     const v1::CancelRequest* request, v1::Evaluation* response) {
  return Answer<v1::Evaluation>(backend_, *backend_.executor, "Cancel", context, response,
                                [this, request](const std::string& tenant) {
                                  return service::Cancel(backend_, tenant, request->evaluation_id());
                                });
}

grpc::ServerUnaryReactor* EvaluationsService::Compile(grpc::CallbackServerContext* context,
                                                      const v1::CompileRequest* request,
                                                      v1::CompileResponse* response) {
  return Answer<v1::CompileResponse>(backend_, *backend_.compile_executor, "Compile", context, response,
                                     [this, request](const std::string& tenant) -> StatusOr<v1::CompileResponse> {
                                       SOLSTICE_RETURN_IF_ERROR(CheckAccepting(backend_));
                                       return backend_.pipeline->Compile(tenant, *request);
                                     });
}

grpc::ServerUnaryReactor* CatalogueService::ListDefinitions(grpc::CallbackServerContext* context,
                                                            const v1::ListDefinitionsRequest* request,
                                                            v1::ListDefinitionsResponse* response) {
  return Answer<v1::ListDefinitionsResponse>(backend_, *backend_.executor, "ListDefinitions", context, response,
                                             [this](const std::string&) -> StatusOr<v1::ListDefinitionsResponse> {
                                               v1::ListDefinitionsResponse list;
                                               for (const auto& bundle : backend_.catalog->All()) {
                                                 *list.add_definitions() = Summary(*bundle);
                                               }
                                               for (const std::string& problem : backend_.catalog->problems()) {
                                                 list.add_problems(problem);
                                               }
                                               return list;
                                             });
}

grpc::ServerUnaryReactor* CatalogueService::GetDefinition(grpc::CallbackServerContext* context,
                                                          const v1::GetDefinitionRequest* request,
                                                          v1::DefinitionBundle* response) {
  return Answer<v1::DefinitionBundle>(backend_, *backend_.executor, "GetDefinition", context, response,
                                      [this, request](const std::string&) -> StatusOr<v1::DefinitionBundle> {
                                        SOLSTICE_ASSIGN_OR_RETURN(auto bundle, backend_.catalog->Find(request->name()));
                                        return *bundle;
                                      });
}

grpc::ServerUnaryReactor* ServerService::GetInfo(grpc::CallbackServerContext* context,
                                                 const v1::GetInfoRequest* request, v1::ServerInfo* response) {
  return Answer<v1::ServerInfo>(backend_, *backend_.executor, "GetInfo", context, response,
                                [this, probe = request->probe()](const std::string&) -> StatusOr<v1::ServerInfo> {
                                  v1::ServerInfo info = backend_.pipeline->Info(probe);
                                  info.set_version(backend_.version);
                                  info.set_build_id(backend_.build_id);
                                  info.set_data_dir(backend_.config->data_dir());
                                  info.set_definitions(static_cast<int32_t>(backend_.catalog->All().size()));
                                  info.set_protocol(pipeline::kProtocol);
                                  return info;
                                });
}

}  // namespace solstice::service
