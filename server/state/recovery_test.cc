// What a restart finds, after a crash at every single write.
#include <map>

#include "server/state/failing_store.h"
#include "server/state/state_fixture.h"

namespace solstice::state {
namespace {

using RecoveryTest = StateTest;

TEST_F(RecoveryTest, AttemptsUnderWayAreTriedOnceMore) {
  std::map<std::string, v1::EvaluationState> made;
  for (v1::EvaluationState state : {v1::QUEUED, v1::COMPILING, v1::WAITING, v1::RUNNING}) {
    for (const char* tenant : {"b", "a"}) {
      clock_.now_ns += 3'000'000;
      v1::Evaluation e = Create(tenant);
      Bring(e, state);
      made[e.id()] = state;
    }
  }
  v1::Evaluation ended = Create();
  ASSERT_TRUE(evaluations_->Cancel("local", ended.id()).ok());
  Reopen();
  auto recovered = evaluations_->Recover(2);
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  ASSERT_EQ(recovered->size(), made.size());
  std::string last;
  for (const v1::Evaluation& e : *recovered) {
    EXPECT_LT(last, e.id()) << "oldest first";
    last = e.id();
    EXPECT_EQ(e.state(), v1::QUEUED);
    EXPECT_EQ(e.attempt(), made[e.id()] == v1::QUEUED ? 1 : 2);
    ExpectSoundLog(*evaluations_, *evaluations_->Get(e.tenant(), e.id()));
  }
  // Recovering again changes nothing: they are all queued.
  auto again = evaluations_->Recover(2);
  ASSERT_EQ(again->size(), recovered->size());
  for (size_t i = 0; i < again->size(); ++i) EXPECT_EQ((*again)[i].last_seq(), (*recovered)[i].last_seq());
}

TEST_F(RecoveryTest, TheLastAttemptFails) {
  v1::Evaluation e = Create();
  Bring(e, v1::RUNNING);
  Reopen();
  ASSERT_EQ(evaluations_->Recover(2)->size(), 1u);
  Bring(e, v1::COMPILING, 2);
  Reopen();
  EXPECT_EQ(evaluations_->Recover(2)->size(), 0u);
  auto got = evaluations_->Get("local", e.id());
  EXPECT_EQ(got->state(), v1::FAILED);
  EXPECT_EQ(got->error().code(), static_cast<int>(absl::StatusCode::kUnavailable));
  EXPECT_THAT(got->error().reason(), testing::HasSubstr("server stopped"));
  ExpectSoundLog(*evaluations_, *got);
  EXPECT_EQ(evaluations_->Recover(2)->size(), 0u);
}

// Submits, runs with one retry, completes, cancels; notes what was acknowledged.
struct Acknowledged {
  std::map<std::string, v1::EvaluationState> states;  // by id: the last acknowledged state
  std::map<std::string, int64_t> seqs;
};

void Note(const StatusOr<v1::Evaluation>& evaluation, Acknowledged* acknowledged) {
  if (!evaluation.ok()) return;
  acknowledged->states[evaluation->id()] = evaluation->state();
  acknowledged->seqs[evaluation->id()] = evaluation->last_seq();
}

void Scenario(Evaluations& evaluations, Acknowledged* acknowledged) {
  auto first = evaluations.Create(Creation("a", "one"));
  if (first.ok()) Note(first->evaluation, acknowledged);
  auto second = evaluations.Create(Creation("a"));
  if (second.ok()) Note(second->evaluation, acknowledged);
  if (first.ok()) {
    const std::string id = first->evaluation.id();
    auto advance = [&](int attempt, v1::EvaluationState to) {
      Note(evaluations.Advance("a", id, attempt, to), acknowledged);
    };
    advance(1, v1::COMPILING);
    (void)evaluations.AppendCompile("a", id, 1, {}).ok();
    Note(evaluations.GiveUpAttempt("a", id, 1, {}, 2), acknowledged);
    advance(2, v1::COMPILING);
    advance(2, v1::WAITING);
    advance(2, v1::RUNNING);
    (void)evaluations.AppendWorkload("a", id, 2, Workload("w1")).ok();
    Note(evaluations.Complete("a", id, 2, Passed(), "key"), acknowledged);
  }
  if (second.ok()) Note(evaluations.Cancel("a", second->evaluation.id()), acknowledged);
}

void ExpectConsistent(Evaluations& evaluations, const Acknowledged& acknowledged) {
  for (const auto& [id, state] : acknowledged.states) {
    auto got = evaluations.Get("a", id);
    ASSERT_TRUE(got.ok()) << "lost " << id << ": " << got.status();
    EXPECT_GE(got->last_seq(), acknowledged.seqs.at(id));
    if (IsFinal(state)) {
      EXPECT_EQ(got->state(), state);
    }
  }
  auto listed = evaluations.List("a", {});
  ASSERT_TRUE(listed.ok()) << listed.status();
  std::map<std::string, int> unfinished;
  for (const v1::Evaluation& e : listed->evaluations()) {
    auto got = evaluations.Get("a", e.id());
    ASSERT_TRUE(got.ok()) << got.status();
    ExpectSoundLog(evaluations, *got);
    EXPECT_TRUE(evaluations.Submission("a", e.id()).ok());
    if (!IsFinal(e.state())) unfinished[e.id()] = e.attempt();
  }
  auto cached = evaluations.CachedResult("a", "key");
  if (cached.ok()) {
    EXPECT_EQ(cached->state(), v1::COMPLETED);
  }
  // Everything that had not ended is queued again or failed, and its log is still sound.
  auto recovered = evaluations.Recover(2);
  ASSERT_TRUE(recovered.ok()) << recovered.status();
  for (const v1::Evaluation& e : *recovered) EXPECT_EQ(unfinished.count(e.id()), 1u);
  for (const auto& [id, attempt] : unfinished) {
    auto got = evaluations.Get("a", id);
    EXPECT_TRUE(got->state() == v1::QUEUED || got->state() == v1::FAILED);
    ExpectSoundLog(evaluations, *got);
  }
}

TEST_F(RecoveryTest, ACrashAtAnyWriteLosesNothingAcknowledged) {
  int writes = 0;
  {
    FailingStore counting(store_.get());
    auto evaluations = Evaluations::Open(&counting, &clock_);
    ASSERT_TRUE(evaluations.ok());
    Acknowledged all;
    Scenario(**evaluations, &all);
    writes = counting.writes();
    ASSERT_EQ(all.states.size(), 2u);
    ExpectConsistent(*evaluations_, all);
  }
  ASSERT_GE(writes, 11);
  for (int k = 1; k <= writes; ++k) {
    for (bool applied : {false, true}) {
      SCOPED_TRACE(base::StrCat("crash at write ", k, applied ? ", applied" : ", lost"));
      const std::string folder = NewFolder();
      Acknowledged acknowledged;
      {
        auto store = store::OpenRocksDb(folder);
        ASSERT_TRUE(store.ok()) << store.status();
        FailingStore failing(store->get());
        auto evaluations = Evaluations::Open(&failing, &clock_);
        ASSERT_TRUE(evaluations.ok());
        failing.CrashAtWrite(k, applied);
        Scenario(**evaluations, &acknowledged);
        EXPECT_TRUE(failing.crashed());
      }
      auto store = store::OpenRocksDb(folder);
      ASSERT_TRUE(store.ok()) << store.status();
      auto evaluations = Evaluations::Open(store->get(), &clock_);
      ASSERT_TRUE(evaluations.ok());
      ExpectConsistent(**evaluations, acknowledged);
      // The client that got no answer asks again and gets one evaluation, not two.
      auto retry = (*evaluations)->Create(Creation("a", "one"));
      ASSERT_TRUE(retry.ok());
      int with_request = 0;
      auto listed = (*evaluations)->List("a", {});
      for (const v1::Evaluation& e : listed->evaluations()) with_request += e.client_request_id() == "one";
      EXPECT_EQ(with_request, 1);
      evaluations->reset();
      store->reset();
      std::filesystem::remove_all(folder);
    }
  }
}

TEST_F(RecoveryTest, ACrashDuringRecoveryIsRecoveredFrom) {
  for (int k = 1; k <= 3; ++k) {
    std::vector<std::string> ids;
    for (int i = 0; i < 3; ++i) {
      v1::Evaluation e = Create();
      Bring(e, v1::RUNNING);
      ids.push_back(e.id());
    }
    FailingStore failing(store_.get());
    auto evaluations = Evaluations::Open(&failing, &clock_);
    failing.CrashAtWrite(k, true);
    EXPECT_FALSE((*evaluations)->Recover(2).ok());
    ASSERT_TRUE(evaluations_->Recover(2).ok());
    for (const std::string& id : ids) {
      auto got = evaluations_->Get("local", id);
      EXPECT_EQ(got->attempt(), 2) << "one retry, not two";
      ExpectSoundLog(*evaluations_, *got);
    }
  }
}

}  // namespace
}  // namespace solstice::state
