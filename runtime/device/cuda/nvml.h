// NVIDIA's management library, opened at run time and only ever read from: no call here changes a GPU. One thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "solstice/v1/host.pb.h"

namespace solstice::device::cuda {

// Words for NVML's clock event ("throttle") reasons, a bit mask, by falling weight. What does not slow kernels down
// below the clocks that were asked for (idle, a display's own clock) has none; bits unknown here show by number.
std::vector<std::string> ThrottleWords(uint64_t mask);

class Nvml {
 public:
  // `library`: a path, or empty for the loader's own search. FAILED_PRECONDITION: it is missing or does not start.
  static StatusOr<std::unique_ptr<Nvml>> Open(const std::string& library = "");
  virtual ~Nvml() = default;
  // "580.159.04", or "" where NVML does not tell.
  virtual std::string DriverVersion() const = 0;
  // Fills what NVML tells of the GPU that has `gpu->uuid` or, if it knows that not, `gpu->pci`. What it does not tell
  // stays unknown (host.proto); NOT_FOUND when it knows no such GPU.
  virtual Status Describe(v1::GpuProbe* gpu) const = 0;
};

}  // namespace solstice::device::cuda
