// Runs one block: its warps in turn, the groups of a warp by lowest place first.
#include <algorithm>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/launch.h"

namespace solstice::device {
namespace {

using base::StrCat;
using v1::internal::Fault;
using v1::internal::RunOutcome;

const Op* const kNever = reinterpret_cast<const Op*>(UINTPTR_MAX);
constexpr uint64_t kClockEvery = 32;  // turns between looks at the clock

void Execute(Warp& w) {
  uint64_t threads = 0;
  while (w.pc < w.stop) {
    const Op& op = *w.pc++;
    threads += w.active;
    ++w.executed;
    if (op.guard == kNoOperand) {
      op.fn(w, op);
      continue;
    }
    const uint32_t whole = w.mask;
    const uint32_t predicate = w.Pred(op.guard);
    const uint32_t mask = whole & (op.guard_negated ? ~predicate : predicate);
    if (mask == 0) continue;
    w.mask = mask;
    op.fn(w, op);
    w.mask = whole;
  }
  w.thread_executed += threads;
}

void Park(Warp& w) {
  if (w.mask == 0) return;
  Group group;
  group.mask = w.mask;
  group.pc = w.pc;
  group.frame = w.frame;
  group.stamp = ++w.stamp;
  w.groups.push_back(group);
  SetMask(w, 0);
}

void MergeGroups(Warp& w) {
  for (size_t i = 0; i < w.groups.size(); ++i) {
    if (w.groups[i].wait != Wait::kRunnable) continue;
    for (size_t j = w.groups.size() - 1; j > i; --j) {
      const Group& other = w.groups[j];
      if (other.wait != Wait::kRunnable || other.pc != w.groups[i].pc || other.frame != w.groups[i].frame) continue;
      w.groups[i].mask |= other.mask;
      w.groups[i].stamp = std::max(w.groups[i].stamp, other.stamp);
      w.groups.erase(w.groups.begin() + static_cast<ptrdiff_t>(j));
    }
  }
}

// Lanes that ended may have been all that a warp operation waited for: lets it run again.
bool WakeWarpWaiters(Warp& w) {
  for (Group& group : w.groups) {
    if (group.wait != Wait::kWarp) continue;
    const uint32_t needed = group.members & w.live;
    uint32_t here = 0;
    for (const Group& other : w.groups) {
      if (other.wait == Wait::kWarp && other.pc->fn == group.pc->fn && (other.members & w.live) == needed) {
        here |= other.mask;
      }
    }
    if ((here & needed) != needed) continue;
    group.wait = Wait::kRunnable;
    return true;
  }
  return false;
}

void WakeSleepers(Warp& w) {
  const uint64_t now = w.block->launch->run->clock.NowNs();
  for (Group& group : w.groups) {
    if (group.wait != Wait::kSleep || group.wake_ns > now) continue;
    group.wait = Wait::kRunnable;
    --w.sleepers;
  }
}

// Makes the best runnable group the running one: deepest call first, then the lowest place; after a slice ended, the
// one that has waited longest.
bool Pick(Warp& w) {
  if (w.sleepers > 0) WakeSleepers(w);
  if (w.groups.size() > 1) MergeGroups(w);
  Group* best = nullptr;
  for (Group& group : w.groups) {
    if (group.wait != Wait::kRunnable) continue;
    if (best == nullptr) {
      best = &group;
    } else if (w.yielded) {
      if (group.stamp < best->stamp) best = &group;
    } else if (group.frame->depth != best->frame->depth) {
      if (group.frame->depth > best->frame->depth) best = &group;
    } else if (group.pc < best->pc) {
      best = &group;
    }
  }
  if (best == nullptr) return WakeWarpWaiters(w) && Pick(w);
  const Group chosen = *best;
  w.groups.erase(w.groups.begin() + (best - w.groups.data()));
  w.yielded = false;
  w.pc = chosen.pc;
  EnterFrame(w, chosen.frame);
  SetMask(w, chosen.mask);
  w.stop = kNever;
  for (const Group& group : w.groups) {
    if (group.wait == Wait::kRunnable && group.frame == w.frame && group.pc > w.pc) w.stop = std::min(w.stop, group.pc);
  }
  return true;
}

// Runs until the warp ends, waits or has used its slice. False: nothing to run.
bool RunWarp(Warp& w) {
  if (!Pick(w)) return false;
  w.slice_end = w.executed + w.block->slice;
  for (;;) {
    Execute(w);
    if (w.block->failed) return true;
    Park(w);
    if (w.yielded) return true;
    if (!Pick(w)) return true;
  }
}

std::string Where(const Block& block) {
  for (const Warp& w : block.warps) {
    for (const Group& group : w.groups) {
      return StrCat("block (", block.index[0], ",", block.index[1], ",", block.index[2], ") at ",
                    PlaceOf(*block.program, *group.pc));
    }
  }
  return StrCat("block (", block.index[0], ",", block.index[1], ",", block.index[2], ")");
}

void Deadlock(Block& block) {
  for (Warp& w : block.warps) {
    for (const Group& group : w.groups) {
      const int lane = __builtin_ctz(group.mask);
      std::string what =
          group.wait == Wait::kWarp
              ? StrCat("waits for lanes that never arrive (member mask ", group.members, ")")
              : StrCat("waits at barrier ", group.barrier, ", where ", block.barriers[group.barrier].waiting, " of ",
                       block.live_threads, " threads have arrived and no other can");
      RaiseFault(w, *group.pc, Fault::BARRIER, lane, 0, what);
      return;
    }
  }
  RaiseOutcome(block.warps[0], RunOutcome::FAULT, StrCat(block.program->entry, ": ", Where(block), " cannot go on"));
}

uint64_t FirstWake(const Block& block) {
  uint64_t first = UINT64_MAX;
  for (const Warp& w : block.warps) {
    for (const Group& group : w.groups) {
      if (group.wait == Wait::kSleep) first = std::min(first, group.wake_ns);
    }
  }
  return first;
}

bool CheckLimits(Block& block, bool look_at_clock) {
  Launch& launch = *block.launch;
  if (launch.stop.load(std::memory_order_relaxed)) {
    block.failed = true;  // someone else's outcome stands
    return false;
  }
  uint64_t executed = 0, threads = 0;
  for (const Warp& w : block.warps) {
    executed += w.executed;
    threads += w.thread_executed;
  }
  if (executed > static_cast<uint64_t>(launch.options->block_instruction_limit)) {
    RaiseOutcome(block.warps[0], RunOutcome::TIMEOUT,
                 StrCat(launch.program->entry, ": one block executed more than ",
                        launch.options->block_instruction_limit, " warp instructions; ", Where(block)));
    return false;
  }
  const double budget = launch.run->instruction_budget;
  const double total = static_cast<double>(launch.run->instructions + launch.executed.load() + threads);
  if (budget > 0 && total > budget) {
    RaiseOutcome(block.warps[0], RunOutcome::OVER_BUDGET,
                 StrCat(launch.program->entry, " executed more than the budget of ", budget, " thread instructions"));
    block.outcome.set_estimated_instructions(total);
    return false;
  }
  if (look_at_clock && launch.run->clock.TimedOut()) {
    RaiseOutcome(
        block.warps[0], RunOutcome::TIMEOUT,
        StrCat(launch.program->entry, " was still running after ", launch.run->timeout_s, " s; ", Where(block)));
    return false;
  }
  return true;
}

}  // namespace

void PrepareBlock(Block& block, Launch& launch) {
  block.launch = &launch;
  block.program = launch.program;
  block.memory = launch.memory;
  block.local_limit = launch.options->local_bytes_per_thread;
  block.region_cache.assign(launch.program->code.size(), nullptr);
  block.spare_frames.resize(launch.program->functions.size());
  const uint64_t shared_bytes =
      static_cast<uint64_t>(std::max(launch.program->static_shared_bytes, launch.program->dynamic_shared_offset) +
                            launch.dynamic_shared_bytes);
  block.shared_storage = std::make_unique<uint8_t[]>(shared_bytes + 64);
  uint8_t* base = block.shared_storage.get();
  base += (64 - reinterpret_cast<uintptr_t>(base) % 64) % 64;
  block.shared = Region{0, shared_bytes, base, false, false, "shared memory"};
  block.shared_window = block.shared;
  block.shared_window.begin = kSharedWindow;
  block.parameters =
      Region{kParamWindow, launch.parameters.size(), reinterpret_cast<uint8_t*>(launch.parameters.data()), true,
             false,        "the kernel's parameters"};
  const uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  block.warps.resize((threads + kLanes - 1) / kLanes);
  for (size_t i = 0; i < block.warps.size(); ++i) {
    Warp& w = block.warps[i];
    w.block = &block;
    w.index = static_cast<int>(i);
    w.bases[1] = const_cast<uint8_t*>(launch.program->constant_base);
    for (uint32_t lane = 0; lane < kLanes; ++lane) {
      const uint32_t thread = static_cast<uint32_t>(i) * kLanes + lane;
      if (thread >= threads) continue;
      w.existing |= uint32_t{1} << lane;
      w.tid[0][lane] = thread % launch.block[0];
      w.tid[1][lane] = thread / launch.block[0] % launch.block[1];
      w.tid[2][lane] = thread / launch.block[0] / launch.block[1];
    }
  }
  if (launch.run->findings != nullptr) {
    block.sanitizer = std::make_shared<Sanitizer>(block, launch.run->written);
  }
}

void StartBlock(Block& block, uint64_t number) {
  if (block.sanitizer != nullptr) block.sanitizer->Start();
  const Launch& launch = *block.launch;
  block.number = number;
  block.index[0] = static_cast<uint32_t>(number % launch.grid[0]);
  block.index[1] = static_cast<uint32_t>(number / launch.grid[0] % launch.grid[1]);
  block.index[2] = static_cast<uint32_t>(number / launch.grid[0] / launch.grid[1]);
  // Uninitialised shared memory reads as NaN.
  if (block.shared.bytes != 0) std::memset(block.shared.host, 0xff, block.shared.bytes);
  block.live_threads = launch.block[0] * launch.block[1] * launch.block[2];
  block.slept_ns = block.turns = 0;
  block.async_arrivals = 0;
  block.output.clear();
  block.output_left = launch.options->device_output_bytes;
  for (BarrierState& barrier : block.barriers) barrier = BarrierState();
  const FunctionCode& entry = block.program->functions[0];
  const Op* first = block.program->code.data() + entry.begin;
  for (Warp& w : block.warps) {
    w.executed = w.thread_executed = 0;
    w.groups.clear();
    w.live = w.existing;
    w.yielded = false;
    w.sleepers = 0;
    w.async.reset();
    SetMask(w, w.live);
    if (w.local_capacity > 0) std::memset(w.local, 0, static_cast<size_t>(w.local_capacity) * kLanes);
    Group group;
    group.mask = w.live;
    group.pc = first;
    group.frame = PushFrame(w, *first, entry, nullptr);
    if (group.frame == nullptr) return;
    SetMask(w, 0);
    w.groups.push_back(group);
  }
}

Turn RunTurn(Block& block) {
  if (block.failed) return Turn::kFailed;
  bool progress = false;
  for (Warp& w : block.warps) {
    if (w.live == 0 || !RunWarp(w)) continue;
    progress = true;
    if (block.failed || !CheckLimits(block, ++block.turns % kClockEvery == 0)) return Turn::kFailed;
  }
  if (block.live_threads == 0) return Turn::kDone;
  if (progress) return Turn::kMore;
  // Threads that ended may complete a barrier.
  bool woken = false;
  for (int id = 0; id < kBarriers; ++id) woken |= TryCompleteBarrier(block, id);
  if (woken) return Turn::kMore;
  block.wake_ns = FirstWake(block);
  if (block.wake_ns == UINT64_MAX) {
    Deadlock(block);
    return Turn::kFailed;
  }
  return CheckLimits(block, true) ? Turn::kAsleep : Turn::kFailed;
}

}  // namespace solstice::device
