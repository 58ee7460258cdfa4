// CUPTI's activity records: when the GPU began and ended each kernel, memset and copy. One recorder a process; used by
// the device's thread.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"

namespace solstice::device::cuda {

class Activity {
 public:
  virtual ~Activity() = default;
  // Opens the library and registers with it (17 ms). FAILED_PRECONDITION: it is not there, is too old, or another
  // profiler has the process.
  static StatusOr<std::unique_ptr<Activity>> Open(const std::string& library);

  virtual Status Start() = 0;
  // One span an operation of the stream, in the order in which they were enqueued since Start(). Call after the stream
  // is idle. DATA_LOSS unless there are exactly `expected` of them.
  virtual StatusOr<std::vector<Span>> Stop(int64_t expected) = 0;
};

}  // namespace solstice::device::cuda
