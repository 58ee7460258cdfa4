// Synchronisation within a warp and within a block.
//
// A warp operation names the lanes that take part. Groups that arrive early wait; the last one executes it for all,
// also when they stand at different places of the program.
#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/meeting.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

using v1::internal::Fault;

// The lanes that `op` names.
Meeting Arrive(Warp& w, const Op& op) { return Arrive(w, op, w.Src<uint32_t>(op.target)[__builtin_ctz(w.mask)]); }

}  // namespace

Meeting Arrive(Warp& w, const Op& op, uint32_t members) {
  Meeting meeting;
  members |= w.mask;
  const uint32_t needed = members & w.live;
  meeting.lanes = w.mask;
  meeting.parts.push_back({w.mask, &op, w.frame});
  if ((w.mask & needed) == needed) {
    meeting.complete = true;
    return meeting;
  }
  auto meets = [&](const Group& group) {
    return group.wait == Wait::kWarp && group.pc->fn == op.fn && (group.members & w.live) == needed;
  };
  for (const Group& group : w.groups) {
    if (!meets(group)) continue;
    meeting.parts.push_back({group.mask, group.pc, group.frame});
    meeting.lanes |= group.mask;
  }
  if ((meeting.lanes & needed) == needed) {
    for (Group& group : w.groups) {
      if (!meets(group)) continue;
      group.wait = Wait::kRunnable;
      ++group.pc;
    }
    meeting.complete = true;
    w.stop = nullptr;
    return meeting;
  }
  Group waiting;
  waiting.mask = w.mask;
  waiting.pc = &op;
  waiting.frame = w.frame;
  waiting.wait = Wait::kWarp;
  waiting.members = members;
  w.groups.push_back(waiting);
  SetMask(w, 0);
  w.stop = nullptr;
  return meeting;
}

void ExecShuffle(Warp& w, const Op& op) {
  const Meeting meeting = Arrive(w, op);
  if (!meeting.complete) return;
  uint32_t value[kLanes], result[kLanes];
  std::copy_n(w.Src<uint32_t>(op.a), kLanes, value);
  for (const Part& part : meeting.parts) {
    const uint32_t* a = Read<uint32_t>(w, part, part.op->a);
    ForMask(part.mask, [&](int i) { value[i] = a[i]; });
  }
  for (const Part& part : meeting.parts) {
    const uint32_t* b = Read<uint32_t>(w, part, part.op->b);
    const uint32_t* c = Read<uint32_t>(w, part, part.op->c);
    uint32_t in_range = 0;
    ForMask(part.mask, [&](int lane) {
      const int segment = static_cast<int>(c[lane] >> 8 & 31), clamp = static_cast<int>(c[lane] & 31);
      const int distance = static_cast<int>(b[lane] & 31);
      const int most = (lane & segment) | (clamp & ~segment), least = lane & segment;
      int from = lane;
      bool good = false;
      switch (static_cast<ShuffleOp>(part.op->kind)) {
        case ShuffleOp::kUp:
          from = lane - distance;
          good = from >= most;
          break;
        case ShuffleOp::kDown:
          from = lane + distance;
          good = from <= most;
          break;
        case ShuffleOp::kBfly:
          from = lane ^ distance;
          good = from <= most;
          break;
        case ShuffleOp::kIdx:
          from = least | (distance & ~segment);
          good = from <= most;
          break;
      }
      if (!good) from = lane;
      result[lane] = value[from & 31];
      in_range |= uint32_t{good} << lane;
    });
    uint32_t* d = Write<uint32_t>(part, part.op->d);
    ForMask(part.mask, [&](int i) { d[i] = result[i]; });
    if (part.op->e != kNoOperand) WritePredicate(part, part.op->e, in_range);
  }
}

void ExecVote(Warp& w, const Op& op) {
  const Meeting meeting = Arrive(w, op);
  if (!meeting.complete) return;
  uint32_t set = 0;
  for (const Part& part : meeting.parts) set |= ReadPredicate(w, part, part.op->a) & part.mask;
  for (const Part& part : meeting.parts) {
    bool result = false;
    switch (static_cast<VoteOp>(part.op->kind)) {
      case VoteOp::kAll:
        result = set == meeting.lanes;
        break;
      case VoteOp::kAny:
        result = set != 0;
        break;
      case VoteOp::kUni:
        result = set == meeting.lanes || set == 0;
        break;
      case VoteOp::kBallot: {
        uint32_t* d = Write<uint32_t>(part, part.op->d);
        ForMask(part.mask, [&](int i) { d[i] = set; });
        continue;
      }
    }
    WritePredicate(part, part.op->d, result ? kAllLanes : 0);
  }
}

