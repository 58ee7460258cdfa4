// For tests: a real store in a folder of its own, and shorthands.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "server/state/evaluations.h"
#include "server/state/keys.h"
#include "server/state/transition.h"
#include "server/store/rocksdb/rocksdb_store.h"

namespace solstice::state {

class ManualClock : public base::Clock {
 public:
  int64_t NowUnixNs() const override { return now_ns; }
  int64_t NowSteadyNs() const override { return now_ns; }
  int64_t now_ns = 1'700'000'000'000'000'000;
};

inline std::string NewFolder() {
  std::string path = base::StrCat(testing::TempDir(), "/solstice_", base::Hex(base::RandomBytes(8)));
  std::filesystem::create_directories(path);
  return path;
}

inline Evaluations::Creation Creation(std::string tenant = "local", std::string request = "",
                                      std::string digest = "sha256:r1") {
  Evaluations::Creation creation;
  creation.tenant = std::move(tenant);
  creation.client_request_id = std::move(request);
  creation.submission.mutable_solution()->set_name("solution");
  creation.submission.set_request_digest(std::move(digest));
  creation.bundle.set_digest("sha256:d1");
  creation.bundle.set_version("rmsnorm@0123456789ab");
  creation.bundle.add_workloads()->set_uuid("w1");
  creation.fields.set_definition("rmsnorm@0123456789ab");
  creation.fields.set_solution("solution");
  creation.fields.set_solution_digest("sha256:s1");
  creation.fields.set_protocol("solstice-v1");
  return creation;
}

inline v1::WorkloadResult Workload(std::string uuid, v1::Verdict verdict = v1::PASSED, std::string reason = "") {
  v1::WorkloadResult result;
  result.set_uuid(std::move(uuid));
  result.set_verdict(verdict);
  result.set_reason(std::move(reason));
  return result;
}

inline v1::Evaluation Passed() {
  v1::Evaluation result;
  result.set_verdict(v1::PASSED);
  result.set_complete(true);
  return result;
}

// Every promise that the log of an evaluation makes.
inline void ExpectSoundLog(const Evaluations& evaluations, const v1::Evaluation& evaluation) {
  auto events = evaluations.Events(evaluation.tenant(), evaluation.id(), 1, 100000);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(static_cast<int64_t>(events->size()), evaluation.last_seq());
  v1::EvaluationState state = v1::EVALUATION_STATE_UNSPECIFIED;
  int attempt = 1;
  for (size_t i = 0; i < events->size(); ++i) {
    const v1::Event& event = (*events)[i];
    EXPECT_EQ(event.seq(), static_cast<int64_t>(i) + 1);
    EXPECT_GE(event.attempt(), attempt);
    attempt = event.attempt();
    if (event.body_case() == v1::Event::kState) {
      if (state == v1::EVALUATION_STATE_UNSPECIFIED) {
        EXPECT_EQ(event.state(), v1::QUEUED);
      } else {
        EXPECT_TRUE(CheckTransition(state, event.state()).ok()) << event.DebugString();
      }
      state = event.state();
    }
    EXPECT_EQ(event.has_final(), IsFinal(evaluation.state()) && i + 1 == events->size());
    EXPECT_FALSE(event.has_progress());
  }
  EXPECT_EQ(attempt, evaluation.attempt());
  if (!IsFinal(evaluation.state())) {
    EXPECT_EQ(state, evaluation.state());
  }
  EXPECT_EQ(evaluation.verdict() != v1::VERDICT_UNSPECIFIED, evaluation.state() == v1::COMPLETED);
  EXPECT_EQ(evaluation.has_error(), evaluation.state() == v1::FAILED);
}

class StateTest : public testing::Test {
 protected:
  StateTest() : folder_(NewFolder()) { Reopen(); }
  ~StateTest() override {
    evaluations_.reset();
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  void Reopen() {
    evaluations_.reset();
    store_.reset();
    auto store = store::OpenRocksDb(folder_);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    auto evaluations = Evaluations::Open(store_.get(), &clock_);
    ASSERT_TRUE(evaluations.ok()) << evaluations.status();
    evaluations_ = *std::move(evaluations);
  }
  v1::Evaluation Create(std::string tenant = "local") {
    auto created = evaluations_->Create(Creation(std::move(tenant)));
    EXPECT_TRUE(created.ok()) << created.status();
    return created->evaluation;
  }
  // Takes it to `state` by the ordinary way.
  void Bring(const v1::Evaluation& e, v1::EvaluationState state, int attempt = 1) {
    for (v1::EvaluationState next : {v1::COMPILING, v1::WAITING, v1::RUNNING}) {
      if (next > state) return;
      ASSERT_TRUE(evaluations_->Advance(e.tenant(), e.id(), attempt, next).ok());
    }
  }

  const std::string folder_;
  ManualClock clock_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Evaluations> evaluations_;
};

}  // namespace solstice::state
