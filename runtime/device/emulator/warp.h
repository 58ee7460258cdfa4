// State of execution: frames, groups of lanes, warps, blocks. One block is run by one host thread.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/emulator/async.h"
#include "runtime/device/emulator/memory_map.h"
#include "runtime/device/emulator/program.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::device {

struct Block;
struct Launch;
class Sanitizer;

inline constexpr int kLanes = 32;
inline constexpr uint32_t kAllLanes = 0xffff'ffffu;

// One activation of a function by lanes that called it together.
struct Frame {
  const FunctionCode* function = nullptr;
  Frame* parent = nullptr;
  const Op* return_pc = nullptr;
  const Op* call = nullptr;
  uint8_t* registers = nullptr;  // 64-byte aligned
  std::unique_ptr<uint8_t[]> storage;
  uint32_t live = 0;       // lanes in it or in what it called
  int64_t local_base = 0;  // of its variables in the lanes' local memory
  int64_t local_top = 0;
  std::vector<int64_t> lane_tops;  // by lane, from the first alloca on; the highest is local_top
  int64_t charge = 0;              // bytes a lane of this frame and those below it: locals and registers
  int depth = 0;
};

enum class Wait : uint8_t { kRunnable, kWarp, kBarrier, kSleep };

// Lanes that are at the same place.
struct Group {
  uint32_t mask = 0;
  const Op* pc = nullptr;
  Frame* frame = nullptr;
  Wait wait = Wait::kRunnable;
  uint32_t members = 0;    // kWarp: lanes that must arrive
  int barrier = 0;         // kBarrier
  uint32_t predicate = 0;  // kBarrier with reduction: by lane
  uint64_t stamp = 0;      // when it last ran
  uint64_t wake_ns = 0;    // kSleep: on the launch's clock
};

struct Warp {
  // Of the running group.
  const Op* pc = nullptr;
  const Op* stop = nullptr;  // running goes on while pc < stop
  uint32_t mask = 0;
  uint32_t active = 0;  // lanes in mask
  uint8_t* bases[2] = {nullptr, nullptr};
  Frame* frame = nullptr;
  uint64_t executed = 0;         // warp instructions
  uint64_t thread_executed = 0;  // thread instructions
  uint64_t slice_end = 0;        // value of `executed` at which a backward branch hands over

  Block* block = nullptr;
  std::vector<Group> groups;   // the others, runnable and waiting
  uint32_t live = 0;           // lanes not exited
  uint32_t existing = 0;       // lanes that the block's shape gives this warp
  int index = 0;               // in the block
  bool yielded = false;        // at the end of its slice
  int sleepers = 0;            // groups that wait with kSleep
  uint64_t stamp = 0;          // counts choices of a group
  uint8_t* local = nullptr;    // lane-major
  int64_t local_capacity = 0;  // bytes a lane
  std::unique_ptr<uint8_t[]> local_storage;
  std::unique_ptr<AsyncLanes> async;  // from the first cp.async on
  alignas(64) uint32_t tid[3][kLanes] = {};

  template <typename T>
  __attribute__((always_inline)) const T* Src(uint32_t operand) const {
    return static_cast<const T*>(__builtin_assume_aligned(bases[operand >> 31] + (operand & ~kConstantBit), 64));
  }
  template <typename T>
  __attribute__((always_inline)) T* Dst(uint32_t operand) const {
    return static_cast<T*>(__builtin_assume_aligned(bases[0] + operand, 64));
  }
  __attribute__((always_inline)) uint32_t Pred(uint32_t operand) const {
    uint32_t value;
    __builtin_memcpy(&value, bases[operand >> 31] + (operand & ~kConstantBit), 4);
    return value;
  }
  __attribute__((always_inline)) void SetPred(uint32_t operand, uint32_t value) const {
    uint32_t old;
    __builtin_memcpy(&old, bases[0] + operand, 4);
    old = (old & ~mask) | (value & mask);
    __builtin_memcpy(bases[0] + operand, &old, 4);
  }
};

