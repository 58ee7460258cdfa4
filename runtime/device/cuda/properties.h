// What a GPU is, by the driver. Thread-safe; no context is made.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::device::cuda {

struct Driver;

// "sm_90a": the architecture-specific variant where the compiler has one, "sm_86" otherwise.
std::string ArchName(int major, int minor);
// FAILED_PRECONDITION for an architecture that Solstice does not compile for. Older GPUs would need a compiler target,
// an emulator and references of their own; their results could not be ranked beside the others.
Status CheckDrivable(std::string_view name, std::string_view arch);

// Every field, of any GPU. Bytes, of the whole GPU or MIG instance.
StatusOr<v1::DeviceProperties> ReadProperties(const Driver& driver, int ordinal);
// The same of a GPU that Solstice drives; FAILED_PRECONDITION as CheckDrivable.
StatusOr<v1::DeviceProperties> QueryProperties(const Driver& driver, int ordinal);

// "GPU-8ac3...", or "MIG-..." of a MIG instance: as CUDA_VISIBLE_DEVICES takes it.
StatusOr<std::string> QueryUuid(const Driver& driver, int ordinal);
// "0000:00:06.0", as in /sys/bus/pci/devices.
StatusOr<std::string> QueryPci(const Driver& driver, int ordinal);

// 16 bytes as "8ac3...-....-....-....-............".
std::string UuidText(std::string_view bytes);

}  // namespace solstice::device::cuda
