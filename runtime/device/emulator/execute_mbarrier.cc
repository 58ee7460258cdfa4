// mbarrier: arrivals and waits on objects in the block's shared memory, one lane after another.
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/mbarrier.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

using v1::internal::Fault;

// Applies `change` to the object at `host`. False after a fault.
template <typename Change>
bool Apply(Warp& w, const Op& op, int lane, uint8_t* host, Change change) {
  uint64_t word;
  std::memcpy(&word, host, sizeof word);
  Mbarrier barrier;
  const std::string wrong =
      Mbarrier::Load(word, &barrier) ? change(barrier) : "uses an mbarrier that is not initialised or was overwritten";
  if (!wrong.empty()) {
    RaiseFault(w, op, Fault::BARRIER, lane, static_cast<uint64_t>(host - w.block->shared.host), wrong);
    return false;
  }
  word = barrier.Store();
  std::memcpy(host, &word, sizeof word);
  return true;
}

// The same for changes that others wait for.
template <typename Change>
bool Update(Warp& w, const Op& op, int lane, uint8_t* host, Change change) {
  bool completes = false;
  const bool good = Apply(w, op, lane, host, [&](Mbarrier& barrier) -> std::string {
    const bool phase = barrier.phase;
    std::string wrong = change(barrier);
    completes = barrier.phase != phase;
    return wrong;
  });
  if (good && w.block->sanitizer != nullptr) w.block->sanitizer->MbarrierArrive(w, op, lane, host, completes);
  return good;
}

bool Initialise(Warp& w, const Op& op, int lane, uint8_t* host, uint32_t count) {
  if (count < 1 || count > Mbarrier::kMost) {
    RaiseFault(
        w, op, Fault::BARRIER, lane, static_cast<uint64_t>(host - w.block->shared.host),
        base::StrCat("initialises an mbarrier for ", count, " arrivals; 1 to ", Mbarrier::kMost, " are possible"));
    return false;
  }
  Mbarrier barrier;
  barrier.expected = barrier.pending = count;
  const uint64_t word = barrier.Store();
  if (w.block->sanitizer != nullptr) w.block->sanitizer->MbarrierMade(w, op, lane, host);
  std::memcpy(host, &word, sizeof word);
  return true;
}

bool Invalidate(Warp& w, const Op& op, int lane, uint8_t* host) {
  if (!Apply(w, op, lane, host, [](const Mbarrier&) { return std::string(); })) return false;
  if (w.block->sanitizer != nullptr) w.block->sanitizer->MbarrierMade(w, op, lane, host);
  std::memset(host, 0, sizeof(uint64_t));
  return true;
}

bool Arrive(Warp& w, const Op& op, int lane, uint8_t* host, uint32_t operand) {
  uint64_t before;
  std::memcpy(&before, host, sizeof before);
  const bool expects = op.flags & kMbarrierExpect;
  const int64_t count = expects ? 1 : int64_t{operand};
  const bool good = Update(w, op, lane, host, [&](Mbarrier& barrier) -> std::string {
    if ((op.flags & kMbarrierNoComplete) && count >= barrier.pending) {
      return base::StrCat("arrives ", count, " times without completing the phase of an mbarrier that waits for ",
                          barrier.pending, " more arrivals");
    }
    std::string wrong = expects ? barrier.Expect(operand) : "";
    if (wrong.empty() && (op.flags & kMbarrierDrop)) wrong = barrier.Drop(count);
    return wrong.empty() ? barrier.Arrive(count) : wrong;
  });
  if (good && op.d != kNoOperand) w.Dst<uint64_t>(op.d)[lane] = before;
  return good;
}

// Whether the phase that `state` or the parity `operand` names is over. False after a fault, too.
bool IsOver(Warp& w, const Op& op, int lane, uint8_t* host, bool parity) {
  bool over = false;
  const bool good = Apply(w, op, lane, host, [&](const Mbarrier& barrier) {
    over = barrier.phase != parity;
    return std::string();
  });
  if (good && w.block->sanitizer != nullptr) w.block->sanitizer->MbarrierTest(w, op, lane, host, over);
  return over;
}

