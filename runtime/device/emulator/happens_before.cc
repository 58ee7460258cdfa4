#include "runtime/device/emulator/happens_before.h"

#include <algorithm>

namespace solstice::device {
namespace {

// Places of shared memory that threads synchronise through; beyond them orders are missed, which finds too much. No
// kernel has so many.
constexpr size_t kMostPublished = 1 << 16;

}  // namespace

HappensBefore::HappensBefore(size_t warps) : warps_(std::min<size_t>(warps, kMostWarps)) { Start(); }

void HappensBefore::Start() {
  for (WarpState& w : warps_) {
    w = WarpState();
    w.clock.fill(1);
  }
  for (Epochs& epochs : arrived_) epochs.fill(0);
  published_.clear();
}

void HappensBefore::Join(Epochs* to, const Epochs& from) {
  for (int i = 0; i < kMostWarps; ++i) (*to)[i] = std::max((*to)[i], from[i]);
}

HappensBefore::Moment HappensBefore::Now(int warp, int lane) const {
  const WarpState& w = warps_[warp];
  return {static_cast<uint16_t>(warp * kLanes + lane), w.epoch, w.clock[lane]};
}

bool HappensBefore::Ordered(const Moment& earlier, int warp, int lane) const {
  const WarpState& w = warps_[warp];
  const int other = earlier.thread / kLanes, other_lane = earlier.thread % kLanes;
  if (other != warp) return earlier.epoch <= w.known[other];
  return other_lane == lane || earlier.clock <= w.lane_known[lane][other_lane];
}

void HappensBefore::SyncWarp(int warp, uint32_t lanes) {
  WarpState& w = warps_[warp];
  std::array<uint32_t, kLanes> joined = {};
  for (uint32_t m = lanes; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    for (int j = 0; j < kLanes; ++j) joined[j] = std::max(joined[j], w.lane_known[i][j]);
    joined[i] = std::max(joined[i], w.clock[i]);
  }
  for (uint32_t m = lanes; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    w.lane_known[i] = joined;
    ++w.clock[i];
  }
}

void HappensBefore::Arrive(int warp, int id) {
  WarpState& w = warps_[warp];
  Join(&arrived_[id], w.known);
  arrived_[id][warp] = std::max(arrived_[id][warp], w.epoch);
  ++w.epoch;
}

void HappensBefore::Complete(int id, const std::vector<std::pair<int, uint32_t>>& waiting) {
  Epochs joined = arrived_[id];
  arrived_[id].fill(0);
  for (const auto& [warp, lanes] : waiting) {
    WarpState& w = warps_[warp];
    Join(&joined, w.known);
    joined[warp] = std::max(joined[warp], w.epoch);
  }
  for (const auto& [warp, lanes] : waiting) {
    warps_[warp].known = joined;
    ++warps_[warp].epoch;
    SyncWarp(warp, lanes);
  }
}

void HappensBefore::Fence(int warp) {
  WarpState& w = warps_[warp];
  Join(&w.known, w.read);
  w.released = w.known;
  w.released[warp] = w.epoch;
  ++w.epoch;
}

void HappensBefore::Strong(int warp, uint64_t offset, bool reads, bool writes, bool acquire, bool release) {
  WarpState& w = warps_[warp];
  if (reads) {
    if (auto at = published_.find(offset); at != published_.end()) {
      Join(&w.read, at->second);
      if (acquire) Join(&w.known, at->second);
    }
  }
  if (!writes) return;
  Epochs published = w.released;
  if (release) {
    published = w.known;
    published[warp] = w.epoch;
    ++w.epoch;
  }
  if (published_.size() < kMostPublished || published_.count(offset) > 0) Join(&published_[offset], published);
}

}  // namespace solstice::device
