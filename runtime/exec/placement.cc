#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/exec/exec.h"

namespace solstice::exec {
namespace {

using base::StrCat;
using device::Address;

// Guards are checked in pieces: a granule of device memory is 2 MiB, a large tensor's slack no more.
constexpr int64_t kPieceBytes = 4 << 20;
constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

std::string Bytes(int64_t count) { return StrCat(count, count == 1 ? " byte" : " bytes"); }

std::span<uint8_t> AsBytes(std::string& text) { return {reinterpret_cast<uint8_t*>(text.data()), text.size()}; }

}  // namespace

StatusOr<Placement> Place(int64_t bytes, int64_t granularity, int slack) {
  if (bytes < 0 || granularity <= 0 || granularity % kAlignment != 0 || slack < 0 || slack > kMaxSlack) {
    return base::InvalidArgument(StrCat("placement: ", bytes, " bytes, granularity ", granularity, ", slack ", slack));
  }
  if (bytes > kMaxTensorBytes) return base::ResourceExhausted(StrCat("placement: a tensor of ", bytes, " bytes"));
  // An empty tensor keeps an aligned granule, so that its address is inside its mapping.
  int64_t from_end = std::max(RoundUp(bytes, kAlignment), kAlignment) + kAlignment * slack;
  Placement placement;
  placement.bytes = bytes;
  placement.mapped_bytes = RoundUp(kLeadingGuardBytes + from_end, granularity);
  placement.offset = placement.mapped_bytes - from_end;
  return placement;
}

StatusOr<Placement> CheckPlacement(const v1::internal::BufferPlacement& buffer, int64_t granularity) {
  Placement placement;
  placement.bytes = buffer.bytes();
  placement.mapped_bytes = buffer.mapped_bytes();
  placement.offset = buffer.offset();
  const int64_t shift = buffer.debug_shift();
  bool fits = placement.bytes >= 0 && placement.mapped_bytes > 0 && placement.mapped_bytes % granularity == 0 &&
              placement.offset >= 0 && shift >= 0 && shift < kAlignment &&
              (placement.offset - shift) % kAlignment == 0 && placement.offset <= placement.mapped_bytes &&
              placement.bytes <= placement.mapped_bytes - placement.offset;
  if (!fits) {
    return base::InvalidArgument(StrCat("buffer ", base::Quote(buffer.name()), ": ", placement.bytes, " bytes at ",
                                        placement.offset, " do not fit a mapping of ", placement.mapped_bytes));
  }
  return placement;
}

std::string GuardDamage::Describe(const std::string& what) const {
  std::string text;
  if (after > 0) {
    text = StrCat(Bytes(after), " past the end of ", what, after == 1 ? " was" : " were", " written, the nearest ",
                  Bytes(nearest_after), " past it");
  }
  if (before > 0) {
    text += StrCat(text.empty() ? "" : "; ", Bytes(before), " before the start of ", what,
                   before == 1 ? " was" : " were", " written, the nearest ", Bytes(nearest_before), " before it");
  }
  return text;
}

Status FillGuards(device::Device& device, Address mapping, const Placement& placement, const GuardFill& fill,
                  uint64_t stream) {
  std::string guard(static_cast<size_t>(placement.offset), '\0');
  fill(2 * stream, guard.data(), placement.offset);
  if (!guard.empty()) SOLSTICE_RETURN_IF_ERROR(device.CopyIn(mapping, AsBytes(guard)));
  guard.assign(static_cast<size_t>(placement.mapped_bytes - placement.end()), '\0');
  fill(2 * stream + 1, guard.data(), static_cast<int64_t>(guard.size()));
  if (guard.empty()) return absl::OkStatus();
  return device.CopyIn(mapping + static_cast<Address>(placement.end()), AsBytes(guard));
}

StatusOr<GuardDamage> CheckGuards(device::Device& device, Address mapping, const Placement& placement,
                                  const GuardFill& fill, uint64_t stream) {
  GuardDamage damage;
  for (int side = 0; side < 2; ++side) {
    int64_t start = side == 0 ? 0 : placement.end();
    int64_t bytes = side == 0 ? placement.offset : placement.mapped_bytes - placement.end();
    if (bytes == 0) continue;
    std::string expected(static_cast<size_t>(bytes), '\0');
    fill(2 * stream + static_cast<uint64_t>(side), expected.data(), bytes);
    std::string actual;
    for (int64_t at = 0; at < bytes; at += kPieceBytes) {
      actual.resize(static_cast<size_t>(std::min(kPieceBytes, bytes - at)));
      SOLSTICE_RETURN_IF_ERROR(device.CopyOut(AsBytes(actual), mapping + static_cast<Address>(start + at)));
      if (expected.compare(static_cast<size_t>(at), actual.size(), actual) == 0) continue;
      for (size_t i = 0; i < actual.size(); ++i) {
        int64_t index = at + static_cast<int64_t>(i);
        if (actual[i] == expected[static_cast<size_t>(index)]) continue;
        if (side == 0) {
          ++damage.before;
          damage.nearest_before = bytes - index;
        } else if (damage.after++ == 0) {
          damage.nearest_after = index + 1;
        }
      }
    }
  }
  return damage;
}

}  // namespace solstice::exec
