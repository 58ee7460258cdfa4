#include "runtime/device/emulator/memory_map.h"

#include <algorithm>

#include "runtime/base/strings.h"

namespace solstice::device {

using base::StrCat;

MemoryMap::MemoryMap() : used_(kSlots), slots_(kSlots), index_(kSlots) {}

StatusOr<uint64_t> MemoryMap::Reserve(uint64_t bytes) {
  if (bytes > (uint64_t{kSlots} << kSlotBits) / 2) return base::ResourceExhausted("mapping larger than address space");
  const int needed = static_cast<int>((bytes + 2 * kLead + (uint64_t{1} << kSlotBits) - 1) >> kSlotBits);
  int run = 0;
  for (int slot = 0; slot < kSlots; ++slot) {
    run = used_[slot] ? 0 : run + 1;
    if (run < needed) continue;
    const int first = slot - needed + 1;
    for (int i = first; i <= slot; ++i) used_[i] = true;
    return kBase + (static_cast<uint64_t>(first) << kSlotBits) + kLead;
  }
  return base::ResourceExhausted("too many device mappings", "release buffers first");
}

void MemoryMap::Unreserve(uint64_t address, uint64_t bytes) {
  const int first = static_cast<int>((address - kBase) >> kSlotBits);
  const int needed = static_cast<int>((bytes + 2 * kLead + (uint64_t{1} << kSlotBits) - 1) >> kSlotBits);
  for (int i = first; i < first + needed && i < kSlots; ++i) used_[i] = false;
}

const Region* MemoryMap::Add(Region region) {
  auto owned = std::make_unique<Region>(std::move(region));
  const Region* result = owned.get();
  const int first = static_cast<int>((result->begin - kBase) >> kSlotBits);
  const uint64_t last_byte = result->begin + (result->bytes ? result->bytes - 1 : 0);
  const int last = static_cast<int>((last_byte - kBase) >> kSlotBits);
  for (int slot = first; slot <= last && slot < kSlots; ++slot) {
    auto& list = index_[slot];
    auto less = [](const Region* a, const Region* b) { return a->begin < b->begin; };
    list.insert(std::upper_bound(list.begin(), list.end(), result, less), result);
  }
  slots_[first].push_back(std::move(owned));
  return result;
}

void MemoryMap::Remove(const Region* region) {
  if (region == nullptr) return;
  const int first = static_cast<int>((region->begin - kBase) >> kSlotBits);
  const uint64_t last_byte = region->begin + (region->bytes ? region->bytes - 1 : 0);
  const int last = static_cast<int>((last_byte - kBase) >> kSlotBits);
  for (int slot = first; slot <= last && slot < kSlots; ++slot) {
    auto& list = index_[slot];
    // From the back: modules take their many variables away last first.
    const auto at = std::find(list.rbegin(), list.rend(), region);
    if (at != list.rend()) list.erase(std::next(at).base());
  }
  auto& owners = slots_[first];
  const auto owner = std::find_if(owners.rbegin(), owners.rend(), [&](const auto& r) { return r.get() == region; });
  if (owner != owners.rend()) owners.erase(std::next(owner).base());
}

const Region* MemoryMap::Find(uint64_t address) const {
  const uint64_t slot = (address - kBase) >> kSlotBits;
  if (address < kBase || slot >= kSlots) return nullptr;
  const auto& list = index_[slot];
  auto after = std::upper_bound(list.begin(), list.end(), address,
                                [](uint64_t value, const Region* region) { return value < region->begin; });
  if (after == list.begin()) return nullptr;
  const Region* region = *(after - 1);
  return address - region->begin < region->bytes ? region : nullptr;
}

std::string MemoryMap::DescribeNearest(uint64_t address, uint64_t access_bytes) const {
  if (address < 65536) return address == 0 ? "a null pointer" : StrCat("a null pointer plus ", address, " bytes");
  const Region* nearest = nullptr;
  uint64_t distance = ~uint64_t{0};
  bool below = false;
  for (const auto& owners : slots_) {
    for (const auto& region : owners) {
      const uint64_t end = region->begin + region->bytes;
      uint64_t d;
      bool is_below = address < region->begin;
      if (is_below) {
        d = region->begin - address;
      } else {
        d = address >= end ? address - end : 0;
      }
      if (d < distance) {
        distance = d;
        nearest = region.get();
        below = is_below;
      }
    }
  }
  if (nearest == nullptr || distance > (uint64_t{4} << 30)) return "no buffer is near it";
  const std::string what = StrCat(nearest->name, " (", nearest->bytes, " bytes)");
  if (below) return StrCat(distance, distance == 1 ? " byte" : " bytes", " before the start of ", what);
  const uint64_t end = nearest->begin + nearest->bytes;
  if (address >= end) {
    // The distance of the first byte outside it: an access at the very end is 0 bytes past it.
    return distance == 0 ? StrCat("just past the end of ", what)
                         : StrCat(distance, distance == 1 ? " byte" : " bytes", " past the end of ", what);
  }
  return StrCat(address + access_bytes - end, " of its ", access_bytes, " bytes lie past the end of ", what);
}

}  // namespace solstice::device
