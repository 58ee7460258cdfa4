#include "runtime/device/emulator/buffer.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"

#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x0010
#endif

namespace solstice::device {

using base::StrCat;

// Tensors beyond it are not watched: a byte of host memory goes with each of theirs.
constexpr uint64_t kMostWatchedBytes = uint64_t{256} << 20;

class EmulatorBuffer : public Buffer {
 public:
  EmulatorBuffer(EmulatorMemory* memory, base::UniqueFd fd, Address address, uint8_t* host, int64_t bytes,
                 const Region* region, bool imported)
      : memory_(memory),
        fd_(std::move(fd)),
        address_(address),
        host_(host),
        bytes_(bytes),
        region_(region),
        imported_(imported) {}

  ~EmulatorBuffer() override {
    memory_->map_.Remove(region_);
    memory_->map_.Unreserve(address_, static_cast<uint64_t>(bytes_));
    memory_->mappings_.erase(address_);
    memory_->used_bytes_ -= bytes_;
    ::munmap(host_, static_cast<size_t>(bytes_));
  }

  Address address() const override { return address_; }
  int64_t bytes() const override { return bytes_; }

  StatusOr<base::UniqueFd> Export(Access access) const override {
    if (imported_) return base::FailedPrecondition("an imported buffer cannot be exported");
    if (access == Access::kReadWrite) {
      base::UniqueFd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
      if (!copy.valid()) return base::FromErrno(errno, "exporting a buffer");
      return copy;
    }
    // A read-only descriptor of a memory file can be opened again for writing by whoever holds it. The seal forbids
    // that for good; the mapping that this process already has stays writable.
    const int seals = ::fcntl(fd_.get(), F_GET_SEALS);
    if (seals < 0) return base::FromErrno(errno, "reading a buffer's seals");
    if ((seals & F_SEAL_FUTURE_WRITE) == 0 && ::fcntl(fd_.get(), F_ADD_SEALS, F_SEAL_FUTURE_WRITE) != 0) {
      return base::FromErrno(errno, "sealing a buffer");
    }
    base::UniqueFd reader(::open(StrCat("/proc/self/fd/", fd_.get()).c_str(), O_RDONLY | O_CLOEXEC));
    if (!reader.valid()) return base::FromErrno(errno, "reopening a buffer for reading");
    return reader;
  }

