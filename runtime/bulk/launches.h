// Launches of the trusted kernels. Internal to runtime/bulk.
#pragma once

#include <algorithm>
#include <string>
#include <type_traits>

#include "runtime/bulk/kernels/parameters.h"
#include "runtime/device/device.h"

namespace solstice::bulk {

template <typename Value>
std::string ArgumentBytes(const Value& value) {
  static_assert(std::is_trivially_copyable_v<Value>);
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// Threads for `work` items, as many as the device runs at once and no more: kernels stride.
template <typename Parameters>
device::LaunchParameters MakeLaunch(const char* entry, const v1::DeviceProperties& properties, int64_t work,
                                    const Parameters& parameters) {
  constexpr int64_t kBlocksPerProcessor = 8;
  const int64_t most = std::max<int64_t>(properties.sm_count(), 1) * kBlocksPerProcessor;
  device::LaunchParameters launch;
  launch.entry = entry;
  launch.grid[0] = std::clamp<int64_t>((work + kThreads - 1) / kThreads, 1, most);
  launch.block[0] = kThreads;
  launch.arguments = {ArgumentBytes(parameters)};
  return launch;
}

}  // namespace solstice::bulk
