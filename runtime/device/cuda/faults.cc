#include "runtime/device/cuda/faults.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/device/cuda/driver.h"

namespace solstice::device::cuda {
namespace {

using base::StrCat;
using v1::internal::Fault;
using v1::internal::RunOutcome;

struct Meaning {
  Fault::Kind kind;
  const char* words;
};

Meaning MeaningOf(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ILLEGAL_ADDRESS:
      return {Fault::OUT_OF_BOUNDS, "accessed memory outside its buffers, or wrote to an input"};
    case CUDA_ERROR_MISALIGNED_ADDRESS:
      return {Fault::MISALIGNED, "made a misaligned access"};
    case CUDA_ERROR_INVALID_ADDRESS_SPACE:
      return {Fault::OUT_OF_BOUNDS, "accessed an address of another memory space"};
    case CUDA_ERROR_ILLEGAL_INSTRUCTION:
      return {Fault::TRAP, "met an illegal instruction"};
    case CUDA_ERROR_ASSERT:
      return {Fault::ASSERT, "failed an assert()"};
    case CUDA_ERROR_HARDWARE_STACK_ERROR:
      return {Fault::STACK_OVERFLOW, "damaged or overran its stack"};
    case CUDA_ERROR_INVALID_PC:
      return {Fault::OTHER, "jumped to an invalid address"};
    case CUDA_ERROR_LAUNCH_FAILED:
      return {Fault::TRAP, "was stopped by the GPU: a trap, or an access that no memory answers"};
    case CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES:
      return {Fault::INVALID_LAUNCH, "asks for more registers or shared memory than a block can have"};
    case CUDA_ERROR_TENSOR_MEMORY_LEAK:
      return {Fault::OTHER, "ended without giving back its tensor memory"};
    default:
      return {Fault::OTHER, "failed"};
  }
}

std::string Subject(const std::vector<std::string>& kernels) {
  std::vector<std::string> distinct;
  for (const std::string& kernel : kernels) {
    if (std::find(distinct.begin(), distinct.end(), kernel) == distinct.end()) distinct.push_back(kernel);
  }
  if (distinct.empty()) return "the plan";
  if (distinct.size() == 1) return StrCat("kernel ", distinct[0]);
  return StrCat("one of the kernels ", base::Join(distinct, ", "));
}

RunOutcome Failure(const std::string& subject, const std::string& kernel, CUresult result) {
  const Meaning meaning = MeaningOf(result);
  RunOutcome outcome;
  outcome.set_kind(RunOutcome::FAULT);
  Fault* fault = outcome.mutable_fault();
  fault->set_kind(meaning.kind);
  fault->set_message(StrCat(subject, " ", meaning.words, " (", ErrorName(result), ")"));
  fault->set_kernel(kernel);
  outcome.set_reason(fault->message());
  return outcome;
}

}  // namespace

RunOutcome OutcomeOf(CUresult result, const std::vector<std::string>& kernels) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    RunOutcome outcome;
    outcome.set_kind(RunOutcome::OUT_OF_MEMORY);
    outcome.set_reason(
        StrCat(Subject(kernels), " needs more device memory than there is, for its threads' local memory"));
    return outcome;
  }
  const bool one = !kernels.empty() && std::all_of(kernels.begin(), kernels.end(),
                                                   [&](const std::string& kernel) { return kernel == kernels[0]; });
  return Failure(Subject(kernels), one ? kernels[0] : "", result);
}

RunOutcome RefusedLaunch(CUresult result, const std::string& kernel) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return OutcomeOf(result, {kernel});
  RunOutcome outcome = Failure(StrCat("kernel ", kernel), kernel, result);
  outcome.mutable_fault()->set_kind(Fault::INVALID_LAUNCH);
  outcome.mutable_fault()->set_message(StrCat("kernel ", kernel, " cannot be launched: ",
                                              result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES
                                                  ? "it asks for more registers or shared memory than a block can have"
                                                  : "the driver refuses its grid, block or shared memory",
                                              " (", ErrorName(result), ")"));
  outcome.set_reason(outcome.fault().message());
  return outcome;
}

}  // namespace solstice::device::cuda