struct BarrierState {
  uint32_t expected = 0;  // 0: every thread of the block
  uint32_t waiting = 0;   // lanes that wait
  uint32_t arrived = 0;   // what counts against `expected`: whole warps as 32, arrivals without waiting included
};

inline constexpr int kBarriers = 16;

struct Block {
  Launch* launch = nullptr;
  const Program* program = nullptr;
  const MemoryMap* memory = nullptr;
  uint32_t index[3] = {0, 0, 0};
  uint64_t number = 0;
  std::vector<Warp> warps;
  Region shared;         // begin 0, host: this block's shared memory
  Region shared_window;  // the same bytes at kSharedWindow
  Region parameters;     // kParamWindow
  BarrierState barriers[kBarriers];
  std::vector<const Region*> region_cache;        // by operation
  std::vector<std::unique_ptr<Frame>> frames;     // all that were made
  std::vector<std::vector<Frame*>> spare_frames;  // by function
  std::unique_ptr<uint8_t[]> shared_storage;
  uint32_t live_threads = 0;
  uint32_t async_arrivals = 0;  // in the queues of its threads
  uint64_t slept_ns = 0;        // asked for by nanosleep, for its clock
  uint64_t wake_ns = 0;         // when the first sleeper wakes, if nothing else can run
  uint64_t slice = 0;           // warp instructions between turns of its warps
  uint64_t turns = 0;           // of warps, since the block started
  int64_t frame_bytes = 0;      // of `frames`
  std::string output;           // of printf
  int64_t output_left = 0;
  int64_t local_limit = 0;  // EmulatorOptions::local_bytes_per_thread
  bool failed = false;
  v1::internal::RunOutcome outcome;      // when failed
  std::shared_ptr<Sanitizer> sanitizer;  // null: nothing is looked for
};

// Stops the block with a fault of the program. `lane` is the faulting one.
void RaiseFault(Warp& warp, const Op& op, v1::internal::Fault::Kind kind, int lane, uint64_t address,
                const std::string& what);
// Stops the block with any other outcome.
void RaiseOutcome(Warp& warp, v1::internal::RunOutcome::Kind kind, const std::string& reason);

// "kernel.cu:12" or "PTX line 40".
std::string PlaceOf(const Program& program, const Op& op);

// Finds host bytes for the address of each active lane (already in `addresses`). On failure raises the fault and
// returns false. `host` of inactive lanes is undefined.
bool ResolveSlow(Warp& warp, const Op& op, const uint64_t* addresses, uint32_t bytes, bool write, uint8_t** host);

// Tells the block's sanitizer of an access by the active lanes (Sanitizer::Access).
void TellAccess(Warp& warp, const Op& op, uint8_t* const* host, uint32_t bytes, bool write, bool values);

struct LaneAccess {
  AddressSpace space;
  uint32_t bytes, alignment;
  bool write;
};
// The same as ResolveSlow for one lane; nullptr after the fault. `*last` is the region tried first, and the one found.
uint8_t* ResolveLane(Warp& warp, const Op& op, const LaneAccess& access, int lane, uint64_t address,
                     const Region** last);

// Frames. PushFrame returns nullptr after raising STACK_OVERFLOW; the new frame's lanes are the running group's.
Frame* PushFrame(Warp& warp, const Op& op, const FunctionCode& function, Frame* parent);
// Takes `lanes` out of `frame`, which is given back when it is empty.
void LeaveFrame(Warp& warp, Frame* frame, uint32_t lanes);
// Makes room for that many bytes of local memory a lane.
void GrowLocal(Warp& warp, int64_t bytes);
// Makes `frame` the one that registers are read from.
inline void EnterFrame(Warp& warp, Frame* frame) {
  warp.frame = frame;
  warp.bases[0] = frame->registers;
}

// Makes the groups that wait at barrier `id` runnable if it is complete.
bool TryCompleteBarrier(Block& block, int id);

// Sets mask and its count.
inline void SetMask(Warp& warp, uint32_t mask) {
  warp.mask = mask;
  warp.active = static_cast<uint32_t>(__builtin_popcount(mask));
}

}  // namespace solstice::device
