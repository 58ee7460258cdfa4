// The three gRPC services. Handlers convert, call and record; the work is Validate's, Evaluations', Pipeline's and the
// Catalog's. Thread-safe; `backend` outlives them.
#pragma once

#include "server/service/backend.h"
#include "server/service/watch.h"
#include "solstice/v1/service.grpc.pb.h"

namespace solstice::service {

class EvaluationsService : public v1::Evaluations::CallbackService {
 public:
  explicit EvaluationsService(const Backend* backend) : backend_(*backend) {}
  // Ends every Watch with `why`, now and from now on.
  void StopWatches(const Status& why) { watches_.StopAll(why); }

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context, const v1::SubmitRequest* request,
                                   v1::SubmitResponse* response) override;
  grpc::ServerWriteReactor<v1::Event>* Watch(grpc::CallbackServerContext* context,
                                             const v1::WatchRequest* request) override;
  grpc::ServerUnaryReactor* Get(grpc::CallbackServerContext* context, const v1::GetRequest* request,
                                v1::Evaluation* response) override;
  grpc::ServerUnaryReactor* List(grpc::CallbackServerContext* context, const v1::ListRequest* request,
                                 v1::ListResponse* response) override;
  grpc::ServerUnaryReactor* Cancel(grpc::CallbackServerContext* context, const v1::CancelRequest* request,
                                   v1::Evaluation* response) override;
  grpc::ServerUnaryReactor* Compile(grpc::CallbackServerContext* context, const v1::CompileRequest* request,
                                    v1::CompileResponse* response) override;

 private:
  const Backend& backend_;
  WatchRegistry watches_;
};

class CatalogueService : public v1::Catalogue::CallbackService {
 public:
  explicit CatalogueService(const Backend* backend) : backend_(*backend) {}
  grpc::ServerUnaryReactor* ListDefinitions(grpc::CallbackServerContext* context,
                                            const v1::ListDefinitionsRequest* request,
                                            v1::ListDefinitionsResponse* response) override;
  grpc::ServerUnaryReactor* GetDefinition(grpc::CallbackServerContext* context, const v1::GetDefinitionRequest* request,
                                          v1::DefinitionBundle* response) override;

 private:
  const Backend& backend_;
};

class ServerService : public v1::Server::CallbackService {
 public:
  explicit ServerService(const Backend* backend) : backend_(*backend) {}
  grpc::ServerUnaryReactor* GetInfo(grpc::CallbackServerContext* context, const v1::GetInfoRequest* request,
                                    v1::ServerInfo* response) override;

 private:
  const Backend& backend_;
};

}  // namespace solstice::service
