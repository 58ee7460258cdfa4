// The devices that this build can drive.
#pragma once

#include <memory>

#include "runtime/device/device.h"
#include "runtime/worker/service.h"

namespace solstice::worker {

enum class DeviceUse {
  kJudge,
  kRunner,  // standard output and error become the device's
};

// From a worker's arguments: "--device=emulator", or "--device=cuda" with "--gpu=UUID" and "--cupti=FILE".
// FAILED_PRECONDITION when there is no such device here.
StatusOr<std::unique_ptr<device::Device>> OpenDevice(int argc, char** argv, DeviceUse use);
// "emulator"
std::string DeviceFlag(v1::DeviceKind kind);

// What a server must know of an opened device: timers, and the files that driving it takes.
void DescribeDevice(device::Device& device, v1::internal::Hello* hello);

}  // namespace solstice::worker
