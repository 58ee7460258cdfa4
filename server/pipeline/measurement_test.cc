#include "server/pipeline/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace solstice::pipeline {
namespace {

// A batch in which every iteration takes its latency and 30 us besides.
void AddHonest(Measurement* measurement, int64_t latency_ns, double disturbance_us = 0) {
  const std::vector<int64_t> latencies(16, latency_ns);
  measurement->AddBatch(19 * (static_cast<double>(latency_ns) * 1e-3 + 30) + disturbance_us,
                        std::vector<int64_t>(3, latency_ns), latencies);
}

std::string Finding(const Measurement& measurement, double overhead_us) {
  const int64_t reported_ns = measurement.median_ns();
  return ClockFinding(measurement.ExcessUs(overhead_us, reported_ns), measurement.DecoyExcessUs(reported_ns),
                      measurement.decoys(), reported_ns);
}

TEST(MeasurementTest, HonestBatchesExceedNothing) {
  Measurement measurement;
  for (int i = 0; i < 4; ++i) AddHonest(&measurement, 10000);
  EXPECT_EQ(measurement.samples(), 64);
  EXPECT_EQ(measurement.median_ns(), 10000);
  EXPECT_NEAR(measurement.OverheadUs(), 30, 1e-9);
  EXPECT_NEAR(measurement.ExcessUs(30, 10000), 0, 1e-9);
  EXPECT_EQ(Finding(measurement, 30), "");
}

TEST(MeasurementTest, OneDisturbedBatchAccusesNobody) {
  Measurement measurement;
  for (int i = 0; i < 4; ++i) AddHonest(&measurement, 10000, i == 2 ? 5000 : 0);
  EXPECT_EQ(Finding(measurement, 30), "");
}

TEST(MeasurementTest, RecordsThatSayLessThanTheBatchTookAreFound) {
  Measurement measurement;
  for (int i = 0; i < 4; ++i) {
    measurement.AddBatch(19 * (10 + 30), std::vector<int64_t>(3, 600), std::vector<int64_t>(16, 600));
  }
  EXPECT_NEAR(measurement.ExcessUs(30, 600), 9.4, 1e-9);
  EXPECT_THAT(Finding(measurement, 30), testing::HasSubstr("by the judge's clock"));
}

TEST(MeasurementTest, WorkOfAllSlotsInOneIterationIsFound) {
  // The median is near nothing, the batch takes as long as ever.
  std::vector<int64_t> latencies(16, 600);
  latencies[0] = 600 + 16 * 9400;
  Measurement first;
  for (int i = 0; i < 4; ++i) first.AddBatch(19 * (10 + 30) - 3 * 9.4, std::vector<int64_t>(3, 600), latencies);
  EXPECT_NEAR(first.DecoyExcessUs(600), 0, 1e-9);
  EXPECT_THAT(Finding(first, 30), testing::HasSubstr("by the judge's clock"));
  // In a decoy.
  Measurement decoy;
  for (int i = 0; i < 4; ++i) {
    decoy.AddBatch(19 * 30 + 16 * 0.6 + 19 * 10, {19 * 10000 - 1200, 600, 600}, std::vector<int64_t>(16, 600));
  }
  EXPECT_NEAR(decoy.DecoyExcessUs(600), 190 - 1.8, 1e-9);
  EXPECT_THAT(Finding(decoy, 30), testing::HasSubstr("before those that count"));
}

TEST(ClockFindingTest, AllowsFivePercentOrHalfAMicrosecondAndSlowDecoys) {
  EXPECT_EQ(ClockFinding(0.5, 0, 3, 2000), "");
  EXPECT_NE(ClockFinding(0.51, 0, 3, 2000), "");
  EXPECT_EQ(ClockFinding(4.9, 0, 3, 100000), "");
  EXPECT_NE(ClockFinding(5.1, 0, 3, 100000), "");
  EXPECT_EQ(ClockFinding(-7, 30, 3, 2000), "");
  EXPECT_NE(ClockFinding(-7, 31, 3, 2000), "");
  EXPECT_EQ(ClockFinding(0, 149, 3, 100000), "");
  EXPECT_NE(ClockFinding(0, 151, 3, 100000), "");
}

TEST(MeasurementTest, RejectedBatchesCountForNothing) {
  Measurement measurement;
  measurement.AddBatch(100, {600}, {});
  EXPECT_EQ(measurement.samples(), 0);
  EXPECT_EQ(measurement.median_ns(), 0);
}

TEST(ProtocolNameTest, TimersHaveNamesOfTheirOwn) {
  EXPECT_EQ(ProtocolName(v1::TIMER_ACTIVITY), "solstice-v1");
  EXPECT_EQ(ProtocolName(v1::TIMER_UNSPECIFIED), "solstice-v1");
  EXPECT_EQ(ProtocolName(v1::TIMER_EVENTS), "solstice-v1-events");
  EXPECT_EQ(ProtocolName(v1::TIMER_NONE), "solstice-v1-untimed");
}

}  // namespace
}  // namespace solstice::pipeline