void ExecActiveMask(Warp& w, const Op& op) {
  uint32_t* d = w.Dst<uint32_t>(op.d);
  const uint32_t mask = w.mask;
  ForMask(mask, [&](int i) { d[i] = mask; });
}

void ExecMatch(Warp& w, const Op& op) {
  const Meeting meeting = Arrive(w, op);
  if (!meeting.complete) return;
  uint64_t value[kLanes] = {};
  for (const Part& part : meeting.parts) {
    ForMask(part.mask, [&](int i) {
      value[i] = part.op->bytes == 8 ? Read<uint64_t>(w, part, part.op->a)[i] : Read<uint32_t>(w, part, part.op->a)[i];
    });
  }
  bool all = true;
  const int first = __builtin_ctz(meeting.lanes);
  ForMask(meeting.lanes, [&](int i) { all &= value[i] == value[first]; });
  for (const Part& part : meeting.parts) {
    uint32_t* d = Write<uint32_t>(part, part.op->d);
    ForMask(part.mask, [&](int i) {
      if (part.op->flags & 1) {
        d[i] = all ? meeting.lanes : 0;
        return;
      }
      uint32_t same = 0;
      ForMask(meeting.lanes, [&](int j) { same |= uint32_t{value[i] == value[j]} << j; });
      d[i] = same;
    });
    if (part.op->e != kNoOperand) WritePredicate(part, part.op->e, all ? kAllLanes : 0);
  }
}

namespace {

// Of two float32: -0 is below +0; a NaN loses against a number unless `nan_wins`.
uint32_t BetterFloat(uint32_t x, uint32_t y, bool max, bool nan_wins) {
  auto is_nan = [](uint32_t code) { return (code & 0x7fffffffu) > 0x7f800000u; };
  if (is_nan(x) || is_nan(y)) {
    if (nan_wins || (is_nan(x) && is_nan(y))) return 0x7fffffffu;
    return is_nan(x) ? y : x;
  }
  auto order = [](uint32_t code) { return static_cast<int32_t>(code >> 31 ? ~code ^ 0x80000000u : code); };
  return (order(x) < order(y)) != max ? x : y;
}

void ReduceFloats(Warp& w, const Op& op, const Meeting& meeting) {
  const bool max = static_cast<ReduxOp>(op.kind) == ReduxOp::kMax;
  uint32_t total = 0;
  bool first = true;
  for (const Part& part : meeting.parts) {
    const uint32_t* a = Read<uint32_t>(w, part, part.op->a);
    ForMask(part.mask, [&](int i) {
      const uint32_t x = op.flags & kReduxAbs ? a[i] & 0x7fffffffu : a[i];
      total = BetterFloat(first ? x : total, x, max, op.flags & kReduxNan);
      first = false;
    });
  }
  for (const Part& part : meeting.parts) {
    uint32_t* d = Write<uint32_t>(part, part.op->d);
    ForMask(part.mask, [&](int i) { d[i] = total; });
  }
}

}  // namespace

void ExecRedux(Warp& w, const Op& op) {
  const Meeting meeting = Arrive(w, op);
  if (!meeting.complete) return;
  if (op.flags & kReduxFloat) return ReduceFloats(w, op, meeting);
  bool first = true;
  uint32_t total = 0;
  const bool is_signed = op.flags & kReduxSigned;
  for (const Part& part : meeting.parts) {
    const uint32_t* a = Read<uint32_t>(w, part, part.op->a);
    ForMask(part.mask, [&](int i) {
      const uint32_t x = a[i];
      const bool less = is_signed ? static_cast<int32_t>(x) < static_cast<int32_t>(total) : x < total;
      if (first) {
        total = x;
      } else {
        switch (static_cast<ReduxOp>(op.kind)) {
          case ReduxOp::kAdd:
            total += x;
            break;
          case ReduxOp::kMin:
            total = less ? x : total;
            break;
          case ReduxOp::kMax:
            total = less ? total : x;
            break;
          case ReduxOp::kAnd:
            total &= x;
            break;
          case ReduxOp::kOr:
            total |= x;
            break;
          case ReduxOp::kXor:
            total ^= x;
            break;
        }
      }
      first = false;
    });
  }
  for (const Part& part : meeting.parts) {
    uint32_t* d = Write<uint32_t>(part, part.op->d);
    ForMask(part.mask, [&](int i) { d[i] = total; });
  }
}

