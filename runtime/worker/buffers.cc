#include "runtime/worker/buffers.h"

#include <fcntl.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>

#include "runtime/base/strings.h"

namespace solstice::worker {
namespace {

using base::StrCat;

// A server holds a descriptor a mapping, and has some 1000 in all.
constexpr size_t kMostFree = 160;

// Up to the next of four sizes an octave: at most a quarter is slack.
int64_t SizeClass(int64_t bytes, int64_t granularity) {
  const auto granules = static_cast<uint64_t>(bytes / granularity);
  const int drop = std::max(static_cast<int>(std::bit_width(granules)) - 3, 0);
  const uint64_t step = uint64_t{1} << drop;
  return static_cast<int64_t>((granules + step - 1) / step * step) * granularity;
}

}  // namespace

BufferPool::BufferPool(device::Device* device, bool shared, int64_t* next_handle)
    : device_(device), shared_(shared), keep_(device->properties().kind() != v1::EMULATOR), next_handle_(next_handle) {}

StatusOr<exec::Placement> BufferPool::Place(int64_t bytes, int slack) const {
  SOLSTICE_ASSIGN_OR_RETURN(exec::Placement placement, exec::Place(bytes, device_->granularity(), slack));
  if (!keep_) return placement;
  const int64_t more = SizeClass(placement.mapped_bytes, device_->granularity()) - placement.mapped_bytes;
  placement.mapped_bytes += more;
  placement.offset += more;
  return placement;
}

StatusOr<Mapping*> BufferPool::Take(int64_t mapped_bytes, device::Access access, const device::Extent& extent) {
  const bool read_only = access == device::Access::kReadOnly;
  for (auto at = mappings_.begin(); keep_ && at != mappings_.end(); ++at) {
    if (at->taken || at->read_only != read_only || at->buffer->bytes() != mapped_bytes) continue;
    at->taken = true;
    mappings_.splice(mappings_.end(), mappings_, at);
    return &mappings_.back();
  }
  auto made = Make(mapped_bytes, access, extent);
  if (absl::IsResourceExhausted(made.status()) && keep_) {
    DropFree(0, 0);
    made = Make(mapped_bytes, access, extent);
  }
  return made;
}

Mapping* BufferPool::TakeAgain(int64_t handle) {
  auto at = std::find_if(mappings_.begin(), mappings_.end(), [&](const Mapping& m) { return m.handle == handle; });
  if (at == mappings_.end() || at->taken) return nullptr;
  at->taken = true;
  mappings_.splice(mappings_.end(), mappings_, at);
  return &mappings_.back();
}

StatusOr<Mapping*> BufferPool::Make(int64_t mapped_bytes, device::Access access, const device::Extent& extent) {
  Mapping mapping;
  mapping.handle = (*next_handle_)++;
  SOLSTICE_ASSIGN_OR_RETURN(mapping.buffer, device_->Allocate(mapped_bytes, extent));
  if (shared_) {
    SOLSTICE_ASSIGN_OR_RETURN(mapping.descriptor, mapping.buffer->Export(access));
  }
  mapping.read_only = access == device::Access::kReadOnly;
  mapping.taken = true;
  mappings_.push_back(std::move(mapping));
  return &mappings_.back();
}

void BufferPool::GiveBack() {
  for (Mapping& mapping : mappings_) mapping.taken = false;
  DropFree(keep_ ? device_->properties().memory_bytes() / 8 : 0, keep_ ? kMostFree : 0);
}

void BufferPool::DropFree(int64_t bytes_to_keep, size_t mappings_to_keep) {
  int64_t bytes = 0;
  size_t count = 0;
  for (const Mapping& mapping : mappings_) {
    if (mapping.taken) continue;
    bytes += mapping.buffer->bytes();
    ++count;
  }
  for (auto at = mappings_.begin(); at != mappings_.end();) {
    if (at->taken || (bytes <= bytes_to_keep && count <= mappings_to_keep)) {
      ++at;
      continue;
    }
    bytes -= at->buffer->bytes();
    --count;
    if (at->described) dropped_.push_back(at->handle);
    at = mappings_.erase(at);
  }
}

std::vector<int64_t> BufferPool::TakeDropped() { return std::exchange(dropped_, {}); }

StatusOr<device::Buffer*> ReadOnlyView(device::Device& device, Mapping& mapping, const device::Extent& extent) {
  if (mapping.view == nullptr) {
    base::UniqueFd descriptor(::fcntl(mapping.descriptor.get(), F_DUPFD_CLOEXEC, 3));
    if (!descriptor.valid()) return base::FromErrno(errno, "duplicating a memory descriptor");
    SOLSTICE_ASSIGN_OR_RETURN(
        mapping.view, device.Import(std::move(descriptor), mapping.buffer->bytes(), device::Access::kReadOnly, extent));
  }
  return mapping.view.get();
}

// ---- Tensors -------------------------------------------------------------------------------------------------------

namespace {

std::string Bytes(int64_t count) { return StrCat(count, count == 1 ? " byte" : " bytes"); }

// The secret's other uses are numbered apart.
uint64_t GuardStream(const PlacedTensor& tensor, uint64_t side) { return 2 * tensor.stream + side; }
uint64_t PoisonStream(const PlacedTensor& tensor) { return ~tensor.stream; }

}  // namespace

device::Extent PlacedTensor::extent() const {
  return {name, placement.offset, placement.bytes, base::Lower(v1::internal::BufferRole_Name(role))};
}

std::string PlacedTensor::Name() const {
  return StrCat(base::Lower(v1::internal::BufferRole_Name(role)), " '", name, "'");
}

Status FillGuards(bulk::Bulk& bulk, uint64_t secret, const PlacedTensor& tensor) {
  const exec::Placement& placement = tensor.placement;
  const device::Address start = tensor.mapping->buffer->address();
  SOLSTICE_RETURN_IF_ERROR(bulk.FillRandom(secret, GuardStream(tensor, 0), start, placement.offset));
  return bulk.FillRandom(secret, GuardStream(tensor, 1), start + static_cast<device::Address>(placement.end()),
                         placement.mapped_bytes - placement.end());
}

Status FillPoison(bulk::Bulk& bulk, uint64_t secret, const PlacedTensor& tensor) {
  return bulk.FillRandom(secret, PoisonStream(tensor), tensor.address(), tensor.placement.bytes);
}

Status CheckGuards(bulk::Bulk& bulk, uint64_t secret, const PlacedTensor& tensor, GuardCheck* check) {
  const exec::Placement& placement = tensor.placement;
  const device::Address start = tensor.mapping->buffer->address();
  SOLSTICE_RETURN_IF_ERROR(bulk.CheckRandom(secret, GuardStream(tensor, 0), start, placement.offset, &check->before));
  return bulk.CheckRandom(secret, GuardStream(tensor, 1), start + static_cast<device::Address>(placement.end()),
                          placement.mapped_bytes - placement.end(), &check->after);
}

std::string DescribeDamage(const GuardCheck& check, const PlacedTensor& tensor) {
  std::string text;
  const std::string what = tensor.Name();
  if (check.after.bytes > 0) {
    text = StrCat(Bytes(check.after.bytes), " past the end of ", what, check.after.bytes == 1 ? " was" : " were",
                  " written, the nearest ", Bytes(check.after.first + 1), " past it");
  }
  if (check.before.bytes > 0) {
    text += StrCat(text.empty() ? "" : "; ", Bytes(check.before.bytes), " before the start of ", what,
                   check.before.bytes == 1 ? " was" : " were", " written, the nearest ",
                   Bytes(tensor.placement.offset - check.before.last), " before it");
  }
  return text;
}

Status CheckPoison(bulk::Bulk& bulk, uint64_t secret, const PlacedTensor& tensor, bulk::Damage* damage) {
  return bulk.CheckRandom(secret, PoisonStream(tensor), tensor.address(), tensor.placement.bytes, damage);
}

int64_t UntouchedByChance(int64_t bytes) {
  const double mean = static_cast<double>(bytes) / 256;
  return static_cast<int64_t>(mean + 8 * std::sqrt(mean) + 16);
}

}  // namespace solstice::worker
