#include "runtime/plan/occupancy.h"

#include <algorithm>

namespace solstice::plan {
namespace {

constexpr int64_t kWarp = 32;
constexpr int64_t kRegistersPerMultiprocessor = 65536;
constexpr int64_t kRegisterUnit = 256;
constexpr int64_t kSubPartitions = 4;
constexpr int64_t kSharedUnit = 128;
constexpr int64_t kReservedShared = 1024;
constexpr int64_t kBlocksPerMultiprocessor = 32;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }
int64_t OrDefault(int64_t value, int64_t otherwise) { return value > 0 ? value : otherwise; }
int64_t RegistersPerWarp(const v1::Kernel& kernel) {
  return RoundUp(int64_t{kernel.registers()} * kWarp, kRegisterUnit);
}

}  // namespace

int64_t MaxThreadsPerBlock(const v1::DeviceProperties& device) {
  return OrDefault(device.max_threads_per_block(), 1024);
}
int64_t MaxSharedBytes(const v1::DeviceProperties& device) { return OrDefault(device.max_shared_bytes(), 232448); }
int64_t MaxRegistersPerBlock(const v1::DeviceProperties& device) {
  return OrDefault(device.max_registers_per_block(), kRegistersPerMultiprocessor);
}

int64_t RegistersPerBlock(const v1::Kernel& kernel, int64_t threads) {
  return RegistersPerWarp(kernel) * RoundUp((threads + kWarp - 1) / kWarp, kSubPartitions);
}

int64_t BlocksPerMultiprocessor(const v1::Kernel& kernel, int64_t threads, int64_t dynamic_shared_bytes,
                                const v1::DeviceProperties& device) {
  int64_t max_threads = MaxThreadsPerBlock(device);
  if (kernel.max_threads() > 0) max_threads = std::min<int64_t>(max_threads, kernel.max_threads());
  if (threads < 1 || threads > max_threads || dynamic_shared_bytes < 0) return 0;
  int64_t shared = kernel.static_shared_bytes() + dynamic_shared_bytes;
  if (shared > MaxSharedBytes(device)) return 0;
  int64_t warps = (threads + kWarp - 1) / kWarp;

  int64_t blocks = kBlocksPerMultiprocessor;
  blocks = std::min(blocks, OrDefault(device.max_threads_per_sm(), 2048) / kWarp / warps);
  if (kernel.registers() > 0) {
    if (RegistersPerBlock(kernel, threads) > MaxRegistersPerBlock(device)) return 0;
    int64_t resident_warps = kRegistersPerMultiprocessor / kSubPartitions / RegistersPerWarp(kernel) * kSubPartitions;
    blocks = std::min(blocks, resident_warps / warps);
  }
  int64_t shared_per_block = RoundUp(shared + kReservedShared, kSharedUnit);
  return std::min(blocks, OrDefault(device.shared_bytes_per_sm(), 233472) / shared_per_block);
}

}  // namespace solstice::plan
