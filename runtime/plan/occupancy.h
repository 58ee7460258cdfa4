// How many blocks of a kernel fit on one multiprocessor. Pure; thread-safe.
#pragma once

#include <cstdint>

#include "solstice/v1/evaluation.pb.h"

namespace solstice::plan {

// Registers one block takes as the hardware checks it at launch: whole warps, rounded up to the four sub-partitions.
int64_t RegistersPerBlock(const v1::Kernel& kernel, int64_t threads);

// Blocks per multiprocessor for compute capabilities 9.0 and 10.x, by NVIDIA's occupancy rules: registers in units of
// 256 a warp from four sub-partitions, shared memory in units of 128 bytes with 1 KiB reserved a block, 32 blocks. 0:
// not even one fits.
int64_t BlocksPerMultiprocessor(const v1::Kernel& kernel, int64_t threads, int64_t dynamic_shared_bytes,
                                const v1::DeviceProperties& device);

// The device's limit, or that of compute capability 9.0 where it reports none.
int64_t MaxThreadsPerBlock(const v1::DeviceProperties& device);
int64_t MaxSharedBytes(const v1::DeviceProperties& device);
int64_t MaxRegistersPerBlock(const v1::DeviceProperties& device);

}  // namespace solstice::plan
