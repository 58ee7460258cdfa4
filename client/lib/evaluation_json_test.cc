#include "client/lib/evaluation_json.h"

#include <gtest/gtest.h>

namespace solstice::client {
namespace {

v1::Evaluation Timed() {
  v1::Evaluation evaluation;
  auto* workload = evaluation.add_workloads();
  workload->set_uuid("w");
  workload->set_verdict(v1::PASSED);
  workload->set_latency_ns(2016);
  workload->set_latency_samples(64);
  workload->set_freshness(v1::PARTIAL);
  auto* statistics = workload->mutable_statistics();
  statistics->set_samples(64);
  statistics->set_minimum_ns(1984);
  statistics->set_p5_ns(1985);
  statistics->set_median_ns(2016);
  statistics->set_p95_ns(2080);
  statistics->set_mean_ns(2020.5);
  statistics->set_deviation_ns(32);
  statistics->set_low_ns(2000);
  statistics->set_high_ns(2032);
  statistics->set_stopped("interval");
  return evaluation;
}

TEST(EvaluationJsonTest, StatisticsOfALatency) {
  v1::Evaluation evaluation = Timed();
  const core::Json json = EvaluationJson(evaluation);
  const core::Json& workload = json.Find("workloads")->array()[0];
  EXPECT_EQ(workload.Find("statistics")->Canonical(),
            R"({"deviation_us":0.032,"interval_us":[2,2.032],"mean_us":2.0205,"median_us":2.016,"minimum_us":1.984,)"
            R"("p5_us":1.985,"p95_us":2.08,"samples":64,"stopped":"interval"})");
  EXPECT_EQ(workload.Find("freshness")->string(), "partial");
  EXPECT_EQ(workload.Find("samples_us"), nullptr);
  evaluation.mutable_workloads(0)->add_samples_ns(1984);
  evaluation.mutable_workloads(0)->add_samples_ns(2016);
  const core::Json kept = EvaluationJson(evaluation);
  EXPECT_EQ(kept.Find("workloads")->array()[0].Find("samples_us")->Canonical(), "[1.984,2.016]");
}

TEST(EvaluationJsonTest, NothingIsTimedOnTheEmulator) {
  v1::Evaluation evaluation;
  evaluation.add_workloads()->set_verdict(v1::PASSED);
  const core::Json json = EvaluationJson(evaluation);
  const core::Json& workload = json.Find("workloads")->array()[0];
  EXPECT_TRUE(workload.Find("statistics")->is_null());
  EXPECT_TRUE(workload.Find("freshness")->is_null());
  EXPECT_TRUE(workload.Find("latency_us")->is_null());
}

}  // namespace
}  // namespace solstice::client
