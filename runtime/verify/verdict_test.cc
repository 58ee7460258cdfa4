#include "runtime/verify/verdict.h"

#include <gtest/gtest.h>

#include <initializer_list>
#include <iterator>
#include <set>
#include <string>

namespace solstice::verify {
namespace {

v1::Evaluation Of(std::initializer_list<v1::Verdict> verdicts) {
  v1::Evaluation evaluation;
  int number = 0;
  for (v1::Verdict verdict : verdicts) {
    v1::WorkloadResult* workload = evaluation.add_workloads();
    workload->set_uuid("w" + std::to_string(++number));
    workload->set_verdict(verdict);
    if (verdict == v1::PASSED) continue;
    workload->set_reason("reason " + std::to_string(number));
    workload->set_mend("mend " + std::to_string(number));
  }
  Summarise(&evaluation);
  return evaluation;
}

TEST(VerdictTest, TheOrderIsFixed) {
  const v1::Verdict worst_first[] = {v1::INVALID_REFERENCE,
                                     v1::REWARD_HACK,
                                     v1::INVALID_SUBMISSION,
                                     v1::COMPILE_ERROR,
                                     v1::RUNTIME_ERROR,
                                     v1::RESOURCE_EXCEEDED,
                                     v1::TIMEOUT,
                                     v1::INCORRECT_SHAPE,
                                     v1::INCORRECT_DTYPE,
                                     v1::INCORRECT_NUMERICAL,
                                     v1::NEEDS_DEVICE,
                                     v1::PASSED,
                                     v1::SKIPPED,
                                     v1::VERDICT_UNSPECIFIED};
  for (size_t i = 1; i < std::size(worst_first); ++i) {
    EXPECT_GT(Severity(worst_first[i - 1]), Severity(worst_first[i])) << v1::Verdict_Name(worst_first[i]);
  }
  std::set<int> ranks;
  for (int value = v1::Verdict_MIN; value <= v1::Verdict_MAX; ++value) {
    if (v1::Verdict_IsValid(value)) ranks.insert(Severity(static_cast<v1::Verdict>(value)));
  }
  EXPECT_EQ(ranks.size(), std::size(worst_first)) << "every verdict has a rank of its own";
}

TEST(VerdictTest, OfTwoWorkloadsTheWorseWinsInEitherOrder) {
  for (int a = 1; a <= v1::Verdict_MAX; ++a) {
    for (int b = 1; b <= v1::Verdict_MAX; ++b) {
      const auto first = static_cast<v1::Verdict>(a), second = static_cast<v1::Verdict>(b);
      const v1::Evaluation evaluation = Of({first, second});
      EXPECT_EQ(evaluation.verdict(), Severity(first) >= Severity(second) ? first : second);
      auto ran = [](v1::Verdict verdict) { return verdict != v1::SKIPPED && verdict != v1::NEEDS_DEVICE; };
      EXPECT_EQ(evaluation.complete(), ran(first) && ran(second));
    }
  }
}

TEST(VerdictTest, AllPassed) {
  const v1::Evaluation evaluation = Of({v1::PASSED, v1::PASSED});
  EXPECT_EQ(evaluation.verdict(), v1::PASSED);
  EXPECT_TRUE(evaluation.complete());
  EXPECT_EQ(evaluation.reason(), "");
  EXPECT_EQ(evaluation.mend(), "");
}

TEST(VerdictTest, SkippedWorkloadsMakeItIncompleteNotWorse) {
  const v1::Evaluation evaluation = Of({v1::SKIPPED, v1::PASSED, v1::SKIPPED});
  EXPECT_EQ(evaluation.verdict(), v1::PASSED);
  EXPECT_FALSE(evaluation.complete());
  EXPECT_EQ(evaluation.reason(), "2 of 3 workloads did not run; w1: reason 1");
}

TEST(VerdictTest, NothingRan) {
  EXPECT_EQ(Of({v1::SKIPPED, v1::SKIPPED}).verdict(), v1::SKIPPED);
  EXPECT_FALSE(Of({v1::SKIPPED}).complete());
  EXPECT_EQ(Of({v1::NEEDS_DEVICE, v1::SKIPPED}).verdict(), v1::NEEDS_DEVICE);
  EXPECT_EQ(Of({v1::VERDICT_UNSPECIFIED}).verdict(), v1::SKIPPED);
  EXPECT_EQ(Of({}).verdict(), v1::SKIPPED);
  EXPECT_EQ(Of({}).reason(), "no workload ran");
  EXPECT_FALSE(Of({}).complete());
}

TEST(VerdictTest, AWorkloadWithoutVerdictIsNotAPass) {
  const v1::Evaluation evaluation = Of({v1::PASSED, v1::VERDICT_UNSPECIFIED});
  EXPECT_EQ(evaluation.verdict(), v1::PASSED);
  EXPECT_FALSE(evaluation.complete());
}

TEST(VerdictTest, ReasonNamesTheFirstOfTheWorst) {
  const v1::Evaluation evaluation = Of({v1::PASSED, v1::INCORRECT_NUMERICAL, v1::TIMEOUT, v1::TIMEOUT, v1::SKIPPED});
  EXPECT_EQ(evaluation.verdict(), v1::TIMEOUT);
  EXPECT_EQ(evaluation.reason(), "2 of 5 workloads TIMEOUT; w3: reason 3");
  EXPECT_EQ(evaluation.mend(), "mend 3");
  EXPECT_FALSE(evaluation.complete());
}

TEST(VerdictTest, OneWorkloadSpeaksForItself) {
  EXPECT_EQ(Of({v1::RUNTIME_ERROR}).reason(), "reason 1");
  EXPECT_TRUE(Of({v1::RUNTIME_ERROR}).complete());
}

TEST(VerdictTest, AVerdictWithoutWorkloadsStands) {
  v1::Evaluation evaluation;
  evaluation.set_verdict(v1::COMPILE_ERROR);
  evaluation.set_reason("kernel.cu(3): error");
  evaluation.set_complete(true);
  Summarise(&evaluation);
  EXPECT_EQ(evaluation.verdict(), v1::COMPILE_ERROR);
  EXPECT_EQ(evaluation.reason(), "kernel.cu(3): error");
  EXPECT_FALSE(evaluation.complete());
}

TEST(VerdictTest, StaleReasonsAreReplaced) {
  v1::Evaluation evaluation;
  evaluation.set_verdict(v1::TIMEOUT);
  evaluation.set_reason("old");
  evaluation.set_mend("old");
  evaluation.add_workloads()->set_verdict(v1::PASSED);
  Summarise(&evaluation);
  EXPECT_EQ(evaluation.verdict(), v1::PASSED);
  EXPECT_EQ(evaluation.reason(), "");
  EXPECT_EQ(evaluation.mend(), "");
}

}  // namespace
}  // namespace solstice::verify