void WaitFor(Warp& w, const Op& op) {
  const uint64_t* a = w.Src<uint64_t>(op.a);
  const bool by_parity = static_cast<MbarrierOp>(op.kind) == MbarrierOp::kWaitParity;
  uint32_t over = 0;
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    uint8_t* host = FindMbarrier(w, op, i, a[i]);
    if (host == nullptr) return;
    // The lowest bit of a state is its phase.
    const bool parity = (by_parity ? w.Src<uint32_t>(op.b)[i] : w.Src<uint64_t>(op.b)[i]) & 1;
    bool done = IsOver(w, op, i, host, parity);
    if (!done && w.block->async_arrivals > 0) {
      FinishArrivals(*w.block, host);
      done = !w.block->failed && IsOver(w, op, i, host, parity);
    }
    if (w.block->failed) {
      w.stop = nullptr;
      return;
    }
    over |= uint32_t{done} << i;
  }
  w.SetPred(op.d, over);
  if (over == w.mask) return;
  // Others may have to run first.
  w.yielded = true;
  w.stop = nullptr;
}

void PendingCount(Warp& w, const Op& op) {
  const uint64_t* a = w.Src<uint64_t>(op.a);
  uint32_t* d = w.Dst<uint32_t>(op.d);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    Mbarrier barrier;
    if (!Mbarrier::Load(a[i], &barrier)) {
      RaiseFault(w, op, Fault::BARRIER, i, 0, "asks for the arrivals of what is not the state of an mbarrier");
      return;
    }
    d[i] = static_cast<uint32_t>(barrier.pending);
  }
}

}  // namespace

uint8_t* FindMbarrier(Warp& w, const Op& op, int lane, uint64_t address) {
  const Region* region = nullptr;
  uint8_t* host = ResolveLane(w, op, {op.space, 8, 8, true}, lane, address, &region);
  if (host == nullptr || (region != nullptr && region->host == w.block->shared.host)) return host;
  RaiseFault(w, op, Fault::BARRIER, lane, address, "uses an mbarrier that is not in shared memory");
  return nullptr;
}

bool ArriveAtMbarrier(Warp& w, const Op& op, int lane, uint8_t* host) {
  return Update(w, op, lane, host, [](Mbarrier& barrier) { return barrier.Arrive(1); });
}

bool AddPendingAtMbarrier(Warp& w, const Op& op, int lane, uint8_t* host) {
  return Update(w, op, lane, host, [](Mbarrier& barrier) { return barrier.AddPending(); });
}

void ExecMbarrier(Warp& w, const Op& op) {
  const MbarrierOp kind = static_cast<MbarrierOp>(op.kind);
  if (kind == MbarrierOp::kPendingCount) return PendingCount(w, op);
  if (kind == MbarrierOp::kWait || kind == MbarrierOp::kWaitParity) return WaitFor(w, op);
  const uint64_t* a = w.Src<uint64_t>(op.a);
  const uint32_t* b = op.b == kNoOperand ? nullptr : w.Src<uint32_t>(op.b);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    uint8_t* host = FindMbarrier(w, op, i, a[i]);
    if (host == nullptr) return;
    const uint32_t operand = b == nullptr ? 1 : b[i];
    bool good = true;
    switch (kind) {
      case MbarrierOp::kInit:
        good = Initialise(w, op, i, host, operand);
        break;
      case MbarrierOp::kInval:
        good = Invalidate(w, op, i, host);
        break;
      case MbarrierOp::kExpect:
        good = Update(w, op, i, host, [&](Mbarrier& barrier) { return barrier.Expect(operand); });
        break;
      case MbarrierOp::kComplete:
        good = Update(w, op, i, host, [&](Mbarrier& barrier) { return barrier.Expect(-int64_t{operand}); });
        break;
      default:
        good = Arrive(w, op, i, host, operand);
        break;
    }
    if (!good) return;
  }
}

}  // namespace solstice::device
