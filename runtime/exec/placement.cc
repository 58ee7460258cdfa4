#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/exec/exec.h"

namespace solstice::exec {
namespace {

using base::StrCat;

constexpr int64_t kMaxTensorBytes = int64_t{1} << 46;

int64_t RoundUp(int64_t value, int64_t multiple) { return (value + multiple - 1) / multiple * multiple; }

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

}  // namespace solstice::exec
