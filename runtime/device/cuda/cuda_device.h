// A GPU behind the driver API: memory by virtual-memory handles, cubins loaded eagerly, one stream.
//
// After a fault, a timeout or a lost device the process's context is spoilt for good: end the process (by _exit, the
// driver may not come down in an orderly way).
#pragma once

#include <memory>
#include <string>

#include "runtime/device/device.h"

namespace solstice::device {

struct CudaOptions {
  int ordinal = 0;             // among the GPUs that CUDA_VISIBLE_DEVICES leaves visible
  std::string driver_library;  // empty: as the loader finds it
  std::string cupti_library;   // empty: no activity timer
  // Leads standard output and error into outcomes' device_output. For processes that print nothing themselves.
  bool capture_output = false;
};

// FAILED_PRECONDITION: no driver, too old a driver, no such GPU, or one that cannot share memory between processes.
StatusOr<std::unique_ptr<Device>> MakeCuda(const CudaOptions& options);

}  // namespace solstice::device