void ExecElect(Warp& w, const Op& op) {
  const Meeting meeting = Arrive(w, op);
  if (!meeting.complete) return;
  const uint32_t leader = static_cast<uint32_t>(__builtin_ctz(meeting.lanes));
  for (const Part& part : meeting.parts) {
    uint32_t* d = Write<uint32_t>(part, part.op->d);
    ForMask(part.mask, [&](int i) { d[i] = leader; });
    if (part.op->e != kNoOperand) WritePredicate(part, part.op->e, uint32_t{1} << leader);
  }
}

void ExecWarpSync(Warp& w, const Op& op) {
  const Meeting meeting = Arrive(w, op);
  if (meeting.complete && w.block->sanitizer != nullptr) w.block->sanitizer->SyncWarp(w, meeting.lanes);
}

bool TryCompleteBarrier(Block& block, int id) {
  BarrierState& barrier = block.barriers[id];
  const bool complete = barrier.expected == 0 ? barrier.waiting != 0 && barrier.waiting >= block.live_threads
                                              : barrier.arrived >= barrier.expected;
  if (!complete) return false;
  if (block.sanitizer != nullptr) block.sanitizer->Complete(id, barrier.expected != 0);
  uint32_t set = 0, waiting = 0;
  for (const Warp& w : block.warps) {
    for (const Group& group : w.groups) {
      if (group.wait != Wait::kBarrier || group.barrier != id) continue;
      set += static_cast<uint32_t>(__builtin_popcount(group.predicate));
      waiting += static_cast<uint32_t>(__builtin_popcount(group.mask));
    }
  }
  for (Warp& w : block.warps) {
    for (Group& group : w.groups) {
      if (group.wait != Wait::kBarrier || group.barrier != id) continue;
      const Part part{group.mask, group.pc, group.frame};
      switch (static_cast<BarrierOp>(group.pc->kind)) {
        case BarrierOp::kPopc:
          ForMask(group.mask, [&](int i) { Write<uint32_t>(part, group.pc->d)[i] = set; });
          break;
        case BarrierOp::kAnd:
          WritePredicate(part, group.pc->d, set == waiting ? kAllLanes : 0);
          break;
        case BarrierOp::kOr:
          WritePredicate(part, group.pc->d, set != 0 ? kAllLanes : 0);
          break;
        default:
          break;
      }
      group.wait = Wait::kRunnable;
      ++group.pc;
    }
  }
  barrier = BarrierState();
  return true;
}

void ExecBarrier(Warp& w, const Op& op) {
  const int leader = __builtin_ctz(w.mask);
  const uint32_t id = w.Src<uint32_t>(op.a)[leader];
  const uint32_t expected = op.b == kNoOperand ? 0 : w.Src<uint32_t>(op.b)[leader];
  if (id >= kBarriers) {
    RaiseFault(w, op, Fault::BARRIER, leader, 0, base::StrCat("uses barrier ", id, "; there are ", kBarriers));
    return;
  }
  Block& block = *w.block;
  BarrierState& barrier = block.barriers[id];
  if (expected != 0 && barrier.expected != 0 && barrier.expected != expected) {
    RaiseFault(
        w, op, Fault::BARRIER, leader, 0,
        base::StrCat("uses barrier ", id, " with ", expected, " threads where others use it with ", barrier.expected));
    return;
  }
  if (expected != 0) barrier.expected = expected;
  // Hardware counts warps: one that has arrived as a whole counts as 32 whatever its threads that do not exist.
  barrier.arrived += (w.mask & w.live) == w.live ? kLanes : w.active;
  if (static_cast<BarrierOp>(op.kind) == BarrierOp::kArrive) {
    if (block.sanitizer != nullptr) block.sanitizer->Arrive(w, static_cast<int>(id));
    if (TryCompleteBarrier(block, static_cast<int>(id))) w.stop = nullptr;
    return;
  }
  barrier.waiting += w.active;
  Group waiting;
  waiting.mask = w.mask;
  waiting.pc = &op;
  waiting.frame = w.frame;
  waiting.wait = Wait::kBarrier;
  waiting.barrier = static_cast<int>(id);
  waiting.predicate = op.c == kNoOperand ? 0 : w.Pred(op.c) & w.mask;
  w.groups.push_back(waiting);
  SetMask(w, 0);
  w.stop = nullptr;
  TryCompleteBarrier(block, static_cast<int>(id));
}

}  // namespace solstice::device
