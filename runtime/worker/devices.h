// The devices that this build can drive.
#pragma once

#include <memory>

#include "runtime/device/device.h"
#include "runtime/worker/service.h"

namespace solstice::worker {

// FAILED_PRECONDITION when there is no such device here.
StatusOr<std::unique_ptr<device::Device>> OpenDevice(v1::DeviceKind kind, int ordinal);
// From a worker's arguments: "--device=emulator" and "--ordinal=0".
StatusOr<std::unique_ptr<device::Device>> OpenDevice(int argc, char** argv);
// "emulator"
std::string DeviceFlag(v1::DeviceKind kind);

}  // namespace solstice::worker
