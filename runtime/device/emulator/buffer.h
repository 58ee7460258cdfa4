// Device memory of the emulator: memory files, shared with other processes. Internal to the emulator; one thread.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "runtime/base/unique_fd.h"
#include "runtime/device/device.h"
#include "runtime/device/emulator/memory_map.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {

class EmulatorMemory {
 public:
  explicit EmulatorMemory(int64_t limit_bytes) : limit_bytes_(limit_bytes) {}

  StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, int64_t granularity, const Extent& extent);
  // FAILED_PRECONDITION unless the descriptor is a memory file of at least `bytes` that cannot shrink.
  StatusOr<std::unique_ptr<Buffer>> Import(base::UniqueFd handle, int64_t bytes, int64_t granularity, Access access,
                                           const Extent& extent);
  // Host bytes of a range inside one mapping, extents ignored. OUT_OF_RANGE is INVALID_ARGUMENT here.
  StatusOr<uint8_t*> Host(Address address, size_t bytes, bool write) const;

  // Bytes that were written, by the host or by what the device ran unwatched: the tensor around them counts as written.
  void NoteWritten(Address address, size_t bytes);
  void NoteUnwatched();
  // Of every tensor that kernels may write to and nobody has: which bytes were written. Sorted by host address.
  std::vector<WrittenMap> WrittenMaps();

  MemoryMap* map() { return &map_; }
  const MemoryMap* map() const { return &map_; }

 private:
  friend class EmulatorBuffer;
  struct Mapping {
    uint8_t* host = nullptr;
    int64_t bytes = 0;
    bool read_only = false;
    const Region* region = nullptr;
    bool written = false;  // by someone who was not watched
    std::vector<uint8_t> written_bytes;
  };
  StatusOr<std::unique_ptr<Buffer>> Map(base::UniqueFd fd, int64_t bytes, bool read_only, bool imported,
                                        const Extent& extent);
  Status CheckSize(int64_t bytes, int64_t granularity, const Extent& extent) const;

  const int64_t limit_bytes_;
  int64_t used_bytes_ = 0;
  MemoryMap map_;
  std::map<Address, Mapping> mappings_;
};

}  // namespace solstice::device
