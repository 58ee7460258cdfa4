// The synthetic address space of the emulator: which device address is which host byte, and what may touch it.
//
// Mappings stand in slots of 4 GiB with at least 2 GiB unmapped on either side, so that an overrun meets no neighbour.
// Changing the map is for one thread while nothing runs; finding is safe from many threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"

namespace solstice::device {

inline constexpr uint64_t kSharedWindow = 0x0000'0500'0000'0000;  // generic addresses of shared memory
inline constexpr uint64_t kLocalWindow = 0x0000'0501'0000'0000;   // of the thread's own local memory
inline constexpr uint64_t kParamWindow = 0x0000'0502'0000'0000;   // of kernel parameters
inline constexpr uint64_t kFunctionWindow = 0x0000'0503'0000'0000;
inline constexpr uint64_t kWindowBytes = 0x0000'0001'0000'0000;

// Bytes that a kernel may touch.
struct Region {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  uint8_t* host = nullptr;
  bool read_only = false;
  bool is_constant = false;  // .const
  std::string name;          // "output 'y'" or "variable 'table'"
};

class MemoryMap {
 public:
  MemoryMap();

  // Reserves address space for `bytes` and returns its first address. RESOURCE_EXHAUSTED.
  StatusOr<uint64_t> Reserve(uint64_t bytes);
  void Unreserve(uint64_t address, uint64_t bytes);

  // Regions do not overlap and lie in reserved space. The pointer is valid until Remove.
  const Region* Add(Region region);
  void Remove(const Region* region);

  // The region that holds `address`, or nullptr.
  const Region* Find(uint64_t address) const;
  // "4 bytes past the end of output 'y' (1028 bytes)", or what an unmapped address looks like.
  std::string DescribeNearest(uint64_t address, uint64_t access_bytes) const;

 private:
  static constexpr uint64_t kBase = 0x0000'7000'0000'0000;
  static constexpr int kSlotBits = 32;
  static constexpr int kSlots = 4096;
  static constexpr uint64_t kLead = uint64_t{2} << 30;

  std::vector<bool> used_;
  std::vector<std::vector<std::unique_ptr<Region>>> slots_;  // by slot; a large region stands in each of its slots
  std::vector<std::vector<const Region*>> index_;            // by slot, sorted by begin
};

}  // namespace solstice::device
