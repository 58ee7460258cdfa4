// Address checks off the fast path, and what a fault says.
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/launch.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

using base::StrCat;
using v1::internal::Fault;
using v1::internal::RunOutcome;

std::string HexAddress(uint64_t value) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), kDigits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

std::string Triple(const int64_t (&v)[3]) { return StrCat("(", v[0], ",", v[1], ",", v[2], ")"); }

// The region that an address belongs to, `*address` made relative to regions whose own addresses start at 0.
const Region* FindRegion(const Warp& w, AddressSpace space, uint64_t address) {
  const Block& block = *w.block;
  if (space == AddressSpace::kShared) return address < block.shared.bytes ? &block.shared : nullptr;
  if (address - kSharedWindow < kWindowBytes && space == AddressSpace::kGeneric) {
    return address - kSharedWindow < block.shared.bytes ? &block.shared_window : nullptr;
  }
  if (address - kParamWindow < kWindowBytes) {
    return address - kParamWindow < block.parameters.bytes ? &block.parameters : nullptr;
  }
  return block.memory->Find(address);
}

void Refuse(Warp& w, const Op& op, const LaneAccess& what, int lane, uint64_t address) {
  const uint32_t bytes = what.bytes;
  const Block& block = *w.block;
  const std::string access = StrCat(what.write ? "writes " : "reads ", bytes, bytes == 1 ? " byte at " : " bytes at ");
  if (what.space == AddressSpace::kShared || address - kSharedWindow < kWindowBytes) {
    const uint64_t offset = what.space == AddressSpace::kShared ? address : address - kSharedWindow;
    RaiseFault(
        w, op, Fault::OUT_OF_BOUNDS, lane, address,
        StrCat(access, "offset ", HexAddress(offset), " of shared memory, which has ", block.shared.bytes, " bytes (",
               block.program->static_shared_bytes, " static, ", block.launch->dynamic_shared_bytes, " dynamic)"));
    return;
  }
  if (what.space == AddressSpace::kLocal || address - kLocalWindow < kWindowBytes) {
    const uint64_t offset = what.space == AddressSpace::kLocal ? address : address - kLocalWindow;
    RaiseFault(w, op, Fault::OUT_OF_BOUNDS, lane, address,
               StrCat(access, "offset ", HexAddress(offset), " of the thread's local memory, which has ",
                      w.frame->local_top, " bytes"));
    return;
  }
  if (address - kParamWindow < kWindowBytes) {
    RaiseFault(w, op, Fault::OUT_OF_BOUNDS, lane, address,
               StrCat(access, "offset ", address - kParamWindow, " of the kernel's parameters, which have ",
                      block.parameters.bytes, " bytes"));
    return;
  }
  RaiseFault(w, op, Fault::OUT_OF_BOUNDS, lane, address,
             StrCat(access, HexAddress(address), ", ", block.memory->DescribeNearest(address, bytes)));
}

}  // namespace

std::string PlaceOf(const Program& program, const Op& op) {
  const size_t index = static_cast<size_t>(&op - program.code.data());
  if (index >= program.sources.size()) return program.entry;
  const OpSource& source = program.sources[index];
  if (source.line > 0 && source.file >= 0 && static_cast<size_t>(source.file) < program.file_names.size() &&
      !program.file_names[source.file].empty()) {
    return StrCat(program.file_names[source.file], ":", source.line);
  }
  return StrCat("PTX line ", source.ptx_line);
}

void RaiseFault(Warp& w, const Op& op, Fault::Kind kind, int lane, uint64_t address, const std::string& what) {
  Block& block = *w.block;
  w.stop = nullptr;
  if (block.failed) return;
  block.failed = true;
  const Program& program = *block.program;
  block.outcome.set_kind(RunOutcome::FAULT);
  Fault& fault = *block.outcome.mutable_fault();
  fault.set_kind(kind);
  fault.set_kernel(program.entry);
  fault.set_address(address);
  const int64_t index[3] = {block.index[0], block.index[1], block.index[2]};
  const int64_t thread[3] = {w.tid[0][lane], w.tid[1][lane], w.tid[2][lane]};
  for (int i = 0; i < 3; ++i) {
    fault.add_block(index[i]);
    fault.add_thread(thread[i]);
  }
  const size_t at = static_cast<size_t>(&op - program.code.data());
  if (at < program.sources.size()) {
    const OpSource& source = program.sources[at];
    if (source.line > 0 && source.file >= 0 && static_cast<size_t>(source.file) < program.file_names.size()) {
      fault.set_file(program.file_names[source.file]);
      fault.set_line(source.line);
    }
  }
  fault.set_message(StrCat(program.entry, " at ", PlaceOf(program, op), ": block ", Triple(index), " thread ",
                           Triple(thread), " ", what));
  block.outcome.set_reason(fault.message());
}

