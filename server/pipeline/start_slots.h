// Brings up every device that a server drives, side by side.
#pragma once

#include <memory>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/sandbox/spawner.h"
#include "runtime/worker/worker.h"
#include "server/pipeline/compiler_pool.h"
#include "server/pipeline/device_slot.h"
#include "server/pipeline/pipeline.h"

namespace solstice::pipeline {

// One slot a device, in order; Solstice's own kernels are compiled for each GPU's target meanwhile. `spawner` and
// `pool` live longer. The first failure, once all have come up or failed.
StatusOr<std::vector<std::unique_ptr<DeviceSlot>>> StartDeviceSlots(sandbox::Spawner* spawner,
                                                                    const worker::Installation& installation,
                                                                    CompilerPool& pool, const v1::HostProbe& host,
                                                                    const std::vector<DeviceSpec>& devices);

}  // namespace solstice::pipeline
