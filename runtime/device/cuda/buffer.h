// Memory of the GPU by handle: made, exported, imported and mapped. Used by the device's thread.
#pragma once

#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"

namespace solstice::device::cuda {

class CudaBuffer : public Buffer {
 public:
  // What follows the mapping is reserved and never mapped. RESOURCE_EXHAUSTED: the GPU's memory is used up.
  static StatusOr<std::unique_ptr<Buffer>> Allocate(const Driver* driver, CUdevice device, int64_t bytes,
                                                    int64_t granularity);
  // `access` binds the kernels of this process; its own host code could map the handle otherwise.
  static StatusOr<std::unique_ptr<Buffer>> Import(const Driver* driver, CUdevice device, base::UniqueFd descriptor,
                                                  int64_t bytes, int64_t granularity, Access access);
  ~CudaBuffer() override;

  Address address() const override { return address_; }
  int64_t bytes() const override { return bytes_; }
  StatusOr<base::UniqueFd> Export(Access access) const override;

 private:
  CudaBuffer(const Driver* driver, int64_t bytes) : driver_(driver), bytes_(bytes) {}
  Status Map(CUdevice device, int64_t granularity, Access access);

  const Driver* driver_;
  int64_t bytes_;
  CUmemGenericAllocationHandle handle_ = 0;
  bool owned_ = false;  // handle_ is to be released
  CUdeviceptr address_ = 0;
  int64_t reserved_bytes_ = 0;
  bool mapped_ = false;
};

// Of mappings on this device.
StatusOr<int64_t> Granularity(const Driver* driver, CUdevice device);

}  // namespace solstice::device::cuda
