#include "runtime/bulk/arena.h"

#include <algorithm>
#include <span>

namespace solstice::bulk {

StatusOr<int64_t> Arena::Take() {
  const int64_t buffer = taken_ / kPlacesPerBuffer;
  constexpr int64_t kBytes = kPlacesPerBuffer * kPlaceBytes;
  if (buffer == static_cast<int64_t>(buffers_.size())) {
    const int64_t granularity = device_.granularity();
    const int64_t mapped = (kBytes + granularity - 1) / granularity * granularity;
    SOLSTICE_ASSIGN_OR_RETURN(auto made, device_.Allocate(mapped, {"results", 0, kBytes, "judge's"}));
    buffers_.push_back(std::move(made));
  }
  if (taken_ % kPlacesPerBuffer == 0) {
    SOLSTICE_RETURN_IF_ERROR(device_.EnqueueMemset(buffers_[buffer]->address(), 0, kBytes));
  }
  return taken_++;
}

device::Address Arena::AddressOf(int64_t place) const {
  return buffers_[place / kPlacesPerBuffer]->address() + static_cast<uint64_t>(place % kPlacesPerBuffer * kPlaceBytes);
}

Status Arena::Read() {
  contents_.resize(static_cast<size_t>(taken_ * kPlaceBytes));
  for (int64_t first = 0; first < taken_; first += kPlacesPerBuffer) {
    const int64_t places = std::min(kPlacesPerBuffer, taken_ - first);
    SOLSTICE_RETURN_IF_ERROR(device_.CopyOut(
        {reinterpret_cast<uint8_t*>(&contents_[first * kPlaceBytes]), static_cast<size_t>(places * kPlaceBytes)},
        AddressOf(first)));
  }
  return absl::OkStatus();
}

}  // namespace solstice::bulk
