// cp.async: a copy is checked where it is issued and done where it is waited for, so that a kernel that forgets to wait
// reads what was there before.
#include <algorithm>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

constexpr size_t kMostPending = 64;  // entries of one thread

template <typename F>
void ForMask(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

AsyncLane& LaneOf(Warp& w, int lane) {
  if (w.async == nullptr) w.async = std::make_unique<AsyncLanes>();
  return w.async->lanes[lane];
}

// Does the oldest `count` entries of a thread.
void Finish(Warp& w, int lane, size_t count) {
  std::vector<AsyncEntry>& pending = w.async->lanes[lane].pending;
  for (size_t i = 0; i < count; ++i) {
    const AsyncEntry& entry = pending[i];
    if (entry.arrives()) {
      --w.block->async_arrivals;
      if (!ArriveAtMbarrier(w, *entry.op, lane, entry.to)) break;
      continue;
    }
    if (w.block->sanitizer != nullptr) w.block->sanitizer->CopyDone(w, lane, entry);
    if (entry.source_bytes > 0) std::memcpy(entry.to, entry.from, entry.source_bytes);
    std::memset(entry.to + entry.source_bytes, 0, entry.bytes - entry.source_bytes);
  }
  pending.erase(pending.begin(), pending.begin() + static_cast<ptrdiff_t>(count));
}

void Queue(Warp& w, int lane, const AsyncEntry& entry) {
  std::vector<AsyncEntry>& pending = LaneOf(w, lane).pending;
  if (pending.size() >= kMostPending) Finish(w, lane, 1);
  pending.push_back(entry);
  w.block->async_arrivals += entry.arrives() ? 1 : 0;
}

}  // namespace

void ExecAsyncCopy(Warp& w, const Op& op) {
  const uint64_t* to = w.Src<uint64_t>(op.a);
  const uint64_t* from = w.Src<uint64_t>(op.b);
  const uint32_t* read = op.c == kNoOperand ? nullptr : w.Src<uint32_t>(op.c);
  const uint32_t ignored = op.e == kNoOperand ? 0 : w.Pred(op.e);
  const Region* shared = nullptr;
  const Region*& global = w.block->region_cache[&op - w.block->program->code.data()];
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    AsyncEntry entry;
    entry.op = &op;
    entry.bytes = op.bytes;
    entry.source_bytes = op.bytes;
    if (read != nullptr && read[i] < op.bytes) entry.source_bytes = static_cast<uint8_t>(read[i]);
    if (ignored >> i & 1) entry.source_bytes = 0;
    entry.to = ResolveLane(w, op, {AddressSpace::kShared, op.bytes, op.bytes, true}, i, to[i], &shared);
    if (entry.to == nullptr) return;
    // A source of which nothing is read need not exist.
    if (entry.source_bytes > 0) {
      entry.from =
          ResolveLane(w, op, {AddressSpace::kGlobal, entry.source_bytes, op.bytes, false}, i, from[i], &global);
      if (entry.from == nullptr) return;
    }
    if (w.block->sanitizer != nullptr) entry.issued = w.block->sanitizer->CopyIssued(w, op, i, entry);
    entry.group = LaneOf(w, i).committed;
    Queue(w, i, entry);
    if (w.block->failed) return;
  }
}

void ExecAsyncCommit(Warp& w, const Op&) {
  ForMask(w.mask, [&](int i) { ++LaneOf(w, i).committed; });
}

void ExecAsyncWait(Warp& w, const Op& op) {
  if (w.async == nullptr) return;
  ForMask(w.mask, [&](int i) {
    const AsyncLane& lane = w.async->lanes[i];
    size_t due = op.flags & 1 ? lane.pending.size() : 0;
    // Groups are counted from the oldest; the newest `imm` of those committed may stay.
    while (due < lane.pending.size() && int64_t{lane.pending[due].group} + op.imm < int64_t{lane.committed}) ++due;
    if (due > 0 && !w.block->failed) Finish(w, i, due);
  });
}

void ExecAsyncArrive(Warp& w, const Op& op) {
  const uint64_t* a = w.Src<uint64_t>(op.a);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    AsyncEntry entry;
    entry.op = &op;
    entry.to = FindMbarrier(w, op, i, a[i]);
    if (entry.to == nullptr) return;
    if (!(op.flags & 1) && !AddPendingAtMbarrier(w, op, i, entry.to)) return;
    entry.group = LaneOf(w, i).committed;
    Queue(w, i, entry);
    if (w.block->failed) return;
  }
}

void ExecBulkZero(Warp& w, const Op& op) {
  const uint64_t* a = w.Src<uint64_t>(op.a);
  const uint64_t* bytes = w.Src<uint64_t>(op.b);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    if (bytes[i] == 0) continue;
    // A block's shared memory is far smaller than 4 GiB.
    const uint32_t size = static_cast<uint32_t>(std::min<uint64_t>(bytes[i], UINT32_MAX));
    const Region* region = nullptr;
    uint8_t* to = ResolveLane(w, op, {op.space, size, 8, true}, i, a[i], &region);
    if (to == nullptr) return;
    if (region == nullptr || region->host != w.block->shared.host || size % 8 != 0) {
      RaiseFault(w, op, v1::internal::Fault::OTHER, i, a[i],
                 base::StrCat("fills ", size, " bytes; it must be whole words of 8 in shared memory"));
      return;
    }
    if (w.block->sanitizer != nullptr) w.block->sanitizer->Range(w, op, i, to, size, /*write=*/true);
    std::memset(to, 0, size);
  }
}

void FinishAsync(Warp& w, uint32_t lanes) {
  if (w.async == nullptr) return;
  ForMask(lanes, [&](int i) {
    if (!w.block->failed) Finish(w, i, w.async->lanes[i].pending.size());
  });
}

void FinishArrivals(Block& block, uint8_t* barrier) {
  if (block.async_arrivals == 0) return;
  for (Warp& w : block.warps) {
    for (int i = 0; i < kLanes && w.async != nullptr; ++i) {
      const std::vector<AsyncEntry>& pending = w.async->lanes[i].pending;
      size_t due = pending.size();
      while (due > 0 && !(pending[due - 1].arrives() && pending[due - 1].to == barrier)) --due;
      if (due > 0) Finish(w, i, due);
      if (block.failed) return;
    }
  }
}

}  // namespace solstice::device
