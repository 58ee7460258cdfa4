#include "server/pipeline/measurement.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace solstice::pipeline {
namespace {

using testing::HasSubstr;

constexpr double kOverheadUs = 30;

// 3 decoys and 16 iterations, of which each takes what it takes and the overhead.
BatchTimes Honest(int64_t latency_ns, double disturbance_us = 0) {
  BatchTimes batch;
  batch.decoy_ns.assign(3, latency_ns);
  batch.latency_ns.assign(16, latency_ns);
  batch.wall_us = 19 * (static_cast<double>(latency_ns) * 1e-3 + kOverheadUs) + disturbance_us;
  return batch;
}

// The records say 0.6 us, the work takes 10.
BatchTimes Lying() {
  BatchTimes batch = Honest(600);
  batch.wall_us = 19 * (10 + kOverheadUs);
  return batch;
}

std::string Finding(const BatchTimes& batch) { return ClockFinding(ReadClock(batch, kOverheadUs)); }

TEST(ReadClockTest, HonestBatchesExceedNothing) {
  EXPECT_NEAR(OverheadUs(Honest(10000)), kOverheadUs, 1e-9);
  const ClockReading reading = ReadClock(Honest(10000), kOverheadUs);
  EXPECT_EQ(reading.reported_ns, 10000);
  EXPECT_NEAR(reading.excess_us, 0, 1e-9);
  EXPECT_NEAR(reading.decoy_excess_us, 0, 1e-9);
  EXPECT_EQ(Finding(Honest(10000)), "");
  EXPECT_EQ(OverheadUs(BatchTimes()), 0);
}

TEST(ReadClockTest, RecordsThatSayLessThanTheBatchTookAreFound) {
  EXPECT_NEAR(ReadClock(Lying(), kOverheadUs).excess_us, 9.4, 1e-9);
  EXPECT_THAT(Finding(Lying()), HasSubstr("by the judge's clock"));
}

TEST(ReadClockTest, WorkOfAllSlotsInOneIterationIsFound) {
  // The median is near nothing, the batch takes as long as ever.
  BatchTimes first = Honest(600);
  first.latency_ns[0] = 600 + 16 * 9400;
  first.wall_us = 19 * (10 + kOverheadUs) - 3 * 9.4;
  EXPECT_NEAR(ReadClock(first, kOverheadUs).decoy_excess_us, 0, 1e-9);
  EXPECT_THAT(Finding(first), HasSubstr("by the judge's clock"));
  BatchTimes decoy = Honest(600);
  decoy.decoy_ns[0] = 19 * 10000 - 1200;
  decoy.wall_us = 19 * kOverheadUs + 16 * 0.6 + 19 * 10;
  EXPECT_NEAR(ReadClock(decoy, kOverheadUs).decoy_excess_us, 190 - 1.8, 1e-9);
  EXPECT_THAT(Finding(decoy), HasSubstr("before those that count"));
}

TEST(ClockFindingTest, AllowsFivePercentOrHalfAMicrosecondAndSlowDecoys) {
  auto finding = [](double excess_us, double decoys_us, int64_t reported_ns) {
    return ClockFinding({reported_ns, excess_us, decoys_us, 3});
  };
  EXPECT_EQ(finding(0.5, 0, 2000), "");
  EXPECT_NE(finding(0.51, 0, 2000), "");
  EXPECT_EQ(finding(4.9, 0, 100000), "");
  EXPECT_NE(finding(5.1, 0, 100000), "");
  EXPECT_EQ(finding(-7, 30, 2000), "");
  EXPECT_NE(finding(-7, 31, 2000), "");
  EXPECT_EQ(finding(0, 149, 100000), "");
  EXPECT_NE(finding(0, 151, 100000), "");
}

TEST(MeasurementTest, EndsWithEnoughSamples) {
  Measurement measurement;
  for (int i = 0; i < 4; ++i) {
    EXPECT_FALSE(measurement.Done(false));
    measurement.Add(Honest(10000 + i), kOverheadUs);
  }
  EXPECT_TRUE(measurement.Done(false));
  EXPECT_FALSE(measurement.Refuted());
  EXPECT_EQ(measurement.samples(), 64);
  EXPECT_EQ(measurement.statistics().median_ns(), 10001);
  EXPECT_EQ(measurement.excess_ns(), 0);
}

TEST(MeasurementTest, DisturbedBatchesAccuseNobodyAndCountForNothing) {
  Measurement measurement;
  for (int i = 0; i < 8; ++i) measurement.Add(Honest(i % 2 == 0 ? 10000 : 9000, i % 2 == 0 ? 0 : 5000), kOverheadUs);
  EXPECT_EQ(measurement.findings(), 4);
  EXPECT_TRUE(measurement.Done(false));
  EXPECT_FALSE(measurement.Refuted());
  EXPECT_EQ(measurement.statistics().median_ns(), 10000);
}

// What is honest in some batches only is reported by those.
TEST(MeasurementTest, LyingInSomeBatchesGainsNothing) {
  Measurement measurement;
  for (int i = 0; i < 4; ++i) {
    measurement.Add(Lying(), kOverheadUs);
    measurement.Add(Honest(10000), kOverheadUs);
  }
  EXPECT_TRUE(measurement.Done(false));
  EXPECT_FALSE(measurement.Refuted());
  EXPECT_EQ(measurement.statistics().median_ns(), 10000);
}

TEST(MeasurementTest, LyingInMostBatchesIsRefuted) {
  Measurement measurement;
  measurement.Add(Honest(10000), kOverheadUs);
  for (int i = 0; i < Measurement::kMostFindings; ++i) {
    EXPECT_FALSE(measurement.Done(false));
    measurement.Add(Lying(), kOverheadUs);
  }
  EXPECT_TRUE(measurement.Done(false));
  EXPECT_TRUE(measurement.Refuted());
  EXPECT_THAT(measurement.finding(), HasSubstr("by the judge's clock"));
}

TEST(MeasurementTest, OutOfTimeOneBatchIsEnoughAndOneFindingIsNot) {
  Measurement good, bad;
  EXPECT_FALSE(good.Done(true));
  good.Add(Honest(10000), kOverheadUs);
  EXPECT_TRUE(good.Done(true));
  EXPECT_FALSE(good.Refuted());
  for (int i = 0; i < Measurement::kFewFindings; ++i) {
    EXPECT_FALSE(bad.Done(true));
    bad.Add(Lying(), kOverheadUs);
  }
  EXPECT_TRUE(bad.Done(true));
  EXPECT_TRUE(bad.Refuted());
}

TEST(MeasurementTest, BatchesWithoutRecordsCountForNothing) {
  Measurement measurement;
  BatchTimes batch;
  batch.wall_us = 100;
  batch.decoy_ns = {600};
  measurement.Add(batch, kOverheadUs);
  EXPECT_EQ(measurement.samples(), 0);
  EXPECT_EQ(measurement.findings(), 0);
  EXPECT_EQ(measurement.statistics().median_ns(), 0);
  EXPECT_FALSE(measurement.Refuted());
}

TEST(ProtocolNameTest, TimersHaveNamesOfTheirOwn) {
  EXPECT_EQ(ProtocolName(v1::TIMER_ACTIVITY), "solstice-v1");
  EXPECT_EQ(ProtocolName(v1::TIMER_UNSPECIFIED), "solstice-v1");
  EXPECT_EQ(ProtocolName(v1::TIMER_EVENTS), "solstice-v1-events");
  EXPECT_EQ(ProtocolName(v1::TIMER_NONE), "solstice-v1-untimed");
}

}  // namespace
}  // namespace solstice::pipeline
