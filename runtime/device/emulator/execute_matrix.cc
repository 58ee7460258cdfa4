// Matrix instructions: all lanes of a warp meet, and hold or move a matrix together. Lanes that ended count as zeros.
#include <cstring>
#include <span>

#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/meeting.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

using v1::internal::Fault;

constexpr int kMostRuns = 32;  // rows or columns of a fragment

const std::vector<uint32_t>& ListOf(const Warp& w, const Op& op) { return w.block->program->lists[op.target]; }

// The whole warp, met. Where lanes come from several places, they must execute the same there.
class Assembly {
 public:
  Assembly(Warp& w, const Op& op, bool indexed) : one_{w.mask, &op, w.frame} {
    if (w.mask == w.live) {
      lanes_ = w.mask;
      parts_ = {&one_, 1};
      return;
    }
    meeting_ = Arrive(w, op, kAllLanes);
    if (!meeting_.complete) return;
    for (const Part& part : meeting_.parts) {
      const Op& other = *part.op;
      if (other.space == op.space && other.count == op.count && other.bytes == op.bytes && other.flags == op.flags &&
          (!indexed || ListOf(w, other)[0] == ListOf(w, op)[0])) {
        continue;
      }
      RaiseFault(w, other, Fault::BARRIER, __builtin_ctz(part.mask), 0,
                 "executes another matrix instruction than other lanes of its warp");
      return;
    }
    lanes_ = meeting_.lanes;
    parts_ = meeting_.parts;
  }
  Assembly(const Assembly&) = delete;
  Assembly& operator=(const Assembly&) = delete;

  // False: the group waits, or the block failed.
  bool complete() const { return !parts_.empty(); }
  uint32_t lanes() const { return lanes_; }
  std::span<const Part> parts() const { return parts_; }
  bool IsWhole() const { return one_.mask == kAllLanes; }
  const Part& PartOf(int lane) const {
    for (const Part& part : parts_) {
      if (part.mask >> lane & 1) return part;
    }
    return parts_[0];
  }

 private:
  const Part one_;
  Meeting meeting_;
  std::span<const Part> parts_;
  uint32_t lanes_ = 0;
};

uint64_t AddressOf(const Warp& w, const Part& part, int lane) {
  const Op& op = *part.op;
  uint64_t address = static_cast<uint64_t>(op.imm);
  if (op.a == kNoOperand) return address;
  if (!op.address32) return address + Read<uint64_t>(w, part, op.a)[lane];
  return static_cast<uint32_t>(address + Read<uint32_t>(w, part, op.a)[lane]);
}

template <typename T>
void CopyLanes(uint32_t mask, const T* from, T* to) {
  ForMask(mask, [&](int i) { to[i] = from[i]; });
}

// Register `index` of the list, of all lanes.
template <typename T>
void GatherRegister(const Warp& w, const Assembly& all, size_t index, T (&to)[kLanes]) {
  for (const Part& part : all.parts()) CopyLanes(part.mask, Read<T>(w, part, ListOf(w, *part.op)[index]), to);
}
template <typename T>
void ScatterRegister(const Warp& w, const Assembly& all, size_t index, const T (&from)[kLanes]) {
  for (const Part& part : all.parts()) CopyLanes(part.mask, from, Write<T>(part, ListOf(w, *part.op)[index]));
}

template <typename T>
struct Scratch {
  alignas(64) T a[kMostFragmentRegisters][kLanes] = {};
  alignas(64) T b[kMostFragmentRegisters][kLanes] = {};
  alignas(64) T c[kMostFragmentRegisters][kLanes] = {};
  alignas(64) T d[kMostFragmentRegisters][kLanes];
};

// Registers of lanes that are not all there, or not all in one frame.
template <typename T>
void MultiplyParts(const Warp& w, const Assembly& all, const MatrixPlan& plan) {
  Scratch<T> scratch;
  MatrixRegisters registers;
  size_t next = 1 + static_cast<size_t>(plan.d->registers);
  auto gather = [&](const Fragment& fragment, T(&to)[kMostFragmentRegisters][kLanes], const uint8_t** out) {
    for (int r = 0; r < fragment.registers; ++r) {
      GatherRegister(w, all, next++, to[r]);
      out[r] = reinterpret_cast<const uint8_t*>(to[r]);
    }
  };
  gather(*plan.a, scratch.a, registers.a);
  gather(*plan.b, scratch.b, registers.b);
  gather(*plan.c, scratch.c, registers.c);
  for (int r = 0; r < plan.d->registers; ++r) registers.d[r] = reinterpret_cast<uint8_t*>(scratch.d[r]);
  plan.multiply(plan, registers);
  for (int r = 0; r < plan.d->registers; ++r) ScatterRegister(w, all, 1 + static_cast<size_t>(r), scratch.d[r]);
}

