#include "runtime/device/cuda/module.h"

#include "runtime/base/strings.h"

namespace solstice::device::cuda {

using base::StrCat;
using v1::internal::RunOutcome;

StatusOr<std::unique_ptr<Module>> CudaModule::Load(const Driver* driver, const v1::internal::LoadProgram& program,
                                                   RunOutcome* outcome) {
  outcome->Clear();
  if (program.cubin().empty()) return base::InvalidArgument("the program has no cubin");
  std::unique_ptr<CudaModule> module(new CudaModule(driver));
  CUresult result = driver->cuModuleLoadData_(&module->module_, program.cubin().data());
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    outcome->set_kind(RunOutcome::OUT_OF_MEMORY);
    outcome->set_reason("the program's variables do not fit in the GPU's memory");
    return std::unique_ptr<Module>();
  }
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
    outcome->set_kind(RunOutcome::NEEDS_DEVICE);
    outcome->set_reason("the program was compiled for another kind of GPU");
    return std::unique_ptr<Module>();
  }
  if (result != CUDA_SUCCESS) return CudaError("cuModuleLoadData", result);
  for (const v1::Kernel& kernel : program.kernels()) SOLSTICE_RETURN_IF_ERROR(module->Add(kernel.name()));
  outcome->set_kind(RunOutcome::OK);
  return std::unique_ptr<Module>(std::move(module));
}

Status CudaModule::Add(const std::string& entry) {
  CudaKernel kernel;
  SOLSTICE_CUDA_CALL(driver_, cuModuleGetFunction, &kernel.function, module_, entry.c_str());
  size_t offset = 0, bytes = 0;
  while (driver_->cuFuncGetParamInfo_(kernel.function, kernel.parameter_bytes.size(), &offset, &bytes) ==
         CUDA_SUCCESS) {
    kernel.parameter_bytes.push_back(bytes);
  }
  kernels_[entry] = std::move(kernel);
  return absl::OkStatus();
}

CudaModule::~CudaModule() {
  if (module_ != nullptr) driver_->cuModuleUnload_(module_);
}

const CudaKernel* CudaModule::Find(const std::string& entry) const {
  auto found = kernels_.find(entry);
  return found == kernels_.end() ? nullptr : &found->second;
}

std::vector<std::string> CudaModule::Entries() const {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : kernels_) names.push_back(name);
  return names;
}

}  // namespace solstice::device::cuda
