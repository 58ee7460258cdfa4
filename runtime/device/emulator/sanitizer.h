// The emulator's sanitizer: reads of memory that nothing was written to, races in shared memory, threads that part at
// barriers. A device stops at none of them. What stops it (bounds, alignment, read-only memory) is a fault in any run
// and is access.cc's. One a block; its host thread calls it. docs/sanitizer.md says what is found and what is not.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "runtime/device/emulator/findings.h"
#include "runtime/device/emulator/happens_before.h"
#include "runtime/device/emulator/shared_shadow.h"
#include "runtime/device/emulator/warp.h"

namespace solstice::device {

// Which bytes of a tensor a kernel or a memset has written. Blocks write to it from several threads at once.
struct WrittenMap {
  const uint8_t* host = nullptr;
  uint64_t bytes = 0;
  uint8_t* written = nullptr;  // one a byte; 0: not
  uint64_t address = 0;
  std::string name;
};

class Sanitizer {
 public:
  // `maps` sorted by host address.
  Sanitizer(Block& block, const std::vector<WrittenMap>& maps);

  // Host memory of one, beside what the kernel's local memory takes.
  static int64_t BytesFor(int64_t shared_bytes) { return SharedShadow::BytesFor(shared_bytes); }

  // A block starts, or has ended.
  void Start();
  void Finish(Findings* findings);

  // Active lanes access `bytes` at `host`. `values`: a store of registers, whose values can be looked at.
  void Access(const Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes, bool write, bool values);
  void Atomic(const Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes);
  // One lane's access that is more than a register wide.
  void Range(const Warp& w, const Op& op, int lane, uint8_t* host, uint32_t bytes, bool write);
  // A copy to shared memory is issued, and done. Issue returns what Done is told of it.
  uint32_t CopyIssued(const Warp& w, const Op& op, int lane, const AsyncEntry& copy);
  void CopyDone(const Warp& w, int lane, const AsyncEntry& copy);
  // An mbarrier at `host`: made or unmade; arrived at or changed; looked at.
  void MbarrierMade(const Warp& w, const Op& op, int lane, uint8_t* host);
  void MbarrierArrive(const Warp& w, const Op& op, int lane, uint8_t* host, bool completes);
  void MbarrierTest(const Warp& w, const Op& op, int lane, uint8_t* host, bool over);
  void Fence(const Warp& w) { order_.Fence(w.index); }
  void SyncWarp(const Warp& w, uint32_t lanes) { order_.SyncWarp(w.index, lanes); }
  void Arrive(const Warp& w, int barrier) { order_.Arrive(w.index, barrier); }
  // Before the groups that wait at the barrier go on.
  void Complete(int barrier, bool counted);

  // Local memory: a frame's variables hold nothing yet; a call copies some.
  void ClearLocal(const Warp& w, int64_t begin, int64_t end);
  void ClearLocal(const Warp& w, int lane, int64_t begin, int64_t end);
  void CopyLocal(const Warp& w, int64_t to, int64_t from, int64_t bytes);
  void MarkLocal(const Warp& w, int64_t begin, int64_t bytes);

 private:
  using Touch = SharedShadow::Touch;
  using Cell = SharedShadow::Cell;

  std::string ThreadName(int thread) const;
  // A warp of which only `lane` is active.
  static Warp OnlyLane(const Warp& w, int lane);
  void AccessAny(const Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes, bool write, bool values,
                 bool strong);
  void AccessShared(const Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes, bool write, bool values,
                    bool strong);
  // Of `size` bytes that the access of `lane` writes, from its byte `byte` on.
  void CheckWrite(const Warp& w, const Op& op, uint8_t* const* host, int lane, Cell* cell, uint32_t byte, uint32_t size,
                  bool values, const Touch& now);
  // What `lane` reads was written before. Whether all of it was written by other warps.
  bool CheckRead(const Warp& w, const Op& op, int lane, uint64_t offset, uint32_t bytes, const Touch& now);
  void MbarrierAccess(const Warp& w, const Op& op, int lane, uint8_t* host, bool write);
  void NoteRead(Cell* cell, const Touch& now);
  bool Conflict(const Touch& earlier, const Touch& now, int warp, int lane) const {
    if (earlier.generation != generation_ || (earlier.strong && now.strong)) return false;
    return !order_.Ordered(earlier.moment, warp, lane);
  }
  // Strong accesses of the active lanes to shared memory, for the order of others.
  void Order(const Warp& w, const Op& op, uint8_t* const* host, bool reads, bool writes);
  Touch TouchNow(const Warp& w, const Op& op, int lane) const;
  // Null where it was found before.
  v1::Finding* AddRace(v1::Finding::Kind kind, const Warp& w, const Op& op, int lane, uint64_t offset,
                       const Touch& earlier);
  void ReportRace(const Warp& w, const Op& op, int lane, uint64_t offset, const char* does, const char* did,
                  const Touch& earlier);
  // The byte that a store is about to write.
  uint8_t NewByte(const Warp& w, const Op& op, int lane, uint32_t byte) const;
  void ReportUnwritten(const Warp& w, const Op& op, int lane, uint64_t address, uint32_t bytes,
                       const std::string& buffer, const std::string& where);
  // Null where it was found before; it is counted then.
  v1::Finding* Add(v1::Finding::Kind kind, const Warp& w, const Op& op, int lane);
  const WrittenMap* Find(const uint8_t* host) const;

  Block& block_;
  const std::vector<WrittenMap>& maps_;
  HappensBefore order_;
  SharedShadow shadow_;
  uint32_t generation_ = 0, serial_ = 0;
  std::vector<std::array<std::vector<uint8_t>, kLanes>> local_;  // written bytes, by warp and lane
  std::map<FindingKey, FindingEntry> entries_;
};

}  // namespace solstice::device
