#include "runtime/exec/exec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "runtime/base/strings.h"
#include "runtime/exec/recording_device.h"

namespace solstice::exec {
namespace {

using base::StrCat;
using device::Address;
using testing::ElementsAre;
using testing::HasSubstr;
using v1::internal::BoundPlan;
using v1::internal::RunOutcome;

BoundPlan TwoOperations() {
  BoundPlan plan;
  auto* input = plan.add_buffers();
  input->set_role(v1::internal::INPUT);
  input->set_name("x");
  input->set_bytes(100);
  auto* output = plan.add_buffers();
  output->set_role(v1::internal::OUTPUT);
  output->set_name("y");
  output->set_bytes(64);
  auto* first = plan.add_operations();
  first->set_line(3);
  first->mutable_memset()->set_buffer(1);
  first->mutable_memset()->set_offset(16);
  first->mutable_memset()->set_bytes(48);
  first->mutable_memset()->set_byte(255);
  auto* second = plan.add_operations();
  second->set_line(4);
  second->set_file("kernel.cu");
  auto* launch = second->mutable_launch();
  launch->set_entry("scale");
  for (int size : {2, 1, 1}) launch->add_grid(size);
  for (int size : {32, 1, 1}) launch->add_block(size);
  launch->set_dynamic_shared_bytes(512);
  launch->add_args()->set_buffer(1);
  launch->add_args()->set_value(std::string("\x07\0\0\0", 4));
  return plan;
}

TEST(RunPlanTest, EnqueuesInOrderThenWaits) {
  RecordingDevice device;
  device.outcome.set_kind(RunOutcome::OK);
  device::Module module;
  auto outcome = RunPlan(device, module, TwoOperations(), {1000, 2000 + 5}, {std::chrono::nanoseconds(77), 0});
  ASSERT_TRUE(outcome.ok()) << outcome.status();
  EXPECT_EQ(outcome->kind(), RunOutcome::OK);
  EXPECT_THAT(device.actions,
              ElementsAre("memset 2021 255 48", StrCat("launch scale 2,1,1 32 512 8:", 2005 % 256 - 256, " 4:7"),
                          "synchronize 77"));
}

TEST(RunPlanTest, FaultNamesThePlanLine) {
  RecordingDevice device;
  device.outcome.set_kind(RunOutcome::FAULT);
  device.outcome.set_reason("out of bounds");
  device.outcome.mutable_fault()->set_kernel("scale");
  device.outcome.mutable_fault()->set_message("out of bounds in scale");
  device::Module module;
  auto outcome = RunPlan(device, module, TwoOperations(), {0, 0}, {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_THAT(outcome->reason(), HasSubstr("kernel.cu:4"));
  EXPECT_THAT(outcome->fault().message(), HasSubstr("kernel.cu:4"));
  // Two lines launch the same entry: neither is blamed.
  BoundPlan plan = TwoOperations();
  *plan.add_operations() = plan.operations(1);
  plan.mutable_operations(2)->set_line(9);
  outcome = RunPlan(device, module, plan, {0, 0}, {});
  ASSERT_TRUE(outcome.ok());
  EXPECT_EQ(outcome->reason(), "out of bounds");
}

TEST(RunPlanTest, DeviceErrorsNameTheLine) {
  RecordingDevice device;
  device.enqueue_status = base::Internal("lost");
  device::Module module;
  auto outcome = RunPlan(device, module, TwoOperations(), {0, 0}, {});
  EXPECT_EQ(outcome.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(base::MessageOf(outcome.status()), HasSubstr("kernel.cu:4"));
}

TEST(RunPlanTest, HostilePlansAreRefusedBeforeTheDevice) {
  RecordingDevice device;
  device::Module module;
  std::vector<std::function<void(BoundPlan*)>> spoilers = {
      [](BoundPlan* p) { p->mutable_operations(0)->mutable_memset()->set_buffer(2); },
      [](BoundPlan* p) { p->mutable_operations(0)->mutable_memset()->set_buffer(-1); },
      [](BoundPlan* p) { p->mutable_operations(0)->mutable_memset()->set_buffer(0); },
      [](BoundPlan* p) { p->mutable_operations(0)->mutable_memset()->set_offset(17); },
      [](BoundPlan* p) { p->mutable_operations(0)->mutable_memset()->set_offset(INT64_MAX); },
      [](BoundPlan* p) { p->mutable_operations(0)->mutable_memset()->set_bytes(-1); },
      [](BoundPlan* p) { p->mutable_operations(0)->mutable_memset()->set_byte(256); },
      [](BoundPlan* p) { p->mutable_operations(1)->mutable_launch()->clear_entry(); },
      [](BoundPlan* p) { p->mutable_operations(1)->mutable_launch()->add_grid(1); },
      [](BoundPlan* p) { p->mutable_operations(1)->mutable_launch()->set_block(0, 0); },
      [](BoundPlan* p) { p->mutable_operations(1)->mutable_launch()->set_dynamic_shared_bytes(-1); },
      [](BoundPlan* p) { p->mutable_operations(1)->mutable_launch()->mutable_args(0)->set_buffer(2); },
      [](BoundPlan* p) { p->mutable_operations(1)->mutable_launch()->mutable_args(0)->clear_arg(); },
      [](BoundPlan* p) { p->mutable_operations(1)->mutable_launch()->mutable_args(1)->set_value(""); },
      [](BoundPlan* p) { p->add_operations()->set_line(5); },
      [](BoundPlan* p) { p->add_buffers(); },
  };
  for (size_t i = 0; i < spoilers.size(); ++i) {
    BoundPlan plan = TwoOperations();
    spoilers[i](&plan);
    EXPECT_EQ(RunPlan(device, module, plan, {0, 0}, {}).status().code(), absl::StatusCode::kInvalidArgument) << i;
  }
  EXPECT_TRUE(device.actions.empty());
}

TEST(PlacementTest, EndsAtTheMappingsEndLessSlack) {
  for (int64_t bytes : {0, 1, 255, 256, 257, 4096, 100000}) {
    for (int slack : {0, 1, kMaxSlack}) {
      auto placement = Place(bytes, 4096, slack);
      ASSERT_TRUE(placement.ok());
      EXPECT_EQ(placement->mapped_bytes % 4096, 0);
      EXPECT_EQ(placement->offset % kAlignment, 0);
      EXPECT_GE(placement->offset, kLeadingGuardBytes);
      EXPECT_LT(placement->offset, placement->mapped_bytes);
      EXPECT_GE(placement->mapped_bytes - placement->end(), kAlignment * slack);
      EXPECT_LE(placement->mapped_bytes - placement->end(), kAlignment * (slack + 1));
    }
  }
  auto exact = Place(512, 4096, 0);
  EXPECT_EQ(exact->end(), exact->mapped_bytes) << "the next granule is unmapped";
}

TEST(PlacementTest, RefusesNonsense) {
  EXPECT_FALSE(Place(-1, 4096, 0).ok());
  EXPECT_FALSE(Place(1, 0, 0).ok());
  EXPECT_FALSE(Place(1, 100, 0).ok());
  EXPECT_FALSE(Place(1, 4096, kMaxSlack + 1).ok());
  EXPECT_EQ(Place(INT64_MAX, 4096, 0).status().code(), absl::StatusCode::kResourceExhausted);

  v1::internal::BufferPlacement buffer;
  buffer.set_bytes(100);
  buffer.set_mapped_bytes(4096);
  buffer.set_offset(256);
  EXPECT_TRUE(CheckPlacement(buffer, 4096).ok());
  for (int64_t offset : {int64_t{-256}, int64_t{100}, int64_t{4096}, int64_t{8192}, INT64_MAX - 255}) {
    buffer.set_offset(offset);
    EXPECT_EQ(CheckPlacement(buffer, 4096).status().code(), absl::StatusCode::kInvalidArgument) << offset;
  }
  buffer.set_offset(256);
  for (int64_t bytes : {int64_t{-1}, int64_t{3841}, INT64_MAX}) {
    buffer.set_bytes(bytes);
    EXPECT_EQ(CheckPlacement(buffer, 4096).status().code(), absl::StatusCode::kInvalidArgument) << bytes;
  }
  buffer.set_bytes(1);
  buffer.set_mapped_bytes(4097);
  EXPECT_FALSE(CheckPlacement(buffer, 4096).ok());
}

}  // namespace
}  // namespace solstice::exec
