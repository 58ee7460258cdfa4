#include "server/state/evaluations.h"

#include <atomic>
#include <set>
#include <thread>

#include "server/state/event_log.h"
#include "server/state/state_fixture.h"

namespace solstice::state {
namespace {

using absl::StatusCode;
using testing::HasSubstr;

using EvaluationsTest = StateTest;

TEST_F(EvaluationsTest, CreateStoresEverything) {
  v1::Evaluation e = Create();
  EXPECT_TRUE(IsEvaluationId(e.id()));
  EXPECT_EQ(e.state(), v1::QUEUED);
  EXPECT_EQ(e.attempt(), 1);
  EXPECT_EQ(e.created().seconds(), 1'700'000'000);
  Reopen();
  auto got = evaluations_->Get("local", e.id());
  ASSERT_TRUE(got.ok()) << got.status();
  EXPECT_EQ(got->SerializeAsString(), e.SerializeAsString());
  EXPECT_EQ(got->definition(), "rmsnorm@0123456789ab");
  EXPECT_EQ(got->protocol(), "solstice-v1");
  auto submission = evaluations_->Submission("local", e.id());
  ASSERT_TRUE(submission.ok());
  EXPECT_EQ(submission->schema_version(), kSchemaVersion);
  EXPECT_EQ(submission->definition_digest(), "sha256:d1");
  auto bundle = evaluations_->Bundle("local", "sha256:d1");
  ASSERT_TRUE(bundle.ok());
  EXPECT_EQ(bundle->workloads(0).uuid(), "w1");
  ExpectSoundLog(*evaluations_, *got);
}

TEST_F(EvaluationsTest, CreateRefusesBadNames) {
  EXPECT_EQ(evaluations_->Create(Creation("Bad")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(evaluations_->Create(Creation("")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(evaluations_->Create(Creation("a", std::string(129, 'x'))).status().code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(evaluations_->Create(Creation("a", "\xff")).status().code(), StatusCode::kInvalidArgument);
  EXPECT_TRUE(evaluations_->Create(Creation("a", std::string(128, 'x'))).ok());
}

TEST_F(EvaluationsTest, IdempotencyIsByTenantAndContent) {
  auto first = evaluations_->Create(Creation("a", "req/1"));
  ASSERT_TRUE(first.ok());
  EXPECT_FALSE(first->duplicate);
  Reopen();
  auto again = evaluations_->Create(Creation("a", "req/1"));
  ASSERT_TRUE(again.ok());
  EXPECT_TRUE(again->duplicate);
  EXPECT_EQ(again->evaluation.id(), first->evaluation.id());
  auto other_tenant = evaluations_->Create(Creation("b", "req/1"));
  ASSERT_TRUE(other_tenant.ok());
  EXPECT_FALSE(other_tenant->duplicate);
  auto other_content = evaluations_->Create(Creation("a", "req/1", "sha256:r2"));
  EXPECT_EQ(other_content.status().code(), StatusCode::kAlreadyExists);
  EXPECT_THAT(base::MessageOf(other_content.status()), HasSubstr(first->evaluation.id()));
}

TEST_F(EvaluationsTest, SimultaneousIdenticalRequestsMakeOneEvaluation) {
  std::vector<std::thread> threads;
  base::Mutex mutex;
  std::set<std::string> ids;
  std::atomic<int> fresh{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      auto created = evaluations_->Create(Creation("a", "same"));
      ASSERT_TRUE(created.ok());
      if (!created->duplicate) ++fresh;
      base::MutexLock lock(mutex);
      ids.insert(created->evaluation.id());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fresh.load(), 1);
  EXPECT_EQ(ids.size(), 1u);
}

TEST_F(EvaluationsTest, SameDefinitionWithOtherWorkloadsKeepsItsOwnBundle) {
  v1::Evaluation first = Create();
  Evaluations::Creation other = Creation();
  other.bundle.add_workloads()->set_uuid("w2");
  auto second = evaluations_->Create(other);
  ASSERT_TRUE(second.ok());
  auto third = evaluations_->Create(other);
  ASSERT_TRUE(third.ok());
  auto workloads = [&](const std::string& id) {
    auto submission = evaluations_->Submission("local", id);
    EXPECT_TRUE(submission.ok());
    auto bundle = evaluations_->Bundle("local", submission->definition_digest());
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    return bundle->workloads_size();
  };
  EXPECT_EQ(workloads(first.id()), 1);
  EXPECT_EQ(workloads(second->evaluation.id()), 2);
  EXPECT_EQ(workloads(third->evaluation.id()), 2);
}

TEST_F(EvaluationsTest, TenantsSeeOnlyTheirOwn) {
  v1::Evaluation e = Create("a");
  Bring(e, v1::RUNNING);
  ASSERT_TRUE(evaluations_->Complete("a", e.id(), 1, Passed(), "key").ok());
  EXPECT_TRUE(evaluations_->CachedResult("a", "key").ok());
  EXPECT_EQ(evaluations_->Get("b", e.id()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(evaluations_->Submission("b", e.id()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(evaluations_->Events("b", e.id(), 1, 10).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(evaluations_->Cancel("b", e.id()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(evaluations_->Bundle("b", "sha256:d1").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(evaluations_->CachedResult("b", "key").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(evaluations_->List("b", {})->evaluations_size(), 0);
}

TEST_F(EvaluationsTest, MalformedIdsAreNotFound) {
  for (const char* id : {"", "ev_", "../x", "ev_01HF7YAT00ABCDEFGHJKMNPQRS"}) {
    EXPECT_EQ(evaluations_->Get("local", id).status().code(), StatusCode::kNotFound) << id;
  }
}

TEST_F(EvaluationsTest, AWholeLife) {
  v1::Evaluation e = Create();
  Bring(e, v1::COMPILING);
  v1::CompileReport report;
  report.set_log("warning: unused");
  report.set_arch("sm_90a");
  ASSERT_TRUE(evaluations_->AppendCompile("local", e.id(), 1, report).ok());
  ASSERT_TRUE(evaluations_->Advance("local", e.id(), 1, v1::WAITING).ok());
  ASSERT_TRUE(evaluations_->Advance("local", e.id(), 1, v1::RUNNING).ok());
  ASSERT_TRUE(evaluations_->AppendWorkload("local", e.id(), 1, Workload("w1", v1::TIMEOUT, "slow")).ok());
  ASSERT_TRUE(evaluations_->AppendWorkload("local", e.id(), 1, Workload("w2")).ok());
  ASSERT_TRUE(evaluations_->AppendWorkload("local", e.id(), 1, Workload("w1")).ok());
  auto running = evaluations_->Get("local", e.id());
  ASSERT_TRUE(running.ok());
  ASSERT_EQ(running->workloads_size(), 2);
  EXPECT_EQ(running->workloads(0).uuid(), "w1");
  EXPECT_EQ(running->workloads(0).verdict(), v1::PASSED);
  EXPECT_EQ(running->compile().log(), "warning: unused");
  clock_.now_ns += 1'500'000'000;
  auto done = evaluations_->Complete("local", e.id(), 1, Passed(), "");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->state(), v1::COMPLETED);
  EXPECT_EQ(done->workloads_size(), 2);
  EXPECT_EQ(done->compile().arch(), "sm_90a");
  EXPECT_EQ(done->phases().total_ms(), 1500);
  EXPECT_EQ(done->created().seconds(), e.created().seconds());
  Reopen();
  auto got = evaluations_->Get("local", e.id());
  ASSERT_TRUE(got.ok());
  EXPECT_EQ(got->SerializeAsString(), done->SerializeAsString());
  ExpectSoundLog(*evaluations_, *got);
  auto listed = evaluations_->List("local", {});
  ASSERT_EQ(listed->evaluations_size(), 1);
  EXPECT_EQ(listed->evaluations(0).workloads_size(), 0);
  EXPECT_EQ(listed->evaluations(0).compile().log(), "");
  EXPECT_EQ(listed->evaluations(0).verdict(), v1::PASSED);
}

TEST_F(EvaluationsTest, EveryCallChecksTheAttempt) {
  v1::Evaluation e = Create();
  Bring(e, v1::RUNNING);
  const std::string& id = e.id();
  for (int attempt : {0, 2}) {
    EXPECT_EQ(evaluations_->Advance("local", id, attempt, v1::RUNNING).status().code(),
              StatusCode::kFailedPrecondition);
    EXPECT_EQ(evaluations_->AppendCompile("local", id, attempt, {}).code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(evaluations_->AppendWorkload("local", id, attempt, Workload("w")).code(),
              StatusCode::kFailedPrecondition);
    EXPECT_EQ(evaluations_->Complete("local", id, attempt, Passed(), "").status().code(),
              StatusCode::kFailedPrecondition);
    EXPECT_EQ(evaluations_->GiveUpAttempt("local", id, attempt, {}, 2).status().code(),
              StatusCode::kFailedPrecondition);
  }
  auto got = evaluations_->Get("local", id);
  EXPECT_EQ(got->last_seq(), 4);
  ExpectSoundLog(*evaluations_, *got);
}

TEST_F(EvaluationsTest, IllegalMovesWriteNothing) {
  v1::Evaluation e = Create();
  const std::string& id = e.id();
  EXPECT_EQ(evaluations_->Advance("local", id, 1, v1::RUNNING).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(evaluations_->Advance("local", id, 1, v1::COMPLETED).status().code(), StatusCode::kInternal);
  EXPECT_EQ(evaluations_->Advance("local", id, 1, v1::QUEUED).status().code(), StatusCode::kInternal);
  EXPECT_EQ(evaluations_->AppendWorkload("local", id, 1, Workload("w")).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(evaluations_->GiveUpAttempt("local", id, 1, {}, 2).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(evaluations_->Complete("local", id, 1, {}, "").status().code(), StatusCode::kInternal);
  EXPECT_EQ(evaluations_->Get("local", id)->last_seq(), 1);
}

TEST_F(EvaluationsTest, NothingHappensAfterTheEnd) {
  v1::Evaluation e = Create();
  Bring(e, v1::COMPILING);
  ASSERT_TRUE(evaluations_->Cancel("local", e.id()).ok());
  auto again = evaluations_->Cancel("local", e.id());
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->state(), v1::CANCELLED);
  EXPECT_EQ(evaluations_->Advance("local", e.id(), 1, v1::WAITING).status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(evaluations_->AppendWorkload("local", e.id(), 1, Workload("w")).code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(evaluations_->Complete("local", e.id(), 1, Passed(), "k").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(evaluations_->CachedResult("local", "k").status().code(), StatusCode::kNotFound);
  ExpectSoundLog(*evaluations_, *evaluations_->Get("local", e.id()));

  v1::Evaluation done = Create();
  Bring(done, v1::RUNNING);
  ASSERT_TRUE(evaluations_->Complete("local", done.id(), 1, Passed(), "").ok());
  EXPECT_EQ(evaluations_->Cancel("local", done.id()).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(EvaluationsTest, AnsweredFromTheCache) {
  v1::Evaluation first = Create();
  Bring(first, v1::RUNNING);
  ASSERT_TRUE(evaluations_->AppendWorkload("local", first.id(), 1, Workload("w1")).ok());
  ASSERT_TRUE(evaluations_->Complete("local", first.id(), 1, Passed(), "sha256:key").ok());
  auto cached = evaluations_->CachedResult("local", "sha256:key");
  ASSERT_TRUE(cached.ok());
  cached->set_cached(true);
  v1::Evaluation second = Create();
  auto done = evaluations_->Complete("local", second.id(), 1, *cached, "");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->id(), second.id());
  EXPECT_EQ(done->last_seq(), 2);
  EXPECT_EQ(done->workloads_size(), 1);
  EXPECT_TRUE(done->cached());
  ExpectSoundLog(*evaluations_, *done);
}

TEST_F(EvaluationsTest, GivingUpQueuesAgainThenFails) {
  v1::Evaluation e = Create();
  Bring(e, v1::RUNNING);
  ASSERT_TRUE(evaluations_->AppendWorkload("local", e.id(), 1, Workload("w1")).ok());
  v1::ErrorStatus why;
  why.set_code(14);
  why.set_reason("the judge died");
  auto retried = evaluations_->GiveUpAttempt("local", e.id(), 1, why, 2);
  ASSERT_TRUE(retried.ok()) << retried.status();
  EXPECT_EQ(retried->state(), v1::QUEUED);
  EXPECT_EQ(retried->attempt(), 2);
  auto got = evaluations_->Get("local", e.id());
  EXPECT_EQ(got->workloads_size(), 0);
  EXPECT_FALSE(got->has_error());
  ExpectSoundLog(*evaluations_, *got);
  Bring(e, v1::RUNNING, 2);
  auto failed = evaluations_->GiveUpAttempt("local", e.id(), 2, why, 2);
  ASSERT_TRUE(failed.ok());
  EXPECT_EQ(failed->state(), v1::FAILED);
  EXPECT_EQ(failed->error().reason(), "the judge died");
  got = evaluations_->Get("local", e.id());
  EXPECT_EQ(got->error().code(), 14);
  ExpectSoundLog(*evaluations_, *got);
}

TEST_F(EvaluationsTest, ListPagesNewestFirst) {
  std::vector<std::string> ids;
  for (int i = 0; i < 7; ++i) {
    clock_.now_ns += 5'000'000;
    ids.insert(ids.begin(), Create().id());
  }
  v1::ListRequest request;
  request.set_page_size(3);
  std::vector<std::string> seen;
  int pages = 0;
  do {
    auto page = evaluations_->List("local", request);
    ASSERT_TRUE(page.ok()) << page.status();
    for (const v1::Evaluation& e : page->evaluations()) seen.push_back(e.id());
    request.set_page_token(page->next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(seen, ids);
  EXPECT_EQ(pages, 3);
  request.set_page_token("");
  request.set_page_size(7);
  EXPECT_EQ(evaluations_->List("local", request)->next_page_token(), "");
}

TEST_F(EvaluationsTest, ListFilters) {
  v1::Evaluation a = Create(), b = Create();
  ASSERT_TRUE(evaluations_->Cancel("local", a.id()).ok());
  v1::ListRequest request;
  request.set_state(v1::CANCELLED);
  auto cancelled = evaluations_->List("local", request);
  ASSERT_EQ(cancelled->evaluations_size(), 1);
  EXPECT_EQ(cancelled->evaluations(0).id(), a.id());
  request.clear_state();
  request.set_definition("rmsnorm");
  EXPECT_EQ(evaluations_->List("local", request)->evaluations_size(), 2);
  request.set_definition("rmsnorm@0123456789ab");
  EXPECT_EQ(evaluations_->List("local", request)->evaluations_size(), 2);
  request.set_definition("rms");
  EXPECT_EQ(evaluations_->List("local", request)->evaluations_size(), 0);
}

TEST_F(EvaluationsTest, ListRefusesBadRequests) {
  v1::ListRequest request;
  for (int size : {-1, 1001}) {
    request.set_page_size(size);
    EXPECT_EQ(evaluations_->List("local", request).status().code(), StatusCode::kInvalidArgument) << size;
  }
  request.set_page_size(1);
  request.set_page_token("nonsense");
  EXPECT_EQ(evaluations_->List("local", request).status().code(), StatusCode::kInvalidArgument);
  request.clear_page_token();
  request.set_state(static_cast<v1::EvaluationState>(77));
  EXPECT_EQ(evaluations_->List("local", request).status().code(), StatusCode::kInvalidArgument);
}

TEST_F(EvaluationsTest, WatchersHearStoredEventsAndProgress) {
  v1::Evaluation e = Create();
  std::atomic<int> stored{0}, progress{0};
  auto subscription = evaluations_->Subscribe("local", e.id(), [&](const v1::Event* event) {
    if (event == nullptr) {
      ++stored;
    } else {
      EXPECT_EQ(event->seq(), 0);
      EXPECT_EQ(event->progress().stage(), "run");
      ++progress;
    }
  });
  v1::Progress run;
  run.set_stage("run");
  evaluations_->PublishProgress("local", e.id(), run);
  evaluations_->PublishProgress("other", e.id(), run);
  Bring(e, v1::WAITING);
  EXPECT_EQ(stored.load(), 2);
  EXPECT_EQ(progress.load(), 1);
  subscription.reset();
  ASSERT_TRUE(evaluations_->Cancel("local", e.id()).ok());
  EXPECT_EQ(stored.load(), 2);
}

TEST_F(EvaluationsTest, ASubscriptionMayOutliveItsEvaluations) {
  v1::Evaluation e = Create();
  auto subscription = evaluations_->Subscribe("local", e.id(), [](const v1::Event*) {});
  evaluations_.reset();
  subscription.reset();
}

TEST_F(EvaluationsTest, EventsStartInclusively) {
  v1::Evaluation e = Create();
  Bring(e, v1::RUNNING);
  auto events = evaluations_->Events("local", e.id(), 3, 10);
  ASSERT_EQ(events->size(), 2u);
  EXPECT_EQ((*events)[0].seq(), 3);
  EXPECT_EQ(evaluations_->Events("local", e.id(), 1, 2)->size(), 2u);
  EXPECT_EQ(evaluations_->Events("local", e.id(), 5, 2)->size(), 0u);
  EXPECT_EQ(evaluations_->Events("local", e.id(), -5, 9)->size(), 4u);
}

TEST_F(EvaluationsTest, RacingCancelAndCompleteLeaveOneEnd) {
  for (int round = 0; round < 20; ++round) {
    v1::Evaluation e = Create();
    Bring(e, v1::RUNNING);
    std::atomic<int> ended{0};
    std::thread cancel([&] { ended += evaluations_->Cancel("local", e.id()).ok() ? 1 : 0; });
    std::thread complete([&] { ended += evaluations_->Complete("local", e.id(), 1, Passed(), "").ok() ? 1 : 0; });
    cancel.join();
    complete.join();
    EXPECT_EQ(ended.load(), 1);
    ExpectSoundLog(*evaluations_, *evaluations_->Get("local", e.id()));
  }
}

TEST_F(EvaluationsTest, AResultTooLargeForAMessageIsCut) {
  v1::Evaluation whole = Passed();
  whole.mutable_compile()->set_log(std::string(1 << 20, 'x'));
  for (int i = 0; i < 40; ++i) {
    v1::WorkloadResult* workload = whole.add_workloads();
    *workload = Workload(base::StrCat("w", i));
    workload->set_device_output(std::string(1 << 19, 'p'));
  }
  v1::Evaluation e = Create();
  Bring(e, v1::RUNNING);
  auto done = evaluations_->Complete("local", e.id(), 1, whole, "");
  ASSERT_TRUE(done.ok());
  EXPECT_LT(done->ByteSizeLong(), kMaxEventBytes);
  EXPECT_EQ(done->workloads_size(), 40);
  EXPECT_GT(done->compile().log_dropped_bytes(), 0);
  EXPECT_THAT(done->workloads(0).warnings(0), HasSubstr("left out"));
}

TEST_F(EvaluationsTest, OpenRefusesForeignStores) {
  store::Batch batch;
  batch.Put("!schema", "solstice-store 2");
  ASSERT_TRUE(store_->Write(batch, store::Durability::kSynced).ok());
  auto newer = Evaluations::Open(store_.get(), &clock_);
  EXPECT_EQ(newer.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(newer.status()), HasSubstr("solstice-store 2"));
  store::Batch foreign;
  foreign.Delete("!schema");
  foreign.Put("other", "x");
  ASSERT_TRUE(store_->Write(foreign, store::Durability::kSynced).ok());
  EXPECT_EQ(Evaluations::Open(store_.get(), &clock_).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(EvaluationsTest, TheServerKeyStays) {
  auto key = ServerKey(store_.get());
  ASSERT_TRUE(key.ok());
  EXPECT_EQ(key->size(), 32u);
  Reopen();
  EXPECT_EQ(*ServerKey(store_.get()), *key);
  store::Batch batch;
  batch.Put(keys::kServerKey, Frame("short"));
  ASSERT_TRUE(store_->Write(batch, store::Durability::kSynced).ok());
  EXPECT_EQ(ServerKey(store_.get()).status().code(), StatusCode::kDataLoss);
}

TEST_F(EvaluationsTest, DamagedRecordsAreDataLoss) {
  v1::Evaluation e = Create();
  store::Batch batch;
  batch.Put(keys::Evaluation("local", e.id()), "\x01\xff\xff");
  ASSERT_TRUE(store_->Write(batch, store::Durability::kSynced).ok());
  EXPECT_EQ(evaluations_->Get("local", e.id()).status().code(), StatusCode::kDataLoss);
}

}  // namespace
}  // namespace solstice::state
