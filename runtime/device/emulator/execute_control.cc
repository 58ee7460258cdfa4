// Branches, calls and what ends a thread.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/launch.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

using v1::internal::Fault;
using v1::internal::RunOutcome;

constexpr uint32_t kMostSleepNs = 1'000'000;
constexpr int64_t kMostFrameBytes = int64_t{1} << 30;  // registers of one block
const Op* const kNever = reinterpret_cast<const Op*>(UINTPTR_MAX);

void CheckSlice(Warp& w) {
  if (w.executed < w.slice_end) return;
  w.yielded = true;
  w.stop = nullptr;
}

template <typename F>
void ForMask(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

}  // namespace

void ExecBranch(Warp& w, const Op& op) {
  w.pc = w.block->program->code.data() + op.target;
  if (w.pc <= &op) CheckSlice(w);
}

void ExecBranchIf(Warp& w, const Op& op) {
  const uint32_t predicate = w.Pred(op.a);
  const uint32_t taken = w.mask & (op.flags & 1 ? ~predicate : predicate);
  if (taken == 0) return;
  const Op* target = w.block->program->code.data() + op.target;
  if (taken == w.mask) {
    w.pc = target;
    if (target <= &op) CheckSlice(w);
    return;
  }
  Group other;
  other.mask = taken;
  other.pc = target;
  other.frame = w.frame;
  w.groups.push_back(other);
  SetMask(w, w.mask & ~taken);
  // The lower place runs first, so that the two meet again.
  if (target >= w.pc) {
    w.stop = std::min(w.stop, target);
  } else {
    w.stop = nullptr;
  }
  if (target <= &op) CheckSlice(w);
}

void ExecBranchIndex(Warp& w, const Op& op) {
  const std::vector<uint32_t>& targets = w.block->program->lists[op.target];
  const uint32_t* a = w.Src<uint32_t>(op.a);
  uint32_t left = w.mask;
  while (left != 0) {
    const int lane = __builtin_ctz(left);
    if (a[lane] >= targets.size()) {
      RaiseFault(w, op, Fault::OTHER, lane, 0,
                 base::StrCat("branches to entry ", a[lane], " of a table of ", targets.size()));
      return;
    }
    Group group;
    group.frame = w.frame;
    group.pc = w.block->program->code.data() + targets[a[lane]];
    ForMask(left, [&](int i) { group.mask |= a[i] == a[lane] ? uint32_t{1} << i : 0; });
    left &= ~group.mask;
    w.groups.push_back(group);
  }
  SetMask(w, 0);
  w.stop = nullptr;
  CheckSlice(w);
}

Frame* PushFrame(Warp& w, const Op& op, const FunctionCode& function, Frame* parent) {
  Block& block = *w.block;
  const int64_t base = parent == nullptr ? 0 : parent->local_top;
  const int64_t charge =
      (parent == nullptr ? 0 : parent->charge) + function.local_bytes + function.register_bytes / kLanes + 32;
  if (charge > block.local_limit) {
    RaiseFault(
        w, op, Fault::STACK_OVERFLOW, w.mask ? __builtin_ctz(w.mask) : 0, 0,
        base::StrCat("overflows its stack: calls ", function.name, " at depth ",
                     parent == nullptr ? 0 : parent->depth + 1, ", needing ", charge, " bytes of ", block.local_limit));
    return nullptr;
  }
  const size_t index = static_cast<size_t>(&function - block.program->functions.data());
  std::vector<Frame*>& spare = block.spare_frames[index];
  Frame* frame;
  if (spare.empty()) {
    block.frame_bytes += int64_t{function.register_bytes} + 64;
    if (block.frame_bytes > kMostFrameBytes) {
      RaiseOutcome(
          w, RunOutcome::OUT_OF_MEMORY,
          base::StrCat(block.program->entry, ": the registers of the calls that one block is in need more than ",
                       kMostFrameBytes, " bytes"));
      return nullptr;
    }
    block.frames.push_back(std::make_unique<Frame>());
    frame = block.frames.back().get();
    frame->function = &function;
    frame->storage = std::make_unique<uint8_t[]>(function.register_bytes + 64);
    const auto address = reinterpret_cast<uintptr_t>(frame->storage.get());
    frame->registers = frame->storage.get() + (64 - address % 64) % 64;
  } else {
    frame = spare.back();
    spare.pop_back();
    // Registers that were not written read as zero, so that runs repeat.
    std::memset(frame->registers, 0, function.register_bytes);
  }
  frame->parent = parent;
  frame->live = w.mask;
  frame->local_base = base;
  frame->local_top = base + function.local_bytes;
  frame->charge = charge;
  frame->depth = parent == nullptr ? 0 : parent->depth + 1;
  frame->lane_tops.clear();
  GrowLocal(w, frame->local_top);
  if (block.sanitizer != nullptr) block.sanitizer->ClearLocal(w, frame->local_base, frame->local_top);
  return frame;
}

void GrowLocal(Warp& w, int64_t bytes) {
  if (bytes <= w.local_capacity) return;
  // An odd number of cache lines apart, so that the lanes do not share cache sets.
  const int64_t capacity = (std::max(bytes, w.local_capacity * 2) + 127) / 128 * 128 + 64;
  auto storage = std::make_unique<uint8_t[]>(static_cast<size_t>(capacity * kLanes));
  for (int i = 0; i < kLanes && w.local_capacity > 0; ++i) {
    std::memcpy(storage.get() + i * capacity, w.local + i * w.local_capacity, w.local_capacity);
  }
  w.local_storage = std::move(storage);
  w.local = w.local_storage.get();
  w.local_capacity = capacity;
}

