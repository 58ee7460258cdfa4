// A cubin in the GPU, its kernels looked up once. Used by the device's thread.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/device/cuda/driver.h"
#include "runtime/device/device.h"

namespace solstice::device::cuda {

struct CudaKernel {
  CUfunction function = nullptr;
  std::vector<size_t> parameter_bytes;
  mutable int64_t dynamic_shared_bytes = 0;  // what it may ask for so far
};

class CudaModule : public Module {
 public:
  // Null and an outcome for what the submission is to blame for.
  static StatusOr<std::unique_ptr<Module>> Load(const Driver* driver, const v1::internal::LoadProgram& program,
                                                v1::internal::RunOutcome* outcome);
  ~CudaModule() override;
  // Null if there is no such kernel.
  const CudaKernel* Find(const std::string& entry) const;
  std::vector<std::string> Entries() const;

 private:
  explicit CudaModule(const Driver* driver) : driver_(driver) {}
  Status Add(const std::string& entry);

  const Driver* driver_;
  CUmodule module_ = nullptr;
  std::map<std::string, CudaKernel> kernels_;
};

}  // namespace solstice::device::cuda
