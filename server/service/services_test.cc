#include "server/service/services.h"

#include <grpcpp/health_check_service_interface.h>

#include <atomic>
#include <thread>

#include "server/service/service_fixture.h"

namespace solstice::service {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kUnknownId[] = "ev_01HF7YAT00ABCDEFGHJKMNPQRS";

class ServicesTest : public ServiceTest {
 protected:
  ServicesTest() { Start(); }
  Status Get(const std::string& id, v1::Evaluation* evaluation, const std::string& tenant = "") {
    v1::GetRequest request;
    request.set_evaluation_id(id);
    return rpc::FromGrpc(evaluations_->Get(Context(tenant).get(), request, evaluation));
  }
  Status Cancel(const std::string& id, const std::string& tenant = "") {
    v1::CancelRequest request;
    request.set_evaluation_id(id);
    v1::Evaluation evaluation;
    return rpc::FromGrpc(evaluations_->Cancel(Context(tenant).get(), request, &evaluation));
  }
  // Reads a whole stream.
  grpc::Status Watch(const std::string& id, int64_t from, std::vector<v1::Event>* events,
                     const std::string& tenant = "") {
    v1::WatchRequest request;
    request.set_evaluation_id(id);
    request.set_from_seq(from);
    auto context = Context(tenant);
    auto stream = evaluations_->Watch(context.get(), request);
    v1::Event event;
    while (stream->Read(&event)) events->push_back(event);
    return stream->Finish();
  }
  void Complete(const std::string& id, const std::string& tenant = "local", int workloads = 1) {
    state::Evaluations& evaluations = *script_.evaluations;
    for (v1::EvaluationState to : {v1::COMPILING, v1::WAITING, v1::RUNNING}) {
      ASSERT_TRUE(evaluations.Advance(tenant, id, 1, to).ok());
    }
    for (int i = 0; i < workloads; ++i) {
      v1::WorkloadResult result;
      result.set_uuid(base::StrCat("w", i));
      result.set_verdict(v1::PASSED);
      ASSERT_TRUE(evaluations.AppendWorkload(tenant, id, 1, result).ok());
    }
    v1::Evaluation result;
    result.set_verdict(v1::PASSED);
    ASSERT_TRUE(evaluations.Complete(tenant, id, 1, result, "").ok());
  }
};

TEST_F(ServicesTest, SubmitStoresAndEnqueues) {
  std::string id = MustSubmit();
  EXPECT_THAT(script_.Enqueued(), ElementsAre(id));
  v1::Evaluation evaluation;
  ASSERT_TRUE(Get(id, &evaluation).ok());
  EXPECT_EQ(evaluation.state(), v1::QUEUED);
  EXPECT_THAT(evaluation.definition(), HasSubstr("rmsnorm_h128@"));
}

TEST_F(ServicesTest, SubmitTwiceWithOneRequestId) {
  v1::SubmitRequest request = Request();
  request.set_client_request_id("r1");
  auto first = Submit(request), second = Submit(request);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status();
  EXPECT_FALSE(first->duplicate());
  EXPECT_TRUE(second->duplicate());
  EXPECT_EQ(first->evaluation_id(), second->evaluation_id());
  EXPECT_EQ(script_.Enqueued().size(), 1u);
  request.mutable_solution()->set_definition("rmsnorm_h128");
  request.mutable_solution()->mutable_sources(0)->mutable_content()->append("// other\n");
  EXPECT_EQ(Submit(request).status().code(), StatusCode::kAlreadyExists);
  EXPECT_FALSE(Submit(request, "other")->duplicate());
}

TEST_F(ServicesTest, SubmitErrors) {
  v1::SubmitRequest unknown = Request();
  unknown.mutable_solution()->set_definition("rmsnorm_h129");
  Status status = Submit(unknown).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_EQ(Submit(v1::SubmitRequest()).status().code(), StatusCode::kInvalidArgument);
  v1::SubmitRequest inlined = Request();
  inlined.mutable_definition_files()->set_definition_json("{}");
  EXPECT_EQ(Submit(inlined).status().code(), StatusCode::kPermissionDenied);
  script_.admit = base::ResourceExhausted("the queue is full", "wait");
  v1::SubmitResponse response;
  grpc::Status full = evaluations_->Submit(Context().get(), Request(), &response);
  EXPECT_EQ(full.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(rpc::RetryDelay(full), rpc::kRetryDelay);
  EXPECT_EQ(base::MendOf(rpc::FromGrpc(full)), "wait");
  EXPECT_TRUE(script_.Enqueued().empty());
  v1::ListResponse list;
  ASSERT_TRUE(evaluations_->List(Context().get(), v1::ListRequest(), &list).ok());
  EXPECT_EQ(list.evaluations_size(), 0) << "what was refused is not stored";
}

TEST_F(ServicesTest, TenantsComeFromMetadata) {
  std::string id = MustSubmit("team-a");
  v1::Evaluation evaluation;
  EXPECT_EQ(Get(id, &evaluation).code(), StatusCode::kNotFound);
  EXPECT_EQ(Get(id, &evaluation, "team-b").code(), StatusCode::kNotFound);
  ASSERT_TRUE(Get(id, &evaluation, "team-a").ok());
  EXPECT_EQ(evaluation.tenant(), "team-a");
  EXPECT_EQ(Cancel(id, "team-b").code(), StatusCode::kNotFound);
  std::vector<v1::Event> events;
  EXPECT_EQ(Watch(id, 1, &events, "team-b").error_code(), grpc::StatusCode::NOT_FOUND);
  for (const char* bad : {"Team", "a/b", "a b"}) {
    EXPECT_EQ(Get(id, &evaluation, bad).code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(Watch(id, 1, &events, bad).error_code(), grpc::StatusCode::INVALID_ARGUMENT) << bad;
  }
}

TEST_F(ServicesTest, GetAndCancelErrors) {
  v1::Evaluation evaluation;
  for (const char* bad : {"", "ev_1", "../../etc"}) {
    EXPECT_EQ(Get(bad, &evaluation).code(), StatusCode::kInvalidArgument) << bad;
    EXPECT_EQ(Cancel(bad).code(), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(Get(kUnknownId, &evaluation).code(), StatusCode::kNotFound);
  EXPECT_EQ(Cancel(kUnknownId).code(), StatusCode::kNotFound);
  std::string id = MustSubmit();
  EXPECT_TRUE(Cancel(id).ok());
  EXPECT_TRUE(Cancel(id).ok()) << "idempotent";
  EXPECT_THAT(script_.Cancelled(), ElementsAre(id, id));
  std::string done = MustSubmit();
  Complete(done);
  EXPECT_EQ(Cancel(done).code(), StatusCode::kFailedPrecondition);
}

TEST_F(ServicesTest, ListErrors) {
  v1::ListRequest request;
  v1::ListResponse response;
  request.set_page_size(1001);
  EXPECT_EQ(evaluations_->List(Context().get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request.set_page_size(10);
  request.set_page_token("x");
  EXPECT_EQ(evaluations_->List(Context().get(), request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServicesTest, CompileAnswersAndFails) {
  v1::CompileResponse response;
  script_.compile = [](const std::string& tenant) -> StatusOr<v1::CompileResponse> {
    v1::CompileResponse made;
    made.set_verdict(v1::COMPILE_ERROR);
    made.set_reason(tenant);
    return made;
  };
  ASSERT_TRUE(evaluations_->Compile(Context("t").get(), v1::CompileRequest(), &response).ok());
  EXPECT_EQ(response.verdict(), v1::COMPILE_ERROR);
  EXPECT_EQ(response.reason(), "t");
  script_.compile = [](const std::string&) -> StatusOr<v1::CompileResponse> {
    return base::InvalidArgument("options[0]: unknown", "leave it out");
  };
  grpc::Status status = evaluations_->Compile(Context().get(), v1::CompileRequest(), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(base::MendOf(rpc::FromGrpc(status)), "leave it out");
}

TEST_F(ServicesTest, SlowCompilesDoNotDelayOtherCalls) {
  std::atomic<bool> release{false};
  script_.compile = [&](const std::string&) -> StatusOr<v1::CompileResponse> {
    while (!release.load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return v1::CompileResponse();
  };
  std::vector<std::thread> compiles;
  for (int i = 0; i < 20; ++i) {
    compiles.emplace_back([&] {
      v1::CompileResponse response;
      EXPECT_TRUE(evaluations_->Compile(Context().get(), v1::CompileRequest(), &response).ok());
    });
  }
  for (int i = 0; i < 5; ++i) MustSubmit();
  release.store(true);
  for (std::thread& compile : compiles) compile.join();
}

TEST_F(ServicesTest, AnOversizedMessageIsRefused) {
  v1::SubmitRequest request = Request();
  request.mutable_solution()->set_description(std::string(kMaxMessageBytes + 1, 'x'));
  EXPECT_EQ(Submit(request).status().code(), StatusCode::kResourceExhausted);
}

TEST_F(ServicesTest, ADeadlineIsHonoured) {
  // Shared: the compilation outlives the call, and perhaps this scope.
  auto release = std::make_shared<std::atomic<bool>>(false);
  script_.compile = [release](const std::string&) -> StatusOr<v1::CompileResponse> {
    while (!release->load()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return v1::CompileResponse();
  };
  auto context = Context();
  context->set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  v1::CompileResponse response;
  EXPECT_EQ(evaluations_->Compile(context.get(), v1::CompileRequest(), &response).error_code(),
            grpc::StatusCode::DEADLINE_EXCEEDED);
  release->store(true);
}

TEST_F(ServicesTest, WatchReplaysTheWholeLog) {
  std::string id = MustSubmit();
  Complete(id, "local", 200);
  std::vector<v1::Event> events;
  ASSERT_TRUE(Watch(id, 0, &events).ok());
  ASSERT_EQ(events.size(), 205u);
  for (size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].seq(), static_cast<int64_t>(i) + 1);
  EXPECT_TRUE(events.back().has_final());
  std::vector<v1::Event> tail;
  ASSERT_TRUE(Watch(id, 204, &tail).ok());
  ASSERT_EQ(tail.size(), 2u);
  EXPECT_EQ(tail[0].seq(), 204);
  std::vector<v1::Event> beyond;
  EXPECT_TRUE(Watch(id, 206, &beyond).ok()) << "it has ended: nothing will come";
  EXPECT_TRUE(beyond.empty());
}

TEST_F(ServicesTest, WatchErrors) {
  std::vector<v1::Event> events;
  EXPECT_EQ(Watch("nonsense", 1, &events).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Watch(kUnknownId, 1, &events).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Watch(MustSubmit(), -1, &events).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_TRUE(events.empty());
}

TEST_F(ServicesTest, WatchFollowsAliveEvaluation) {
  std::string id = MustSubmit();
  v1::WatchRequest request;
  request.set_evaluation_id(id);
  auto context = Context();
  auto stream = evaluations_->Watch(context.get(), request);
  v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.state(), v1::QUEUED);
  // The stream is subscribed by now, so this reaches it.
  v1::Progress progress;
  progress.set_stage("compile");
  script_.evaluations->PublishProgress("local", id, progress);
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.progress().stage(), "compile");
  EXPECT_EQ(event.seq(), 0);
  Complete(id);
  int64_t last = 1;
  while (stream->Read(&event)) {
    EXPECT_EQ(event.seq(), ++last);
  }
  EXPECT_TRUE(event.has_final());
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServicesTest, ASlowReaderGetsEveryStoredEvent) {
  std::string id = MustSubmit();
  v1::WatchRequest request;
  request.set_evaluation_id(id);
  auto context = Context();
  auto stream = evaluations_->Watch(context.get(), request);
  v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  state::Evaluations& evaluations = *script_.evaluations;
  v1::Progress progress;
  progress.set_stage(std::string(10000, 'p'));
  for (v1::EvaluationState to : {v1::COMPILING, v1::WAITING, v1::RUNNING}) {
    ASSERT_TRUE(evaluations.Advance("local", id, 1, to).ok());
  }
  // More than any buffer of the transport holds.
  for (int i = 0; i < 100; ++i) {
    v1::WorkloadResult result;
    result.set_uuid(base::StrCat("w", i));
    result.set_device_output(std::string(60000, 'x'));
    ASSERT_TRUE(evaluations.AppendWorkload("local", id, 1, result).ok());
    evaluations.PublishProgress("local", id, progress);
  }
  ASSERT_TRUE(evaluations.Cancel("local", id).ok());
  int64_t stored = 1;
  int shown = 0;
  while (stream->Read(&event)) {
    if (event.has_progress()) {
      ++shown;
    } else {
      EXPECT_EQ(event.seq(), ++stored);
    }
  }
  EXPECT_EQ(stored, 105);
  EXPECT_LE(shown, 100);
  EXPECT_TRUE(event.has_final());
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ServicesTest, ManyWatchersComeAndGo) {
  std::string id = MustSubmit();
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::Event>>> streams;
  v1::WatchRequest request;
  request.set_evaluation_id(id);
  for (int i = 0; i < 50; ++i) {
    contexts.push_back(Context());
    streams.push_back(evaluations_->Watch(contexts.back().get(), request));
  }
  v1::Event event;
  for (auto& stream : streams) ASSERT_TRUE(stream->Read(&event));
  for (size_t i = 0; i < streams.size(); i += 2) contexts[i]->TryCancel();
  Complete(id);
  for (size_t i = 0; i < streams.size(); ++i) {
    while (streams[i]->Read(&event)) {
    }
    EXPECT_EQ(streams[i]->Finish().ok(), i % 2 == 1) << i;
  }
}

TEST_F(ServicesTest, CatalogueAndInfo) {
  v1::ListDefinitionsResponse list;
  ASSERT_TRUE(catalogue_->ListDefinitions(Context().get(), v1::ListDefinitionsRequest(), &list).ok());
  ASSERT_EQ(list.definitions_size(), 1);
  EXPECT_TRUE(list.definitions(0).has_reference());
  EXPECT_GT(list.definitions(0).workloads(), 0);
  v1::GetDefinitionRequest request;
  v1::DefinitionBundle bundle;
  request.set_name("rmsnorm_h128");
  ASSERT_TRUE(catalogue_->GetDefinition(Context().get(), request, &bundle).ok());
  EXPECT_EQ(bundle.version(), list.definitions(0).version());
  request.set_name("nothing");
  EXPECT_EQ(catalogue_->GetDefinition(Context().get(), request, &bundle).error_code(), grpc::StatusCode::NOT_FOUND);
  v1::ServerInfo info;
  ASSERT_TRUE(info_->GetInfo(Context().get(), v1::GetInfoRequest(), &info).ok());
  EXPECT_EQ(info.version(), "1.2.3");
  EXPECT_EQ(info.build_id(), "build-a");
  EXPECT_EQ(info.definitions(), 1);
  EXPECT_EQ(info.protocol(), "solstice-v1");
  EXPECT_EQ(info.host().driver_error(), "");
  v1::GetInfoRequest again;
  again.set_probe(true);
  ASSERT_TRUE(info_->GetInfo(Context().get(), again, &info).ok());
  EXPECT_EQ(info.host().driver_error(), "probed");
}

TEST_F(ServicesTest, StoppingEndsStreamsAndRefusesCalls) {
  std::string id = MustSubmit();
  v1::WatchRequest request;
  request.set_evaluation_id(id);
  auto context = Context();
  auto stream = evaluations_->Watch(context.get(), request);
  v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  server_->Shutdown();
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Submit(Request()).status().code(), StatusCode::kUnavailable);
  base::MutexLock lock(script_.mutex);
  EXPECT_TRUE(script_.shut_down);
}

}  // namespace
}  // namespace solstice::service
