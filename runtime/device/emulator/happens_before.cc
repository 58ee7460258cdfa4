#include "runtime/device/emulator/happens_before.h"

#include <algorithm>
#include <utility>

namespace solstice::device {
namespace {

// Places of shared memory that threads synchronise through; beyond them orders are missed, which finds too much. No
// kernel has so many.
constexpr size_t kMostPublished = 1 << 16, kMostMbarriers = 1 << 10;

}  // namespace

HappensBefore::HappensBefore(size_t warps) : warps_(std::min<size_t>(warps, kMostWarps)) { Start(); }

void HappensBefore::Start() {
  for (WarpState& w : warps_) {
    w = WarpState();
    w.clock.fill(1);
  }
  for (Epochs& epochs : arrived_) epochs.fill(0);
  published_.clear();
  mbarriers_.clear();
}

template <typename Array>
void HappensBefore::Join(Array* to, const Array& from) {
  for (size_t i = 0; i < from.size(); ++i) (*to)[i] = std::max((*to)[i], from[i]);
}

void HappensBefore::SyncWarp(int warp, uint32_t lanes) {
  WarpState& w = warps_[warp];
  Clocks joined = {};
  for (uint32_t m = lanes; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    Join(&joined, w.lane_known[i]);
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

void HappensBefore::MbarrierArrive(int warp, int lane, uint64_t offset, bool completes) {
  if (mbarriers_.size() >= kMostMbarriers && mbarriers_.count(offset) == 0) return;
  WarpState& w = warps_[warp];
  MbarrierState& state = mbarriers_[offset];
  Join(&state.arriving.known, w.known);
  state.arriving.known[warp] = std::max(state.arriving.known[warp], w.epoch);
  Clocks& lanes = state.arriving.lanes[warp];
  Join(&lanes, w.lane_known[lane]);
  lanes[lane] = std::max(lanes[lane], w.clock[lane]);
  ++w.epoch;
  ++w.clock[lane];
  if (completes) state.completed = std::exchange(state.arriving, {});
}

void HappensBefore::MbarrierPassed(int warp, int lane, uint64_t offset) {
  const auto at = mbarriers_.find(offset);
  if (at == mbarriers_.end()) return;
  const Arrivals& completed = at->second.completed;
  WarpState& w = warps_[warp];
  Join(&w.known, completed.known);
  if (auto own = completed.lanes.find(warp); own != completed.lanes.end()) Join(&w.lane_known[lane], own->second);
}

}  // namespace solstice::device
