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

  Moment Now(int warp, int lane) const;
  // Whether `earlier` is before all that this lane does from now on.
  bool Ordered(const Moment& earlier, int warp, int lane) const;

  // __syncwarp of these lanes.
  void SyncWarp(int warp, uint32_t lanes);
  // Barrier `id`: a warp that arrives without waiting; then the warps (lanes of each) that it lets go on.
  void Arrive(int warp, int id);
  void Complete(int id, const std::vector<std::pair<int, uint32_t>>& waiting);
  // A fence, and an access that other threads may synchronise with, of shared memory at `offset`.
  void Fence(int warp);
  void Strong(int warp, uint64_t offset, bool reads, bool writes, bool acquire, bool release);

 private:
  struct WarpState {
    uint32_t epoch = 1;
    Epochs known = {};     // of warp v: what it did up to this epoch is before
    Epochs released = {};  // `known` at the last fence: what a strong write publishes
    Epochs read = {};      // what strong reads have seen; a fence makes it known
    std::array<uint32_t, kLanes> clock = {};
    std::array<std::array<uint32_t, kLanes>, kLanes> lane_known = {};
  };
  static void Join(Epochs* to, const Epochs& from);

  std::vector<WarpState> warps_;
  std::array<Epochs, kBarriers> arrived_ = {};
  std::map<uint64_t, Epochs> published_;  // by offset
};

}  // namespace solstice::device