// An 8 x 8 matrix of 16-bit elements as ldmatrix spreads it: of lane l, elements 2 (l % 4) and the next of row l / 4,
// or of that column.
struct Tile {
  uint16_t element[8][8] = {};

  uint32_t Get(int lane, bool transposed) const {
    const int i = lane / 4, j = lane % 4 * 2;
    const uint32_t low = transposed ? element[j][i] : element[i][j];
    const uint32_t high = transposed ? element[j + 1][i] : element[i][j + 1];
    return low | high << 16;
  }
  void Set(int lane, bool transposed, uint32_t bits) {
    const int i = lane / 4, j = lane % 4 * 2;
    (transposed ? element[j][i] : element[i][j]) = static_cast<uint16_t>(bits);
    (transposed ? element[j + 1][i] : element[i][j + 1]) = static_cast<uint16_t>(bits >> 16);
  }
};

// Host bytes of the rows that lanes 0 to 8 * count - 1 name; nullptr: that lane has ended.
bool ResolveRows(Warp& w, const Op& op, const Assembly& all, bool write, uint8_t** rows) {
  const Region* last = nullptr;
  for (int lane = 0; lane < 8 * op.count; ++lane) {
    rows[lane] = nullptr;
    if (!(all.lanes() >> lane & 1)) continue;
    const Part& part = all.PartOf(lane);
    const uint64_t address = AddressOf(w, part, lane);
    rows[lane] = ResolveLane(w, *part.op, {part.op->space, 16, 16, write}, lane, address, &last);
    if (rows[lane] == nullptr) return false;
    if (w.block->sanitizer != nullptr) w.block->sanitizer->Range(w, *part.op, lane, rows[lane], 16, write);
  }
  return true;
}

// Host bytes of the rows (or columns) of a fragment, which lie packed, `stride` elements apart from what the first
// lane names.
bool ResolveRuns(Warp& w, const Assembly& all, const Fragment& fragment, bool write, uint8_t** runs) {
  const int leader = __builtin_ctz(all.lanes());
  const Part& part = all.PartOf(leader);
  const Op& op = *part.op;
  const uint64_t step = uint64_t{Read<uint32_t>(w, part, op.b)[leader]} * op.bytes;
  const bool by_rows = op.flags & 1;
  const int count = by_rows ? fragment.rows : fragment.columns;
  const uint32_t bytes = static_cast<uint32_t>((by_rows ? fragment.columns : fragment.rows) * op.bytes);
  const LaneAccess access{op.space, bytes, op.bytes, write};
  const Region* last = nullptr;
  uint64_t address = AddressOf(w, part, leader);
  for (int i = 0; i < count; ++i, address += step) {
    if (op.address32) address = static_cast<uint32_t>(address);
    runs[i] = ResolveLane(w, op, access, leader, address, &last);
    if (runs[i] == nullptr) return false;
    if (w.block->sanitizer != nullptr) w.block->sanitizer->Range(w, op, leader, runs[i], bytes, write);
  }
  return true;
}

// Calls visit(register, shift, lane, host bytes) for each element.
template <typename F>
void ForElements(const Fragment& fragment, const Op& op, int registers, uint8_t* const* runs, F visit) {
  const uint16_t* position = fragment.position.data();
  for (int r = 0; r < registers; ++r) {
    for (int part = 0; part < fragment.parts; ++part) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const int at = *position++;
        const int row = at / fragment.columns, column = at % fragment.columns;
        uint8_t* p = op.flags & 1 ? runs[row] + column * op.bytes : runs[column] + row * op.bytes;
        visit(r, part * op.bytes * 8, lane, p);
      }
    }
  }
}

template <typename Word>
void LoadFragment(Warp& w, const Op& op, const Assembly& all, const Fragment& fragment, uint8_t* const* runs) {
  Word word[kMostFragmentRegisters][kLanes] = {};
  ForElements(fragment, op, fragment.registers, runs, [&](int r, int shift, int lane, const uint8_t* p) {
    Word element = 0;
    std::memcpy(&element, p, op.bytes);
    word[r][lane] |= element << shift;
  });
  for (int r = 0; r < fragment.registers; ++r) ScatterRegister(w, all, 1 + static_cast<size_t>(r), word[r]);
}

