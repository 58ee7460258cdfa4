// Which accesses of a block's threads are ordered: clocks that barriers, __syncwarp, and fences with atomics move on.
//
// Between warps a clock counts a warp's barriers and fences (its epoch); what a warp knows of the others holds for all
// its lanes. Within a warp each lane has a clock, which __syncwarp and barriers move on. One block, one host thread.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "runtime/device/emulator/warp.h"

namespace solstice::device {

class HappensBefore {
 public:
  static constexpr int kMostWarps = 32;
  using Epochs = std::array<uint32_t, kMostWarps>;

  // When a thread did something.
  struct Moment {
    uint16_t thread = 0;  // of the block
    uint32_t epoch = 0;   // its warp's
    uint32_t clock = 0;   // its own
  };

  explicit HappensBefore(size_t warps);
  void Start();

  Moment Now(int warp, int lane) const {
    const WarpState& w = warps_[warp];
    return {static_cast<uint16_t>(warp * kLanes + lane), w.epoch, w.clock[lane]};
  }
  // Whether `earlier` is before all that this lane does from now on.
  bool Ordered(const Moment& earlier, int warp, int lane) const {
    const WarpState& w = warps_[warp];
    const uint32_t other = earlier.thread / uint32_t{kLanes}, other_lane = earlier.thread % uint32_t{kLanes};
    if (other != static_cast<uint32_t>(warp)) return earlier.epoch <= w.known[other];
    return other_lane == static_cast<uint32_t>(lane) || earlier.clock <= w.lane_known[lane][other_lane];
  }

  // __syncwarp of these lanes.
  void SyncWarp(int warp, uint32_t lanes);
  // Barrier `id`: a warp that arrives without waiting; then the warps (lanes of each) that it lets go on.
  void Arrive(int warp, int id);
  void Complete(int id, const std::vector<std::pair<int, uint32_t>>& waiting);
  // A fence, and an access that other threads may synchronise with, of shared memory at `offset`.
  void Fence(int warp);
  void Strong(int warp, uint64_t offset, bool reads, bool writes, bool acquire, bool release);
  // An mbarrier at `offset`: made anew; a lane that arrives, `completes`: as the last of the phase; one that saw the
  // end of a phase.
  void MbarrierMade(uint64_t offset) { mbarriers_.erase(offset); }
  void MbarrierArrive(int warp, int lane, uint64_t offset, bool completes);
  void MbarrierPassed(int warp, int lane, uint64_t offset);

 private:
  using Clocks = std::array<uint32_t, kLanes>;
  struct WarpState {
    uint32_t epoch = 1;
    Epochs known = {};     // of warp v: what it did up to this epoch is before
    Epochs released = {};  // `known` at the last fence: what a strong write publishes
    Epochs read = {};      // what strong reads have seen; a fence makes it known
    Clocks clock = {};
    std::array<Clocks, kLanes> lane_known = {};
  };
  // What those who arrive at an mbarrier know: of the warps, and within each warp.
  struct Arrivals {
    Epochs known = {};
    std::map<int, Clocks> lanes;
  };
  struct MbarrierState {
    Arrivals arriving, completed;
  };
  template <typename Array>
  static void Join(Array* to, const Array& from);

  std::vector<WarpState> warps_;
  std::array<Epochs, kBarriers> arrived_ = {};
  std::map<uint64_t, Epochs> published_;         // by offset
  std::map<uint64_t, MbarrierState> mbarriers_;  // by offset
};

}  // namespace solstice::device
