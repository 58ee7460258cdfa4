// The emulator: executes PTX on the CPU. No GPU, no driver, no latency.
#pragma once

#include <memory>

#include "runtime/device/device.h"

namespace solstice::device {

struct EmulatorOptions {
  int threads = 0;                                     // 0: as many as cores
  int64_t memory_bytes = int64_t{8} << 30;             // most bytes allocated or imported at once
  int64_t block_instruction_limit = int64_t{4} << 30;  // warp instructions of one block; beyond it TIMEOUT
  int64_t device_output_bytes = 64 << 10;
  int64_t local_bytes_per_thread = 512 << 10;  // stack and local memory; beyond it STACK_OVERFLOW
  // Without what only newer processors execute. The bits are the same; for tests of that.
  bool baseline_isa = false;
};

std::unique_ptr<Device> MakeEmulator(const EmulatorOptions& options = {});

// What it reports: sm_90a with an H200's limits.
v1::DeviceProperties EmulatorProperties();

}  // namespace solstice::device