 private:
  EmulatorMemory* const memory_;
  const base::UniqueFd fd_;
  const Address address_;
  uint8_t* const host_;
  const int64_t bytes_;
  const Region* const region_;
  const bool imported_;
};

Status EmulatorMemory::CheckSize(int64_t bytes, int64_t granularity, const Extent& extent) const {
  if (bytes <= 0 || bytes % granularity != 0) {
    return base::InvalidArgument(StrCat("a mapping of ", bytes, " bytes"), StrCat("use a multiple of ", granularity));
  }
  if (extent.offset < 0 || extent.bytes < 0 || extent.bytes > bytes || extent.offset > bytes - extent.bytes) {
    return base::InvalidArgument(StrCat("tensor '", extent.name, "' at ", extent.offset, " with ", extent.bytes,
                                        " bytes does not lie in a mapping of ", bytes));
  }
  if (bytes > limit_bytes_ - used_bytes_) {
    return base::ResourceExhausted(
        StrCat("the emulator has ", limit_bytes_ - used_bytes_, " of ", limit_bytes_, " bytes left, not ", bytes),
        "use a smaller workload or give the emulator more memory");
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<Buffer>> EmulatorMemory::Allocate(int64_t bytes, int64_t granularity, const Extent& extent) {
  SOLSTICE_RETURN_IF_ERROR(CheckSize(bytes, granularity, extent));
  SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd fd, base::SizedMemfd("solstice-buffer", bytes));
  return Map(std::move(fd), bytes, false, false, extent);
}

StatusOr<std::unique_ptr<Buffer>> EmulatorMemory::Import(base::UniqueFd handle, int64_t bytes, int64_t granularity,
                                                         Access access, const Extent& extent) {
  SOLSTICE_RETURN_IF_ERROR(CheckSize(bytes, granularity, extent));
  struct stat info;
  if (::fstat(handle.get(), &info) != 0) return base::FromErrno(errno, "importing a buffer");
  const int seals = ::fcntl(handle.get(), F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) {
    return base::FailedPrecondition("the descriptor is not a memory file that is sealed against shrinking");
  }
  if (info.st_size < bytes) {
    return base::FailedPrecondition(StrCat("the memory file has ", info.st_size, " bytes, not ", bytes));
  }
  return Map(std::move(handle), bytes, access == Access::kReadOnly, true, extent);
}

StatusOr<std::unique_ptr<Buffer>> EmulatorMemory::Map(base::UniqueFd fd, int64_t bytes, bool read_only, bool imported,
                                                      const Extent& extent) {
  void* mapped = ::mmap(nullptr, static_cast<size_t>(bytes), read_only ? PROT_READ : PROT_READ | PROT_WRITE, MAP_SHARED,
                        fd.get(), 0);
  if (mapped == MAP_FAILED) return base::FromErrno(errno, StrCat("mapping ", bytes, " bytes"));
  uint8_t* host = static_cast<uint8_t*>(mapped);
  auto address = map_.Reserve(static_cast<uint64_t>(bytes));
  if (!address.ok()) {
    ::munmap(mapped, static_cast<size_t>(bytes));
    return address.status();
  }
  Region region;
  region.begin = *address + static_cast<uint64_t>(extent.offset);
  region.bytes = static_cast<uint64_t>(extent.bytes);
  region.host = host + extent.offset;
  region.read_only = read_only;
  region.name = extent.name.empty() ? StrCat("an unnamed ", extent.what) : StrCat(extent.what, " '", extent.name, "'");
  const Region* added = map_.Add(std::move(region));
  mappings_[*address] = Mapping{host, bytes, read_only, added, false, {}};
  used_bytes_ += bytes;
  return std::unique_ptr<Buffer>(new EmulatorBuffer(this, std::move(fd), *address, host, bytes, added, imported));
}

void EmulatorMemory::NoteWritten(Address address, size_t bytes) {
  auto after = mappings_.upper_bound(address);
  if (after == mappings_.begin()) return;
  Mapping& mapping = std::prev(after)->second;
  if (mapping.written_bytes.empty()) {
    mapping.written = true;
    return;
  }
  const uint64_t begin = mapping.region->begin, size = mapping.region->bytes;
  const uint64_t first = std::min(address > begin ? address - begin : 0, size);
  const uint64_t end = std::min(address + bytes > begin ? address + bytes - begin : 0, size);
  for (uint64_t i = first; i < end; ++i) mapping.written_bytes[i] = 1;
}

void EmulatorMemory::NoteUnwatched() {
  for (auto& [address, mapping] : mappings_) {
    if (mapping.read_only) continue;
    mapping.written = true;
    mapping.written_bytes.clear();
  }
}

std::vector<WrittenMap> EmulatorMemory::WrittenMaps() {
  std::vector<WrittenMap> maps;
  uint64_t left = kMostWatchedBytes;
  for (auto& [address, mapping] : mappings_) {
    const Region& region = *mapping.region;
    if (mapping.read_only || mapping.written || region.bytes == 0 || region.bytes > left) continue;
    left -= region.bytes;
    mapping.written_bytes.resize(region.bytes);
    maps.push_back({region.host, region.bytes, mapping.written_bytes.data(), region.begin, region.name});
  }
  std::sort(maps.begin(), maps.end(), [](const WrittenMap& a, const WrittenMap& b) { return a.host < b.host; });
  return maps;
}

StatusOr<uint8_t*> EmulatorMemory::Host(Address address, size_t bytes, bool write) const {
  auto after = mappings_.upper_bound(address);
  if (after != mappings_.begin()) {
    const auto& [begin, mapping] = *std::prev(after);
    const uint64_t offset = address - begin, size = static_cast<uint64_t>(mapping.bytes);
    if (offset <= size && bytes <= size - offset) {
      if (write && mapping.read_only) return base::FailedPrecondition("the mapping is read-only");
      return mapping.host + offset;
    }
  }
  return base::InvalidArgument(StrCat(bytes, " bytes at device address ", address, " do not lie in one mapping"));
}

}  // namespace solstice::device
