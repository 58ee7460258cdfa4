// The runner's work on a device: load programs, import buffers, run plans, run timed batches. One thread.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/timing/timing.h"
#include "runtime/worker/service.h"

namespace solstice::worker {

class Runner {
 public:
  explicit Runner(std::unique_ptr<device::Device> device) : device_(std::move(device)) {}

  device::Device& device() { return *device_; }
  // LoadProgram, Run, Batch, Go, Collect. After any outcome but OK the answer is the last one: the device may be
  // spoilt.
  StatusOr<Answer> Handle(const v1::internal::WorkerRequest& request, std::vector<base::UniqueFd> descriptors);

 private:
  struct Imported {
    std::unique_ptr<device::Buffer> buffer;
    device::Access access = device::Access::kReadOnly;
  };
  // A batch between Batch and Collect.
  struct Armed {
    timing::Batch batch;
    device::RunLimits limits;
    bool ran = false;
  };
  // Fresh descriptors, by handle.
  using Descriptors = std::map<int64_t, base::UniqueFd>;

  StatusOr<Answer> Load(const v1::internal::LoadProgram& program);
  StatusOr<v1::internal::RunOutcome> Run(const v1::internal::Run& run, std::vector<base::UniqueFd> descriptors);
  StatusOr<v1::internal::RunOutcome> Arm(const v1::internal::Batch& batch, std::vector<base::UniqueFd> descriptors);
  StatusOr<v1::internal::RunOutcome> Go(std::vector<base::UniqueFd> descriptors);
  StatusOr<v1::internal::Times> Collect();

  template <typename Request>
  StatusOr<Descriptors> TakeDescriptors(const Request& request, std::vector<base::UniqueFd> descriptors);
  // Address of the tensor, its mapping imported if it was not yet. RESOURCE_EXHAUSTED: it does not fit.
  StatusOr<device::Address> Map(const v1::internal::BufferPlacement& placed, Descriptors* descriptors);
  StatusOr<std::vector<device::Address>> MapSlot(const v1::internal::BoundPlan& plan, const v1::internal::Slot& slot,
                                                 Descriptors* descriptors);
  StatusOr<const device::Module*> Find(int program) const;
  // What stands in the plan's place when an iteration's own cost is measured.
  Status EnqueueStandIn(const v1::internal::Batch& request, const device::Module& trusted,
                            const std::vector<device::Address>& tensors);

  std::unique_ptr<device::Device> device_;
  std::map<int, std::unique_ptr<device::Module>> modules_;
  std::map<std::string, int64_t> static_shared_bytes_;  // of all kernels, by entry
  std::map<int64_t, Imported> imported_;                // by handle
  std::optional<Armed> armed_;
  bool warm_ = false;  // a batch was run
};

// A timeout from a message: `fallback_s` where it says none, at most a day.
std::chrono::nanoseconds TimeoutFrom(double seconds, double fallback_s);

}  // namespace solstice::worker