void LeaveFrame(Warp& w, Frame* frame, uint32_t lanes) {
  frame->live &= ~lanes;
  if (frame->live != 0) return;
  w.block->spare_frames[frame->function - w.block->program->functions.data()].push_back(frame);
}

namespace {

void CopyLocals(Warp& w, const Frame& to, const std::vector<LocalSlot>& to_slots, const Frame& from,
                const std::vector<LocalSlot>& from_slots) {
  for (size_t s = 0; s < to_slots.size() && s < from_slots.size(); ++s) {
    const size_t bytes = static_cast<size_t>(std::min(to_slots[s].bytes, from_slots[s].bytes));
    ForMask(w.mask, [&](int i) {
      uint8_t* lane = w.local + i * w.local_capacity;
      std::memcpy(lane + to.local_base + to_slots[s].offset, lane + from.local_base + from_slots[s].offset, bytes);
    });
    if (w.block->sanitizer != nullptr) {
      w.block->sanitizer->CopyLocal(w, to.local_base + to_slots[s].offset, from.local_base + from_slots[s].offset,
                                    static_cast<int64_t>(bytes));
    }
  }
}

void CallFunction(Warp& w, const Op& op, int index) {
  const Program& program = *w.block->program;
  const FunctionCode& function = program.functions[index];
  Frame* caller = w.frame;
  Frame* frame = PushFrame(w, op, function, caller);
  if (frame == nullptr) return;
  frame->return_pc = &op + 1;
  frame->call = &op;
  CopyLocals(w, *frame, function.parameters, *caller, program.calls[op.target].arguments);
  EnterFrame(w, frame);
  w.pc = program.code.data() + function.begin;
  w.stop = w.groups.empty() ? kNever : nullptr;
  CheckSlice(w);
}

}  // namespace

void ExecCall(Warp& w, const Op& op) { CallFunction(w, op, static_cast<int>(op.imm)); }

void ExecCallIndirect(Warp& w, const Op& op) {
  const Program& program = *w.block->program;
  const uint64_t* a = w.Src<uint64_t>(op.a);
  const int leader = __builtin_ctz(w.mask);
  const uint64_t address = a[leader];
  const uint64_t number = (address - kFunctionWindow) / 16;
  const CallSite& site = program.calls[op.target];
  const int index = address >= kFunctionWindow && address % 16 == 0 && number < program.module_to_function.size()
                        ? program.module_to_function[number]
                        : -1;
  if (index < 0 || program.functions[index].parameters.size() != site.arguments.size() ||
      program.functions[index].returns.size() < site.results.size()) {
    RaiseFault(w, op, Fault::OTHER, leader, address, "calls through a pointer that is not such a function");
    return;
  }
  uint32_t same = 0;
  ForMask(w.mask, [&](int i) { same |= a[i] == address ? uint32_t{1} << i : 0; });
  if (same != w.mask) {
    // The others call on their own, later.
    Group other;
    other.mask = w.mask & ~same;
    other.pc = &op;
    other.frame = w.frame;
    w.groups.push_back(other);
    SetMask(w, same);
  }
  CallFunction(w, op, index);
}

void ExecReturn(Warp& w, const Op& op) {
  Frame* frame = w.frame;
  if (frame->parent == nullptr) return ExecExit(w, op);
  const CallSite& site = w.block->program->calls[frame->call->target];
  CopyLocals(w, *frame->parent, site.results, *frame, frame->function->returns);
  w.pc = frame->return_pc;
  EnterFrame(w, frame->parent);
  LeaveFrame(w, frame, w.mask);
  w.stop = w.groups.empty() ? kNever : nullptr;
}

void ExecExit(Warp& w, const Op&) {
  FinishAsync(w, w.mask);
  w.live &= ~w.mask;
  w.block->live_threads -= w.active;
  for (Frame* frame = w.frame; frame != nullptr;) {
    Frame* parent = frame->parent;
    LeaveFrame(w, frame, w.mask);
    frame = parent;
  }
  SetMask(w, 0);
  w.stop = nullptr;
}

void ExecTrap(Warp& w, const Op& op) { RaiseFault(w, op, Fault::TRAP, __builtin_ctz(w.mask), 0, "executes a trap"); }

void ExecNanosleep(Warp& w, const Op& op) {
  const uint32_t* a = w.Src<uint32_t>(op.a);
  uint32_t nanoseconds = 0;
  ForMask(w.mask, [&](int i) { nanoseconds = std::max(nanoseconds, a[i]); });
  nanoseconds = std::min(nanoseconds, kMostSleepNs);
  w.block->slept_ns += nanoseconds;
  Group group;
  group.mask = w.mask;
  group.pc = w.pc;
  group.frame = w.frame;
  group.wait = Wait::kSleep;
  group.stamp = ++w.stamp;
  group.wake_ns = w.block->launch->run->clock.NowNs() + nanoseconds;
  w.groups.push_back(group);
  ++w.sleepers;
  SetMask(w, 0);
  w.stop = nullptr;
}

void ExecNothing(Warp&, const Op&) {}

void ExecFence(Warp& w, const Op&) {
  if (w.block->sanitizer != nullptr) w.block->sanitizer->Fence(w);
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace solstice::device
