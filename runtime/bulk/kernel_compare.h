// Comparisons by the trusted kernels. Internal to runtime/bulk.
#pragma once

#include <memory>
#include <vector>

#include "runtime/bulk/arena.h"
#include "runtime/bulk/bulk.h"
#include "runtime/bulk/kernels/parameters.h"
#include "runtime/verify/judge.h"

namespace solstice::bulk {

// Runs what is queued on the device. INTERNAL if trusted work did not end well.
Status RunQueued(device::Device* device);

// The kernels count; runtime/verify judges what they counted. What does not pass is compared again on the host, which
// finds the words. One thread, that of the device.
class KernelCompare {
 public:
  // All must live longer.
  KernelCompare(device::Device* device, const device::Module* module, Arena* arena)
      : device_(*device), module_(*module), arena_(*arena) {}

  // As Bulk::Compare.
  Status Queue(const v1::Tensor& tensor, const std::vector<int64_t>& shape, const v1::Tolerance& tolerance,
               device::Address actual, device::Address expected, verify::TensorComparison* comparison);
  // Writes the comparisons queued, after the arena was read.
  Status Finish();
  void Drop() { pending_.clear(); }

 private:
  struct Pending {
    v1::Tensor tensor;
    std::vector<int64_t> shape;
    v1::Tolerance tolerance;
    verify::Layout layout;
    CompareParameters parameters;
    int64_t place;
    verify::TensorComparison* comparison;
  };

  // True if the tally is all that is needed; false if the host must compare.
  StatusOr<bool> Judge(const Pending& pending);
  Status CountSlices(const Pending& pending, verify::Tally* tally);
  Status LocateFailures(const Pending& pending, verify::Tally* tally);
  StatusOr<verify::Failure> ReadAt(const Pending& pending, int64_t position);
  // Scratch of at least so many bytes; its content is undefined.
  StatusOr<device::Address> Scratch(int64_t bytes);

  device::Device& device_;
  const device::Module& module_;
  Arena& arena_;
  std::vector<Pending> pending_;
  std::unique_ptr<device::Buffer> scratch_;
};

}  // namespace solstice::bulk
