// The sanitizer of copies that a thread does not wait for at once, and of mbarriers.
#include "runtime/base/strings.h"
#include "runtime/device/emulator/async.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {

using base::StrCat;
using v1::Finding;

namespace {

// Whether a copy brings other bytes than are there, of `size` from byte `from` on.
bool Changes(const AsyncEntry& copy, uint32_t from, uint32_t size) {
  for (uint32_t b = from; b < from + size; ++b) {
    if ((b < copy.source_bytes ? copy.from[b] : 0) != copy.to[b]) return true;
  }
  return false;
}

}  // namespace

// What was accessed before must be ordered before the issue. `cell.write` comes with CopyDone.
uint32_t Sanitizer::CopyIssued(const Warp& w, const Op& op, int lane, const AsyncEntry& copy) {
  const Touch now = TouchNow(w, op, lane);
  const uint64_t offset = static_cast<uint64_t>(copy.to - block_.shared.host);
  shadow_.ForEach(offset, copy.bytes, generation_, [&](const Cell& cell, uint64_t at, uint32_t size) {
    if (!Changes(copy, static_cast<uint32_t>(at - offset), size)) return;
    for (const Touch* write : {&cell.write, &cell.strong_write}) {
      if (Conflict(*write, now, w.index, lane)) ReportRace(w, op, lane, at, "copies to", "wrote to", *write);
    }
    for (const Touch& read : cell.reads) {
      if (Conflict(read, now, w.index, lane)) ReportRace(w, op, lane, at, "copies to", "read", read);
    }
  });
  return serial_;
}

// Nothing that ran since the issue can be ordered with the copy.
void Sanitizer::CopyDone(const Warp& w, int lane, const AsyncEntry& copy) {
  const Op& op = *copy.op;
  if (copy.source_bytes > 0) Range(w, op, lane, const_cast<uint8_t*>(copy.from), copy.source_bytes, /*write=*/false);
  ++serial_;
  const Touch now = TouchNow(w, op, lane);
  const uint64_t offset = static_cast<uint64_t>(copy.to - block_.shared.host);
  shadow_.ForEach(offset, copy.bytes, generation_, [&](Cell& cell, uint64_t at, uint32_t size) {
    const bool changes = Changes(copy, static_cast<uint32_t>(at - offset), size);
    auto check = [&](const Touch& touch, const char* did) {
      if (!changes || touch.generation != generation_ || touch.serial <= copy.issued) return;
      Finding* finding = AddRace(Finding::SHARED_RACE, w, op, lane, at, touch);
      if (finding == nullptr) return;
      const Program& program = *block_.program;
      *finding->mutable_message() +=
          StrCat("copies to offset ", at, " of shared memory, which thread ", ThreadName(touch.moment.thread), " ", did,
                 " at ", PlaceOf(program, program.code[touch.op]), " before the copy was waited for");
    };
    check(cell.write, "wrote to");
    check(cell.strong_write, "wrote to");
    for (const Touch& read : cell.reads) check(read, "read");
    cell.write = now;
  });
}

void Sanitizer::MbarrierMade(const Warp& w, const Op& op, int lane, uint8_t* host) {
  order_.MbarrierMade(static_cast<uint64_t>(host - block_.shared.host));
  Range(w, op, lane, host, sizeof(uint64_t), /*write=*/true);
}

void Sanitizer::MbarrierArrive(const Warp& w, const Op& op, int lane, uint8_t* host, bool completes) {
  MbarrierAccess(w, op, lane, host, /*write=*/true);
  order_.MbarrierArrive(w.index, lane, static_cast<uint64_t>(host - block_.shared.host), completes);
}

void Sanitizer::MbarrierTest(const Warp& w, const Op& op, int lane, uint8_t* host, bool over) {
  MbarrierAccess(w, op, lane, host, /*write=*/false);
  if (over) order_.MbarrierPassed(w.index, lane, static_cast<uint64_t>(host - block_.shared.host));
}

void Sanitizer::MbarrierAccess(const Warp& w, const Op& op, int lane, uint8_t* host, bool write) {
  uint8_t* hosts[kLanes];
  hosts[lane] = host;
  ++serial_;
  AccessShared(OnlyLane(w, lane), op, hosts, sizeof(uint64_t), write, /*values=*/false, /*strong=*/true);
}

}  // namespace solstice::device
