#include "runtime/timing/timing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/exec/recording_device.h"

namespace solstice::timing {
namespace {

using testing::ElementsAre;

Batch TwoSlots(const device::Module& trusted) {
  Batch batch;
  batch.shape = {3, 2};
  batch.timer = v1::TIMER_ACTIVITY;
  batch.trusted = &trusted;
  batch.clear.entry = "clear";
  return batch;
}

TEST(EnqueueBatchTest, DecoysThenEachSlotOnceEachAfterAClearing) {
  exec::RecordingDevice device;
  device.outcome.set_kind(v1::internal::RunOutcome::OK);
  device::Module module;
  Status status = EnqueueBatch(device, TwoSlots(module), [&](int slot) {
    device.actions.push_back("slot " + std::to_string(slot));
    return absl::OkStatus();
  });
  ASSERT_TRUE(status.ok()) << status;
  const std::string clear = "launch clear 1,1,1 1 0";
  // The device is this context's before the gate closes.
  EXPECT_THAT(device.actions, ElementsAre(clear, clear, clear, clear, "synchronize 60000000000",
                                          "begin TIMER_ACTIVITY",           //
                                          clear, "start", "slot 0", "end",  //
                                          clear, "start", "slot 1", "end",  //
                                          clear, "start", "slot 0", "end",  //
                                          clear, "start", "slot 0", "end",  //
                                          clear, "start", "slot 1", "end"));
}

TEST(EnqueueBatchTest, StopsAtTheFirstError) {
  exec::RecordingDevice device;
  device.outcome.set_kind(v1::internal::RunOutcome::OK);
  device::Module module;
  Status status = EnqueueBatch(device, TwoSlots(module), [](int) { return base::Internal("lost"); });
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(device.actions.size(), 8u);
  device.outcome.set_kind(v1::internal::RunOutcome::FAULT);
  EXPECT_EQ(EnqueueBatch(device, TwoSlots(module), nullptr).code(), absl::StatusCode::kInternal);
  Batch without = TwoSlots(module);
  without.trusted = nullptr;
  EXPECT_EQ(EnqueueBatch(device, without, nullptr).code(), absl::StatusCode::kInvalidArgument);
}

TEST(TakeTimesTest, LatenciesAreSpans) {
  exec::RecordingDevice device;
  device::Module module;
  device.spans = std::vector<device::Span>{{0, 9}, {10, 18}, {20, 27}, {100, 150}, {1000, 1700}};
  auto times = TakeTimes(device, TwoSlots(module));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_THAT(times->decoy_ns(), ElementsAre(9, 8, 7));
  EXPECT_THAT(times->latency_ns(), ElementsAre(50, 700));
  EXPECT_EQ(times->rejected(), "");
  device.spans = std::vector<device::Span>{{100, 150}};
  EXPECT_EQ(TakeTimes(device, TwoSlots(module)).status().code(), absl::StatusCode::kInternal);
}

TEST(TakeTimesTest, MissingRecordsRejectTheBatchAndNothingElse) {
  exec::RecordingDevice device;
  device::Module module;
  device.spans = base::DataLoss("3 records for 4 operations");
  auto times = TakeTimes(device, TwoSlots(module));
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(times->rejected(), "3 records for 4 operations");
  EXPECT_EQ(times->latency_ns_size(), 0);
  device.spans = base::Unavailable("the device is lost");
  EXPECT_EQ(TakeTimes(device, TwoSlots(module)).status().code(), absl::StatusCode::kUnavailable);
}

TEST(FitBatchTest, NeverMoreThanTheGateHolds) {
  for (int64_t capacity : {10, 100, 900}) {
    for (int64_t operations : {0, 1, 2, 10, 100, 256, 1000}) {
      for (int wanted : {0, 1, 16, 64}) {
        BatchShape shape = FitBatch(capacity, operations, wanted);
        EXPECT_GE(shape.decoys, 1);
        EXPECT_LE(shape.decoys, kDecoys);
        EXPECT_GE(shape.slots, 1);
        EXPECT_LE(shape.slots, std::max(wanted, 1));
        if (capacity >= 2 * (operations + 3)) {
          EXPECT_LE((shape.decoys + shape.slots) * (operations + 3), capacity) << capacity << " " << operations;
        }
      }
    }
  }
  EXPECT_EQ(FitBatch(900, 1, 32).slots, 32);
  EXPECT_EQ(FitBatch(900, 1, 32).decoys, 3);
}

TEST(MedianTest, LowerOfTheMiddleTwo) {
  EXPECT_EQ(Median({}), 0);
  EXPECT_EQ(Median({7}), 7);
  EXPECT_EQ(Median({3, 1, 2}), 2);
  EXPECT_EQ(Median({4, 1, 3, 2}), 2);
}

}  // namespace
}  // namespace solstice::timing
