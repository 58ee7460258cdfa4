// The runner's work on a device: load programs, import buffers, run plans. One thread.
#pragma once

#include <map>
#include <memory>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/worker/service.h"

namespace solstice::worker {

class Runner {
 public:
  explicit Runner(std::unique_ptr<device::Device> device) : device_(std::move(device)) {}

  const v1::DeviceProperties& properties() const { return device_->properties(); }
  // LoadProgram and Run. After any outcome but OK the answer is the last one: the device may be spoilt.
  StatusOr<Answer> Handle(const v1::internal::WorkerRequest& request, std::vector<base::UniqueFd> descriptors);

 private:
  StatusOr<Answer> Load(const v1::internal::LoadProgram& program);
  StatusOr<v1::internal::RunOutcome> Run(const v1::internal::Run& run, std::vector<base::UniqueFd> descriptors);

  std::unique_ptr<device::Device> device_;
  std::map<int, std::unique_ptr<device::Module>> modules_;
};

// A timeout from a message: `fallback_s` where it says none, at most a day.
std::chrono::nanoseconds TimeoutFrom(double seconds, double fallback_s);

}  // namespace solstice::worker
