// The order of a timed measurement, on a device that is a list of what was done.
#include "server/pipeline/turns.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/timing/statistics.h"

namespace solstice::pipeline {
namespace {

using base::StrCat;
using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::HasSubstr;

constexpr double kOverheadUs = 30;

class RecordedTurns : public Turns {
 public:
  StatusOr<int> Prepare(int variant, int slots) override {
    Note(StrCat("judge: prepare ", slots, " of content ", variant));
    const int made = prepares++ == fail_prepare ? 0 : std::min(slots, most_slots);
    for (int i = 0; i < made; ++i) EXPECT_TRUE(contents.insert(variant + i).second) << "content " << variant + i;
    return made;
  }
  Status TimeReference(std::vector<int64_t>* latency_ns) override {
    Note("judge: reference");
    latency_ns->insert(latency_ns->end(), 16, 5000);
    return absl::OkStatus();
  }
  StatusOr<bool> Run(BatchTimes* times) override {
    Note("runner: run");
    if (runs == fail_run) return false;
    if (runs++ != lose_records) *times = batch(runs);
    return true;
  }
  StatusOr<bool> Verify(const std::vector<int>& compare) override {
    Note("judge: verify");
    compared.push_back(compare);
    return !wrong;
  }
  StatusOr<double> Calibrate() override {
    Note("runner: calibrate");
    return kOverheadUs;
  }
  uint64_t Secret() override { return secrets++ * 7; }
  double Seconds() override { return seconds += seconds_a_batch; }

  // 16 iterations and 3 decoys of 10 us and a little.
  static BatchTimes Steady(int run) {
    BatchTimes times;
    times.decoy_ns.assign(3, 10000);
    for (int i = 0; i < 16; ++i) times.latency_ns.push_back(10000 + 8 * (i % 3) + run % 2);
    times.wall_us = 19 * (10.008 + kOverheadUs);
    return times;
  }

  std::vector<std::string> actions;
  std::set<int> contents;
  std::vector<std::vector<int>> compared;
  std::function<BatchTimes(int)> batch = Steady;
  int most_slots = 16, prepares = 0, runs = 0, fail_prepare = -1, fail_run = -1, lose_records = -1;
  uint64_t secrets = 1;
  bool wrong = false;
  double seconds = 0, seconds_a_batch = 0.01;

