// Loading a program, whichever way a device says that the program is at fault.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace solstice::worker {

// `module` is null exactly when `failure` says why the program cannot be loaded. Status: our failure.
struct Loaded {
  std::unique_ptr<device::Module> module;
  v1::internal::RunOutcome failure;
};
inline StatusOr<Loaded> LoadModule(device::Device& device, const v1::internal::LoadProgram& program) {
  Loaded loaded;
  auto module = device.Load(program, &loaded.failure);
  bool fault = loaded.failure.kind() != v1::internal::RunOutcome::OK &&
               loaded.failure.kind() != v1::internal::RunOutcome::KIND_UNSPECIFIED;
  if (fault) return loaded;
  if (!module.ok()) return module.status();
  loaded.module = *std::move(module);
  if (loaded.module == nullptr)
    return Status(absl::StatusCode::kInternal, "the device loaded nothing and gave no reason");
  return loaded;
}

}  // namespace solstice::worker
