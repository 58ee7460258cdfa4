// alloca, stacksave and stackrestore: each lane has a top of its own in the frame's local memory.
#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

using v1::internal::Fault;

int64_t FixedTop(const Frame& frame) { return frame.local_base + frame.function->local_bytes; }

std::vector<int64_t>& TopsOf(Frame& frame) {
  if (frame.lane_tops.empty()) frame.lane_tops.assign(kLanes, FixedTop(frame));
  return frame.lane_tops;
}

// After a lane's top changed: what the frame charges follows.
void UpdateTop(Frame& frame) {
  const int64_t top = *std::max_element(frame.lane_tops.begin(), frame.lane_tops.end());
  frame.charge += top - frame.local_top;
  frame.local_top = top;
}

void SetAddress(Warp& w, const Op& op, int lane, int64_t address) {
  if (op.bytes == 4) w.Dst<uint32_t>(op.d)[lane] = static_cast<uint32_t>(address);
  if (op.bytes == 8) w.Dst<uint64_t>(op.d)[lane] = static_cast<uint64_t>(address);
}

}  // namespace

void ExecAlloca(Warp& w, const Op& op) {
  Frame& frame = *w.frame;
  std::vector<int64_t>& tops = TopsOf(frame);
  const uint64_t* a = w.Src<uint64_t>(op.a);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    const int64_t start = (tops[i] + op.imm - 1) / op.imm * op.imm;
    const int64_t left = w.block->local_limit - frame.charge - (start - frame.local_top);
    if (left < 0 || a[i] > static_cast<uint64_t>(left)) {
      RaiseFault(w, op, Fault::STACK_OVERFLOW, i, 0,
                 base::StrCat("overflows its stack: alloca of ", a[i], " bytes where ", std::max<int64_t>(left, 0),
                              " are left of ", w.block->local_limit));
      return;
    }
    tops[i] = start + static_cast<int64_t>(a[i]);
    UpdateTop(frame);
    if (w.block->sanitizer != nullptr) w.block->sanitizer->ClearLocal(w, i, start, tops[i]);
    SetAddress(w, op, i, start);
  }
  GrowLocal(w, frame.local_top);
}

void ExecStackSave(Warp& w, const Op& op) {
  const std::vector<int64_t>& tops = TopsOf(*w.frame);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    SetAddress(w, op, i, tops[i]);
  }
}

void ExecStackRestore(Warp& w, const Op& op) {
  Frame& frame = *w.frame;
  std::vector<int64_t>& tops = TopsOf(frame);
  const uint64_t* a = w.Src<uint64_t>(op.a);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    if (a[i] < static_cast<uint64_t>(FixedTop(frame)) || a[i] > static_cast<uint64_t>(tops[i])) {
      RaiseFault(w, op, Fault::OTHER, i, a[i], "restores a stack pointer that it did not save in this function");
      return;
    }
    tops[i] = static_cast<int64_t>(a[i]);
  }
  UpdateTop(frame);
}

}  // namespace solstice::device
