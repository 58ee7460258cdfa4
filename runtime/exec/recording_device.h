// For tests: a device that records the order of what it is asked to do.
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "runtime/base/strings.h"
#include "runtime/device/device.h"

namespace solstice::exec {

// Records the order of actions; its memory is one array. What executes kernels is tested with the devices.
class RecordingDevice : public device::Device {
 public:
  const v1::DeviceProperties& properties() const override { return properties_; }
  int64_t granularity() const override { return 4096; }
  StatusOr<std::unique_ptr<device::Buffer>> Allocate(int64_t, const device::Extent&) override {
    return base::Unimplemented("no buffers");
  }
  StatusOr<std::unique_ptr<device::Buffer>> Import(base::UniqueFd, int64_t, device::Access,
                                                   const device::Extent&) override {
    return base::Unimplemented("no buffers");
  }
  Status CopyIn(device::Address destination, std::span<const uint8_t> source) override {
    std::memcpy(memory + destination, source.data(), source.size());
    return absl::OkStatus();
  }
  Status CopyOut(std::span<uint8_t> destination, device::Address source) override {
    std::memcpy(destination.data(), memory + source, destination.size());
    return absl::OkStatus();
  }
  StatusOr<std::unique_ptr<device::Module>> Load(const v1::internal::LoadProgram&, v1::internal::RunOutcome*) override {
    return base::Unimplemented("no modules");
  }
  Status EnqueueLaunch(const device::Module&, const device::LaunchParameters& launch) override {
    std::string arguments;
    for (const std::string& argument : launch.arguments)
      arguments += base::StrCat(" ", argument.size(), ":", int{argument[0]});
    actions.push_back(base::StrCat("launch ", launch.entry, " ", launch.grid[0], ",", launch.grid[1], ",",
                                   launch.grid[2], " ", launch.block[0], " ", launch.dynamic_shared_bytes, arguments));
    return enqueue_status;
  }
  Status EnqueueMemset(device::Address destination, uint8_t value, int64_t bytes) override {
    actions.push_back(base::StrCat("memset ", destination, " ", int{value}, " ", bytes));
    return absl::OkStatus();
  }
  StatusOr<v1::internal::RunOutcome> Synchronize(const device::RunLimits& limits) override {
    actions.push_back(base::StrCat("synchronize ", limits.timeout.count()));
    if (limits.when_idle) limits.when_idle();
    return outcome;
  }
  std::vector<v1::Timer> Timers(std::string*) override { return {v1::TIMER_ACTIVITY, v1::TIMER_NONE}; }
  int64_t BatchCapacity() const override { return 100; }
  Status BeginBatch(v1::Timer timer) override {
    actions.push_back(base::StrCat("begin ", v1::Timer_Name(timer)));
    return absl::OkStatus();
  }
  Status StartIteration() override {
    actions.push_back("start");
    return absl::OkStatus();
  }
  Status EndIteration() override {
    actions.push_back("end");
    return absl::OkStatus();
  }
  StatusOr<std::vector<device::Span>> TakeSpans() override { return spans; }

  uint8_t memory[16384] = {};
  std::vector<std::string> actions;
  Status enqueue_status;
  StatusOr<std::vector<device::Span>> spans = std::vector<device::Span>();
  v1::internal::RunOutcome outcome;

 private:
  v1::DeviceProperties properties_;
};

}  // namespace solstice::exec