void RaiseOutcome(Warp& w, RunOutcome::Kind kind, const std::string& reason) {
  Block& block = *w.block;
  w.stop = nullptr;
  if (block.failed) return;
  block.failed = true;
  block.outcome.set_kind(kind);
  block.outcome.set_reason(reason);
}

uint8_t* ResolveLane(Warp& w, const Op& op, const LaneAccess& access, int lane, uint64_t address, const Region** last) {
  const auto [space, bytes, alignment, write] = access;
  if (alignment != 0 && (alignment & (alignment - 1)) == 0 && address % alignment != 0) {
    RaiseFault(w, op, Fault::MISALIGNED, lane, address,
               StrCat(write ? "writes " : "reads ", bytes, " bytes at address ", HexAddress(address),
                      ", which is not a multiple of ", alignment));
    return nullptr;
  }
  const bool generic_local = space == AddressSpace::kGeneric && address - kLocalWindow < kWindowBytes;
  if (space == AddressSpace::kLocal || generic_local) {
    const uint64_t offset = generic_local ? address - kLocalWindow : address;
    const uint64_t top = static_cast<uint64_t>(w.frame->local_top);
    if (offset >= top || top - offset < bytes) {
      Refuse(w, op, access, lane, address);
      return nullptr;
    }
    return w.local + static_cast<uint64_t>(lane) * static_cast<uint64_t>(w.local_capacity) + offset;
  }
  const Region* region = *last;
  if (region == nullptr || address - region->begin >= region->bytes) region = FindRegion(w, space, address);
  if (region == nullptr || region->bytes - (address - region->begin) < bytes) {
    Refuse(w, op, access, lane, address);
    return nullptr;
  }
  if (write && region->read_only) {
    RaiseFault(w, op, Fault::READ_ONLY_WRITE, lane, address,
               StrCat("writes ", bytes, bytes == 1 ? " byte" : " bytes", " at offset ", address - region->begin, " of ",
                      region->name, ", which is read-only"));
    return nullptr;
  }
  *last = region;
  return region->host + (address - region->begin);
}

bool ResolveSlow(Warp& w, const Op& op, const uint64_t* addresses, uint32_t bytes, bool write, uint8_t** host) {
  Block& block = *w.block;
  const Region* last = nullptr;
  const LaneAccess access{op.space, bytes, bytes, write};
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    host[i] = ResolveLane(w, op, access, i, addresses[i], &last);
    if (host[i] == nullptr) return false;
  }
  // Shared memory has no entry: its address and size are those of the block.
  if (op.space != AddressSpace::kShared) block.region_cache[&op - block.program->code.data()] = last;
  return true;
}

void TellAccess(Warp& w, const Op& op, uint8_t* const* host, uint32_t bytes, bool write, bool values) {
  w.block->sanitizer->Access(w, op, host, bytes, write, values);
}

const uint8_t* PeekGeneric(const Warp& w, int lane, uint64_t address, uint64_t bytes) {
  if (address - kLocalWindow < kWindowBytes) {
    const uint64_t offset = address - kLocalWindow;
    const uint64_t top = static_cast<uint64_t>(w.local_capacity);
    if (offset >= top || top - offset < bytes) return nullptr;
    return w.local + static_cast<uint64_t>(lane) * w.local_capacity + offset;
  }
  const Region* region = FindRegion(w, AddressSpace::kGeneric, address);
  if (region == nullptr || region->bytes - (address - region->begin) < bytes) return nullptr;
  return region->host + (address - region->begin);
}

std::string PeekString(const Warp& w, int lane, uint64_t address, size_t limit) {
  std::string text;
  while (text.size() < limit) {
    const uint8_t* byte = PeekGeneric(w, lane, address + text.size(), 1);
    if (byte == nullptr || *byte == 0) break;
    text.push_back(static_cast<char>(*byte));
  }
  return text;
}

}  // namespace solstice::device