template <typename Word>
void StoreFragment(Warp& w, const Op& op, const Assembly& all, const Fragment& fragment, uint8_t* const* runs) {
  Word word[kMostFragmentRegisters][kLanes] = {};
  for (int r = 0; r < fragment.distinct; ++r) GatherRegister(w, all, 1 + static_cast<size_t>(r), word[r]);
  ForElements(fragment, op, fragment.distinct, runs, [&](int r, int shift, int lane, uint8_t* p) {
    if (!(all.lanes() >> lane & 1)) return;
    const Word element = word[r][lane] >> shift;
    std::memcpy(p, &element, op.bytes);
  });
}

}  // namespace

void ExecMatrixMultiply(Warp& w, const Op& op) {
  const Assembly all(w, op, true);
  if (!all.complete()) return;
  const uint32_t* list = ListOf(w, op).data();
  const MatrixPlan& plan = w.block->program->matrices[*list++];
  if (!all.IsWhole()) {
    if (plan.a->register_bytes == 8) return MultiplyParts<uint64_t>(w, all, plan);
    return MultiplyParts<uint32_t>(w, all, plan);
  }
  MatrixRegisters registers;
  for (int r = 0; r < plan.d->registers; ++r) registers.d[r] = w.Dst<uint8_t>(*list++);
  for (int r = 0; r < plan.a->registers; ++r) registers.a[r] = w.Src<uint8_t>(*list++);
  for (int r = 0; r < plan.b->registers; ++r) registers.b[r] = w.Src<uint8_t>(*list++);
  for (int r = 0; r < plan.c->registers; ++r) registers.c[r] = w.Src<uint8_t>(*list++);
  plan.multiply(plan, registers);
}

void ExecMatrixTranspose(Warp& w, const Op& op) {
  const Assembly all(w, op, false);
  if (!all.complete()) return;
  Tile tile;
  for (const Part& part : all.parts()) {
    const uint32_t* a = Read<uint32_t>(w, part, part.op->a);
    ForMask(part.mask, [&](int i) { tile.Set(i, false, a[i]); });
  }
  for (const Part& part : all.parts()) {
    uint32_t* d = Write<uint32_t>(part, part.op->d);
    ForMask(part.mask, [&](int i) { d[i] = tile.Get(i, true); });
  }
}

void ExecMatrixRead(Warp& w, const Op& op) {
  const Assembly all(w, op, false);
  if (!all.complete()) return;
  uint8_t* rows[kLanes];
  if (!ResolveRows(w, op, all, false, rows)) return;
  // All rows are read before a register changes: one of them may hold the addresses.
  Tile tiles[4];
  for (int lane = 0; lane < 8 * op.count; ++lane) {
    if (rows[lane] != nullptr) std::memcpy(tiles[lane / 8].element[lane % 8], rows[lane], 16);
  }
  for (int j = 0; j < op.count; ++j) {
    uint32_t word[kLanes];
    for (int i = 0; i < kLanes; ++i) word[i] = tiles[j].Get(i, op.flags & 1);
    ScatterRegister(w, all, static_cast<size_t>(j), word);
  }
}

void ExecMatrixWrite(Warp& w, const Op& op) {
  const Assembly all(w, op, false);
  if (!all.complete()) return;
  uint8_t* rows[kLanes];
  if (!ResolveRows(w, op, all, true, rows)) return;
  for (int j = 0; j < op.count; ++j) {
    uint32_t word[kLanes] = {};
    GatherRegister(w, all, static_cast<size_t>(j), word);
    Tile tile;
    for (int i = 0; i < kLanes; ++i) tile.Set(i, op.flags & 1, word[i]);
    for (int i = 0; i < 8; ++i) {
      if (rows[8 * j + i] != nullptr) std::memcpy(rows[8 * j + i], tile.element[i], 16);
    }
  }
}

void ExecFragmentLoad(Warp& w, const Op& op) {
  const Assembly all(w, op, true);
  if (!all.complete()) return;
  const Fragment& fragment = w.block->program->fragments[ListOf(w, op)[0]];
  uint8_t* runs[kMostRuns];
  if (!ResolveRuns(w, all, fragment, false, runs)) return;
  if (fragment.register_bytes == 8) return LoadFragment<uint64_t>(w, op, all, fragment, runs);
  LoadFragment<uint32_t>(w, op, all, fragment, runs);
}

void ExecFragmentStore(Warp& w, const Op& op) {
  const Assembly all(w, op, true);
  if (!all.complete()) return;
  const Fragment& fragment = w.block->program->fragments[ListOf(w, op)[0]];
  uint8_t* runs[kMostRuns];
  if (!ResolveRuns(w, all, fragment, true, runs)) return;
  if (fragment.register_bytes == 8) return StoreFragment<uint64_t>(w, op, all, fragment, runs);
  StoreFragment<uint32_t>(w, op, all, fragment, runs);
}

}  // namespace solstice::device
