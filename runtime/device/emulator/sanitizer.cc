#include "runtime/device/emulator/sanitizer.h"

#include <algorithm>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/launch.h"

namespace solstice::device {
namespace {

using base::StrCat;
using v1::Finding;

template <typename F>
void ForMask(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

template <typename T>
std::string Triple(const T (&v)[3]) {
  return StrCat("(", v[0], ",", v[1], ",", v[2], ")");
}

std::string Count(uint64_t bytes) { return StrCat(bytes, bytes == 1 ? " byte" : " bytes"); }

void SetPlace(const Program& program, size_t op, std::string* file, int32_t* line) {
  if (op >= program.sources.size()) return;
  const OpSource& source = program.sources[op];
  if (source.line <= 0 || source.file < 0 || static_cast<size_t>(source.file) >= program.file_names.size()) return;
  *file = program.file_names[source.file];
  *line = source.line;
}

}  // namespace

Sanitizer::Sanitizer(Block& block, const std::vector<WrittenMap>& maps)
    : block_(block), maps_(maps), order_(block.warps.size()), shadow_(block.shared.bytes), local_(block.warps.size()) {}

std::string Sanitizer::ThreadName(int thread) const {
  const Warp& w = block_.warps[thread / kLanes];
  const uint32_t index[3] = {w.tid[0][thread % kLanes], w.tid[1][thread % kLanes], w.tid[2][thread % kLanes]};
  return Triple(index);
}

void Sanitizer::Start() {
  ++generation_;
  order_.Start();
  for (auto& lanes : local_) {
    for (std::vector<uint8_t>& written : lanes) std::fill(written.begin(), written.end(), 0);
  }
}

void Sanitizer::Finish(Findings* findings) { findings->Merge(std::exchange(entries_, {})); }

Finding* Sanitizer::Add(Finding::Kind kind, const Warp& w, const Op& op, int lane) {
  const auto [at, inserted] = entries_.emplace(FindingKey{kind, &op}, FindingEntry{});
  Finding& finding = at->second.finding;
  finding.set_count(finding.count() + 1);
  if (!inserted) return nullptr;
  at->second.block = block_.number;
  finding.set_kind(kind);
  finding.set_kernel(block_.program->entry);
  std::string file;
  int32_t line = 0;
  SetPlace(*block_.program, static_cast<size_t>(&op - block_.program->code.data()), &file, &line);
  finding.set_file(file);
  finding.set_line(line);
  for (int i = 0; i < 3; ++i) {
    finding.add_block(block_.index[i]);
    finding.add_thread(w.tid[i][lane]);
  }
  finding.set_message(StrCat(block_.program->entry, " at ", PlaceOf(*block_.program, op), ": block ",
                             Triple(block_.index), " thread ", ThreadName(w.index * kLanes + lane), " "));
  return &finding;
}

// ---- Memory to which nothing was written ---------------------------------------------------------------------------

const WrittenMap* Sanitizer::Find(const uint8_t* host) const {
  auto after = std::upper_bound(maps_.begin(), maps_.end(), host,
                                [](const uint8_t* h, const WrittenMap& m) { return h < m.host; });
  if (after == maps_.begin()) return nullptr;
  const WrittenMap& map = *std::prev(after);
  return static_cast<uint64_t>(host - map.host) < map.bytes ? &map : nullptr;
}

void Sanitizer::ReportUnwritten(const Warp& w, const Op& op, int lane, uint64_t address, uint32_t bytes,
                                const std::string& buffer, const std::string& where) {
  Finding* finding = Add(Finding::UNINITIALIZED_READ, w, op, lane);
  if (finding == nullptr) return;
  finding->set_address(address);
  finding->set_buffer(buffer);
  *finding->mutable_message() += StrCat("reads ", Count(bytes), " at ", where, ", to which nothing was written");
}

void Sanitizer::Access(const Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes, bool write, bool values) {
  const bool strong = (op.flags & kStrong) != 0;
  if (strong) Order(w, op, host, !write, write);
  AccessAny(w, op, host, bytes, write, values, strong);
}

void Sanitizer::Range(const Warp& w, const Op& op, int lane, uint8_t* host, uint32_t bytes, bool write) {
  uint8_t* hosts[kLanes];
  hosts[lane] = host;
  AccessAny(OnlyLane(w, lane), op, hosts, bytes, write, /*values=*/false, /*strong=*/false);
}

Warp Sanitizer::OnlyLane(const Warp& w, int lane) {
  Warp one;
  one.block = w.block;
  one.index = w.index;
  one.local = w.local;
  one.local_capacity = w.local_capacity;
  std::copy_n(w.bases, 2, one.bases);
  for (int i = 0; i < 3; ++i) one.tid[i][lane] = w.tid[i][lane];
  one.mask = uint32_t{1} << lane;
  return one;
}

void Sanitizer::AccessAny(const Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes, bool write, bool values,
                          bool strong) {
  ++serial_;
  const uint8_t* shared = block_.shared.host;
  const uint8_t* local = w.local;
  const uint64_t local_bytes = static_cast<uint64_t>(w.local_capacity) * kLanes;
  const uint32_t element = std::max<uint32_t>(op.bytes, 1);
  ForMask(w.mask, [&](int lane) {
    const uint8_t* at = host[lane];
    if (static_cast<uint64_t>(at - shared) < block_.shared.bytes) return;  // below
    uint8_t* written = nullptr;
    uint64_t offset = 0;
    const WrittenMap* map = nullptr;
    if (static_cast<uint64_t>(at - local) < local_bytes) {
      offset = static_cast<uint64_t>(at - local) % static_cast<uint64_t>(w.local_capacity);
      std::vector<uint8_t>& lane_written = local_[w.index][lane];
      if (lane_written.size() < offset + bytes) lane_written.resize(offset + bytes);
      written = lane_written.data() + offset;
    } else if ((map = Find(at)) != nullptr) {
      offset = static_cast<uint64_t>(at - map->host);
      written = map->written + offset;
    }
    if (written == nullptr) return;
    if (write) {
      for (uint32_t b = 0; b < bytes; ++b) __atomic_store_n(written + b, uint8_t{1}, __ATOMIC_RELAXED);
      return;
    }
    for (uint32_t e = 0; e < bytes; e += element) {
      bool any = false;
      for (uint32_t b = e; b < std::min(e + element, bytes); ++b) {
        any |= __atomic_load_n(written + b, __ATOMIC_RELAXED) != 0;
      }
      if (any) continue;
      if (map != nullptr) {
        ReportUnwritten(w, op, lane, map->address + offset + e, element, map->name,
                        StrCat("offset ", offset + e, " of ", map->name, " (", Count(map->bytes), ")"));
      } else {
        ReportUnwritten(w, op, lane, offset + e, element, "local memory",
                        StrCat("offset ", offset + e, " of the thread's local memory"));
      }
      break;
    }
  });
  AccessShared(w, op, host, bytes, write, values, strong);
}

void Sanitizer::ClearLocal(const Warp& w, int64_t begin, int64_t end) {
  ForMask(w.mask, [&](int lane) { ClearLocal(w, lane, begin, end); });
}

void Sanitizer::ClearLocal(const Warp& w, int lane, int64_t begin, int64_t end) {
  if (end <= begin) return;
  std::vector<uint8_t>& written = local_[w.index][lane];
  if (written.size() < static_cast<size_t>(end)) written.resize(static_cast<size_t>(end));
  std::fill(written.begin() + begin, written.begin() + end, 0);
}

void Sanitizer::CopyLocal(const Warp& w, int64_t to, int64_t from, int64_t bytes) {
  ForMask(w.mask, [&](int lane) {
    std::vector<uint8_t>& written = local_[w.index][lane];
    const size_t needed = static_cast<size_t>(std::max(to, from) + bytes);
    if (written.size() < needed) written.resize(needed);
    std::memmove(written.data() + to, written.data() + from, static_cast<size_t>(bytes));
  });
}

void Sanitizer::MarkLocal(const Warp& w, int64_t begin, int64_t bytes) {
  ForMask(w.mask, [&](int lane) {
    std::vector<uint8_t>& written = local_[w.index][lane];
    if (written.size() < static_cast<size_t>(begin + bytes)) written.resize(static_cast<size_t>(begin + bytes));
    std::fill_n(written.begin() + begin, bytes, uint8_t{1});
  });
}

// ---- Shared memory -------------------------------------------------------------------------------------------------

uint8_t Sanitizer::NewByte(const Warp& w, const Op& op, int lane, uint32_t byte) const {
  const uint32_t element = byte / op.bytes;
  const uint32_t operand = op.count == 1 ? op.c : block_.program->lists[op.target][element];
  const uint32_t register_bytes = op.kind;
  const uint8_t* lanes = w.bases[operand >> 31] + (operand & ~kConstantBit);
  return lanes[static_cast<uint32_t>(lane) * register_bytes + byte % op.bytes];
}

Finding* Sanitizer::AddRace(Finding::Kind kind, const Warp& w, const Op& op, int lane, uint64_t offset,
                            const Touch& earlier) {
  Finding* finding = Add(kind, w, op, lane);
  if (finding == nullptr) return nullptr;
  finding->set_address(offset);
  finding->set_buffer("shared memory");
  int32_t line = 0;
  SetPlace(*block_.program, earlier.op, finding->mutable_other_file(), &line);
  finding->set_other_line(line);
  return finding;
}

void Sanitizer::ReportRace(const Warp& w, const Op& op, int lane, uint64_t offset, const char* does, const char* did,
                           const Touch& earlier) {
  const bool same_warp = earlier.moment.thread / kLanes == w.index;
  Finding* finding =
      AddRace(same_warp ? Finding::MISSING_SYNCWARP : Finding::SHARED_RACE, w, op, lane, offset, earlier);
  if (finding == nullptr) return;
  const Program& program = *block_.program;
  *finding->mutable_message() +=
      StrCat(does, " offset ", offset, " of shared memory, which thread ", ThreadName(earlier.moment.thread),
             same_warp ? " of the same warp " : " ", did, " at ", PlaceOf(program, program.code[earlier.op]),
             ", with no ", same_warp ? "__syncwarp" : "barrier", " between");
}

Sanitizer::Touch Sanitizer::TouchNow(const Warp& w, const Op& op, int lane) const {
  Touch now;
  now.generation = generation_;
  now.serial = serial_;
  now.op = static_cast<uint32_t>(&op - block_.program->code.data());
  now.moment = order_.Now(w.index, lane);
  return now;
}

void Sanitizer::Order(const Warp& w, const Op& op, uint8_t* const* host, bool reads, bool writes) {
  ForMask(w.mask, [&](int lane) {
    const uint64_t offset = static_cast<uint64_t>(host[lane] - block_.shared.host);
    if (offset >= block_.shared.bytes) return;
    order_.Strong(w.index, offset, reads, writes, (op.flags & kAcquire) != 0, (op.flags & kRelease) != 0);
  });
}

void Sanitizer::CheckWrite(const Warp& w, const Op& op, uint8_t* const* host, int lane, Cell* cell, uint32_t byte,
                           uint32_t size, bool values, const Touch& now) {
  const uint64_t offset = static_cast<uint64_t>(host[lane] + byte - block_.shared.host);
  // Whether one of the bytes is not this already.
  auto differs = [&](auto that) {
    for (uint32_t b = byte; b < byte + size; ++b) {
      if (NewByte(w, op, lane, b) != that(b)) return true;
    }
    return false;
  };
  if (cell->write.generation == generation_ && cell->write.serial == serial_) {
    // Another lane of this very instruction: what it writes is still in its registers.
    const int other = cell->write.moment.thread % kLanes;
    const int64_t apart = host[lane] - host[other];
    if (!values || differs([&](uint32_t b) { return NewByte(w, op, other, static_cast<uint32_t>(b + apart)); })) {
      ReportRace(w, op, lane, offset, "writes to", "writes to", cell->write);
    }
  } else if (!values || differs([&](uint32_t b) { return host[lane][b]; })) {
    // Writing what is there already disturbs nobody.
    for (const Touch* write : {&cell->write, &cell->strong_write}) {
      if (Conflict(*write, now, w.index, lane)) ReportRace(w, op, lane, offset, "writes to", "wrote to", *write);
    }
    for (const Touch& read : cell->reads) {
      if (Conflict(read, now, w.index, lane)) ReportRace(w, op, lane, offset, "writes to", "read", read);
    }
  }
  (now.strong ? cell->strong_write : cell->write) = now;
}

void Sanitizer::NoteRead(Cell* cell, const Touch& now) {
  // The latest of two warps at most.
  const int warp = now.moment.thread / kLanes;
  Touch& first = cell->reads[0];
  if (first.generation == generation_ && first.moment.thread / kLanes != warp) cell->reads[1] = first;
  first = now;
}

bool Sanitizer::CheckRead(const Warp& w, const Op& op, int lane, uint64_t offset, uint32_t bytes, const Touch& now) {
  const uint32_t element = std::max<uint32_t>(op.bytes, 1);
  bool foreign = true, any = false;
  uint64_t element_begin = offset;
  shadow_.ForEach(offset, bytes, generation_, [&](Cell& cell, uint64_t at, uint32_t size) {
    auto check = [&](const Touch& written) {
      if (written.generation != generation_) return;
      any = true;
      foreign &= written.moment.thread / kLanes != w.index;
      if (Conflict(written, now, w.index, lane)) ReportRace(w, op, lane, at, "reads", "wrote to", written);
    };
    check(cell.write);
    check(cell.strong_write);
    NoteRead(&cell, now);
    if (at + size - element_begin < element) return;
    if (!any) {
      ReportUnwritten(w, op, lane, element_begin, element, "shared memory",
                      StrCat("offset ", element_begin, " of shared memory"));
    }
    any = false;
    element_begin = at + size;
  });
  return foreign;
}

void Sanitizer::AccessShared(const Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes, bool write, bool values,
                             bool strong) {
  const uint8_t* shared = block_.shared.host;
  uint64_t before = ~uint64_t{0};  // what the lane before read, if the same holds for all lanes of this warp
  ForMask(w.mask, [&](int lane) {
    const uint64_t offset = static_cast<uint64_t>(host[lane] - shared);
    if (offset >= block_.shared.bytes || offset == before) return;
    Touch now = TouchNow(w, op, lane);
    now.strong = strong;
    if (write) {
      shadow_.ForEach(offset, bytes, generation_, [&](Cell& cell, uint64_t at, uint32_t size) {
        CheckWrite(w, op, host, lane, &cell, static_cast<uint32_t>(at - offset), size, values, now);
      });
    } else {
      before = CheckRead(w, op, lane, offset, bytes, now) ? offset : ~uint64_t{0};
    }
  });
}

void Sanitizer::Atomic(const Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes) {
  // Lanes of one instruction take turns.
  const uint8_t* shared = block_.shared.host;
  ForMask(w.mask, [&](int lane) {
    ++serial_;
    const uint64_t offset = static_cast<uint64_t>(host[lane] - shared);
    if (offset < block_.shared.bytes) {
      bool unwritten = true;
      shadow_.ForEach(offset, bytes, generation_, [&](const Cell& cell, uint64_t, uint32_t) {
        unwritten &= cell.write.generation != generation_ && cell.strong_write.generation != generation_;
      });
      if (unwritten && op.d != kNoOperand) {
        ReportUnwritten(w, op, lane, offset, bytes, "shared memory", StrCat("offset ", offset, " of shared memory"));
      }
      const Warp one = OnlyLane(w, lane);
      Order(one, op, host, /*reads=*/true, /*writes=*/true);
      AccessShared(one, op, host, bytes, /*write=*/true, /*values=*/false, /*strong=*/true);
      return;
    }
    const WrittenMap* map = Find(host[lane]);
    if (map == nullptr) return;
    uint8_t* written = map->written + (host[lane] - map->host);
    bool any = false;
    for (uint32_t b = 0; b < bytes; ++b) any |= __atomic_exchange_n(written + b, uint8_t{1}, __ATOMIC_RELAXED) != 0;
    if (any) return;
    const uint64_t at = static_cast<uint64_t>(host[lane] - map->host);
    ReportUnwritten(w, op, lane, map->address + at, bytes, map->name,
                    StrCat("offset ", at, " of ", map->name, " (", Count(map->bytes), ")"));
  });
}

// ---- Barriers ------------------------------------------------------------------------------------------------------

void Sanitizer::Complete(int barrier, bool counted) {
  std::vector<std::pair<int, uint32_t>> waiting;
  const Group* first = nullptr;
  const Warp* first_warp = nullptr;
  uint32_t threads = 0;
  for (const Warp& w : block_.warps) {
    uint32_t lanes = 0;
    const Group* own = nullptr;
    for (const Group& group : w.groups) {
      if (group.wait != Wait::kBarrier || group.barrier != barrier) continue;
      lanes |= group.mask;
      // Within a warp always, between warps where all threads of the block are meant.
      const Group* other = own != nullptr ? own : counted ? nullptr : first;
      if (other != nullptr && other->pc != group.pc) {
        const Program& program = *block_.program;
        const int lane = __builtin_ctz(group.mask);
        if (Finding* finding = Add(Finding::BARRIER_DIVERGENCE, w, *group.pc, lane); finding != nullptr) {
          int32_t line = 0;
          SetPlace(program, static_cast<size_t>(other->pc - program.code.data()), finding->mutable_other_file(), &line);
          finding->set_other_line(line);
          *finding->mutable_message() +=
              StrCat("waits here at barrier ", barrier, ", other threads of its ", own != nullptr ? "warp" : "block",
                     " at ", PlaceOf(program, *other->pc));
        }
      }
      own = &group;
      if (first == nullptr) {
        first = &group;
        first_warp = &w;
      }
    }
    threads += static_cast<uint32_t>(__builtin_popcount(lanes));
    if (lanes != 0) waiting.emplace_back(w.index, lanes);
  }
  const uint32_t* shape = block_.launch->block;
  const uint32_t all = shape[0] * shape[1] * shape[2];
  if (!counted && first != nullptr && threads < all) {
    const int lane = __builtin_ctz(first->mask);
    if (Finding* finding = Add(Finding::BARRIER_DIVERGENCE, *first_warp, *first->pc, lane); finding != nullptr) {
      *finding->mutable_message() += StrCat("waits at barrier ", barrier, " with ", threads, " of ", all,
                                            " threads of the block; the others ended without it");
    }
  }
  order_.Complete(barrier, waiting);
}

}  // namespace solstice::device