 private:
  void Note(std::string action) { actions.push_back(std::move(action)); }
};

Measured MustMeasure(Turns& turns, const MeasureOptions& options) {
  auto measured = Measure(turns, options);
  EXPECT_TRUE(measured.ok()) << measured.status();
  return measured.ok() ? *std::move(measured) : Measured();
}

MeasureOptions Slots(int slots) {
  MeasureOptions options;
  options.slots = slots;
  return options;
}

TEST(MeasureTest, JudgeAndRunnerTakeTurnsInThisOrder) {
  RecordedTurns turns;
  MeasureOptions options = Slots(32);
  options.fresh_runner = options.time_reference = true;
  const Measured measured = MustMeasure(turns, options);
  // The fresh runner's batches of stand-ins; then turns, of which only the first times a slow reference. Content is
  // numbered on by what the judge made, not by what was wanted.
  std::vector<std::string> expected = {"judge: prepare 32 of content 16"};
  expected.insert(expected.end(), kWarmUpBatches, "runner: calibrate");
  for (int turn = 0; turn < 4; ++turn) {
    expected.push_back(StrCat("judge: prepare 32 of content ", 32 + 16 * turn));
    if (turn == 0) expected.push_back("judge: reference");
    for (const char* action : {"runner: run", "judge: verify", "runner: calibrate"}) expected.push_back(action);
  }
  EXPECT_THAT(turns.actions, ElementsAreArray(expected));
  EXPECT_TRUE(measured.passed);
  EXPECT_EQ(measured.measurement.samples(), 64);
  EXPECT_EQ(measured.measurement.statistics().stopped(), "interval");
  EXPECT_EQ(measured.total, 64);
  EXPECT_EQ(measured.compared, 8);
  EXPECT_EQ(measured.reference_ns.size(), 16u);
}

TEST(MeasureTest, AQuickReferenceIsTimedUntilItHasSamplesEnough) {
  RecordedTurns turns;
  turns.batch = [](int run) {
    BatchTimes times = RecordedTurns::Steady(run);
    for (size_t i = 0; i < times.latency_ns.size(); i += 2) times.latency_ns[i] += 300 * (run % 5);  // scatters
    return times;
  };
  MeasureOptions options = Slots(16);
  options.time_reference = options.quick_reference = true;
  const Measured measured = MustMeasure(turns, options);
  EXPECT_EQ(measured.reference_ns.size(), 64u);
  EXPECT_GT(turns.runs, 4);
}

TEST(MeasureTest, NoContentTwiceAndEverySlotComparedBySecret) {
  RecordedTurns turns;
  turns.most_slots = 5;
  MustMeasure(turns, Slots(16));
  EXPECT_EQ(turns.contents.size(), static_cast<size_t>(5 * turns.runs));
  EXPECT_EQ(*turns.contents.begin(), kFirstTimedVariant);
  std::set<int> chosen;
  for (const std::vector<int>& compare : turns.compared) {
    EXPECT_LE(compare.size(), static_cast<size_t>(kComparedABatch));
    for (const int slot : compare) {
      EXPECT_LT(slot, 5);
      chosen.insert(slot);
    }
  }
  EXPECT_EQ(chosen.size(), 5u);
  // One slot can be chosen twice, and is compared once.
  RecordedTurns single;
  single.most_slots = 1;
  MustMeasure(single, Slots(16));
  EXPECT_THAT(single.compared.front(), ElementsAre(0));
}

TEST(MeasureTest, WhatGoesWrongEndsItAtOnce) {
  RecordedTurns unprepared;
  unprepared.fail_prepare = 1;
  EXPECT_FALSE(MustMeasure(unprepared, Slots(16)).passed);
  EXPECT_EQ(unprepared.actions.back(), "judge: prepare 16 of content 32");
  RecordedTurns faulting;
  faulting.fail_run = 0;
  EXPECT_FALSE(MustMeasure(faulting, Slots(16)).passed);
  EXPECT_EQ(faulting.actions.back(), "runner: run");
  RecordedTurns wrong;
  wrong.wrong = true;
  const Measured measured = MustMeasure(wrong, Slots(16));
  EXPECT_FALSE(measured.passed);
  EXPECT_EQ(measured.measurement.samples(), 0);
  EXPECT_EQ(wrong.actions.back(), "judge: verify");
}

TEST(MeasureTest, ABatchWithoutRecordsIsCheckedAndCountsForNothing) {
  RecordedTurns turns;
  turns.lose_records = 0;
  const Measured measured = MustMeasure(turns, Slots(16));
  EXPECT_THAT(std::vector<std::string>(turns.actions.begin(), turns.actions.begin() + 4),
              ElementsAre("judge: prepare 16 of content 16", "runner: run", "judge: verify",
                          "judge: prepare 16 of content 32"));
  EXPECT_TRUE(measured.passed);
  EXPECT_EQ(measured.measurement.samples(), 64);
  EXPECT_EQ(measured.total, 80);
}

TEST(MeasureTest, TheJudgesClockRefutes) {
  RecordedTurns turns;
  turns.batch = [](int run) {
    BatchTimes times = RecordedTurns::Steady(run);
    std::fill(times.latency_ns.begin(), times.latency_ns.end(), 600);
    std::fill(times.decoy_ns.begin(), times.decoy_ns.end(), 600);
    return times;
  };
  const Measured measured = MustMeasure(turns, Slots(16));
  EXPECT_FALSE(measured.passed);
  EXPECT_TRUE(measured.measurement.Refuted());
  EXPECT_EQ(turns.runs, Measurement::kMostFindings);
}

TEST(MeasureTest, EndsAtTheBudgetOfTimeAndOfBatches) {
  RecordedTurns slow;
  slow.most_slots = 1;
  slow.seconds_a_batch = 8;
  const Measured measured = MustMeasure(slow, Slots(1));
  EXPECT_TRUE(measured.passed);
  EXPECT_EQ(measured.measurement.statistics().stopped(), "budget");
  EXPECT_EQ(slow.runs, 2);
  RecordedTurns lost;
  lost.batch = [](int) { return BatchTimes(); };
  EXPECT_EQ(MustMeasure(lost, Slots(16)).measurement.samples(), 0);
  EXPECT_EQ(lost.runs, kMostBatches);
}

TEST(MeasureTest, OurFailuresAreErrors) {
  class Lost : public RecordedTurns {
    StatusOr<double> Calibrate() override { return base::Unavailable("the runner died"); }
  } turns;
  EXPECT_TRUE(absl::IsUnavailable(Measure(turns, Slots(16)).status()));
}

}  // namespace
}  // namespace solstice::pipeline
