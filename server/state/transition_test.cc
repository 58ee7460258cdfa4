#include "server/state/transition.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <utility>

namespace solstice::state {
namespace {

TEST(TransitionTest, AllPairs) {
  using enum v1::EvaluationState;
  const std::set<std::pair<int, int>> legal = {
      {QUEUED, COMPILING},    {QUEUED, COMPLETED}, {QUEUED, CANCELLED}, {COMPILING, WAITING}, {COMPILING, COMPLETED},
      {COMPILING, CANCELLED}, {COMPILING, QUEUED}, {COMPILING, FAILED}, {WAITING, RUNNING},   {WAITING, COMPLETED},
      {WAITING, CANCELLED},   {WAITING, QUEUED},   {WAITING, FAILED},   {RUNNING, COMPLETED}, {RUNNING, CANCELLED},
      {RUNNING, QUEUED},      {RUNNING, FAILED},
  };
  for (int from = v1::EvaluationState_MIN; from <= v1::EvaluationState_MAX; ++from) {
    for (int to = v1::EvaluationState_MIN; to <= v1::EvaluationState_MAX; ++to) {
      Status status = CheckTransition(static_cast<v1::EvaluationState>(from), static_cast<v1::EvaluationState>(to));
      if (legal.count({from, to}) > 0) {
        EXPECT_TRUE(status.ok()) << status;
      } else {
        EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << from << " -> " << to;
      }
    }
  }
}

TEST(TransitionTest, TheErrorNamesBothStates) {
  std::string message(CheckTransition(v1::COMPLETED, v1::QUEUED).message());
  EXPECT_THAT(message, testing::HasSubstr("COMPLETED"));
  EXPECT_THAT(message, testing::HasSubstr("QUEUED"));
  Status unknown = CheckTransition(static_cast<v1::EvaluationState>(99), v1::QUEUED);
  EXPECT_EQ(unknown.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(unknown.message()), testing::HasSubstr("99"));
}

TEST(TransitionTest, FinalStates) {
  for (int state = v1::EvaluationState_MIN; state <= v1::EvaluationState_MAX; ++state) {
    bool final = state == v1::COMPLETED || state == v1::CANCELLED || state == v1::FAILED;
    EXPECT_EQ(IsFinal(static_cast<v1::EvaluationState>(state)), final) << state;
  }
}

}  // namespace
}  // namespace solstice::state
