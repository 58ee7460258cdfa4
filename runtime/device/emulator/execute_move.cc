// Special registers, predicates and moves between register sizes.
#include <algorithm>
#include <cstring>

#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/launch.h"

namespace solstice::device {
namespace {

constexpr uint64_t kReservedSharedBytes = 1024;  // that the system keeps of a block's shared memory

uint64_t SpecialValue(const Warp& w, Special special, int lane) {
  const Block& block = *w.block;
  const Launch& launch = *block.launch;
  const uint32_t bit = uint32_t{1} << lane;
  switch (special) {
    case Special::kTidX:
      return w.tid[0][lane];
    case Special::kTidY:
      return w.tid[1][lane];
    case Special::kTidZ:
      return w.tid[2][lane];
    case Special::kNtidX:
      return launch.block[0];
    case Special::kNtidY:
      return launch.block[1];
    case Special::kNtidZ:
      return launch.block[2];
    case Special::kCtaidX:
      return block.index[0];
    case Special::kCtaidY:
      return block.index[1];
    case Special::kCtaidZ:
      return block.index[2];
    case Special::kNctaidX:
      return launch.grid[0];
    case Special::kNctaidY:
      return launch.grid[1];
    case Special::kNctaidZ:
      return launch.grid[2];
    case Special::kLaneid:
      return static_cast<uint64_t>(lane);
    case Special::kWarpid:
      return static_cast<uint64_t>(w.index);
    case Special::kNwarpid:
      return block.warps.size();
    case Special::kSmid:
      return block.number % 132;
    case Special::kNsmid:
      return 132;
    case Special::kGridid:
      return launch.number;
    case Special::kClock:
      return static_cast<uint32_t>(w.executed * 4 + block.slept_ns * 2);
    case Special::kClockHi:
      return (w.executed * 4 + block.slept_ns * 2) >> 32;
    case Special::kClock64:
      return w.executed * 4 + block.slept_ns * 2;
    case Special::kGlobaltimer:
      return launch.run->clock.WallNs();
    case Special::kGlobaltimerLo:
      return static_cast<uint32_t>(launch.run->clock.WallNs());
    case Special::kGlobaltimerHi:
      return launch.run->clock.WallNs() >> 32;
    case Special::kLanemaskEq:
      return bit;
    case Special::kLanemaskLt:
      return bit - 1;
    case Special::kLanemaskLe:
      return (bit - 1) | bit;
    case Special::kLanemaskGt:
      return ~((bit - 1) | bit);
    case Special::kLanemaskGe:
      return ~(bit - 1);
    case Special::kDynamicSharedSize:
      return static_cast<uint64_t>(launch.dynamic_shared_bytes);
    case Special::kTotalSharedSize:
      return block.shared.bytes;
    case Special::kReservedSharedSize:
      return kReservedSharedBytes;
    case Special::kAllSharedSize:
      return block.shared.bytes + kReservedSharedBytes;
    case Special::kZero:
      return 0;
    case Special::kOne:
      return 1;
  }
  return 0;
}

template <typename F>
void ForMask(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

template <typename Whole, typename Part>
void Join(Warp& w, const Op& op) {
  const std::vector<uint32_t>& list = w.block->program->lists[op.target];
  // 8-bit elements stand in 16-bit slots.
  using Slot = std::conditional_t<sizeof(Part) == 1, uint16_t, Part>;
  Whole* d = w.Dst<Whole>(op.d);
  Whole t[kLanes] = {};
  for (size_t e = 0; e < list.size(); ++e) {
    const Slot* s = w.Src<Slot>(list[e]);
    for (int i = 0; i < kLanes; ++i) {
      t[i] = static_cast<Whole>(
          t[i] | static_cast<Whole>(static_cast<Whole>(static_cast<Part>(s[i])) << (e * sizeof(Part) * 8)));
    }
  }
  if (w.mask == kAllLanes) {
    std::memcpy(d, t, sizeof t);
  } else {
    ForMask(w.mask, [&](int i) { d[i] = t[i]; });
  }
}

template <typename Whole, typename Part>
void Split(Warp& w, const Op& op) {
  const std::vector<uint32_t>& list = w.block->program->lists[op.target];
  using Slot = std::conditional_t<sizeof(Part) == 1, uint16_t, Part>;
  // A copy: a destination may be the source.
  Whole a[kLanes];
  std::memcpy(a, w.Src<Whole>(op.a), sizeof a);
  for (size_t e = 0; e < list.size(); ++e) {
    Slot* d = w.Dst<Slot>(list[e]);
    const int shift = static_cast<int>(e * sizeof(Part) * 8);
    if (w.mask == kAllLanes) {
      for (int i = 0; i < kLanes; ++i) d[i] = static_cast<Part>(a[i] >> shift);
    } else {
      ForMask(w.mask, [&](int i) { d[i] = static_cast<Part>(a[i] >> shift); });
    }
  }
}

void Join128(Warp& w, const Op& op) {
  const std::vector<uint32_t>& list = w.block->program->lists[op.target];
  for (uint32_t half = 0; half < 2; ++half) {
    const uint64_t* s = w.Src<uint64_t>(list[half]);
    uint64_t* d = w.Dst<uint64_t>(op.d + half * 256);
    ForMask(w.mask, [&](int i) { d[i] = s[i]; });
  }
}

void Join128Words(Warp& w, const Op& op) {
  const std::vector<uint32_t>& list = w.block->program->lists[op.target];
  for (uint32_t half = 0; half < 2; ++half) {
    const uint32_t* low = w.Src<uint32_t>(list[half * 2]);
    const uint32_t* high = w.Src<uint32_t>(list[half * 2 + 1]);
    uint64_t* d = w.Dst<uint64_t>(op.d + half * 256);
    ForMask(w.mask, [&](int i) { d[i] = uint64_t{high[i]} << 32 | low[i]; });
  }
}

void Split128Words(Warp& w, const Op& op) {
  const std::vector<uint32_t>& list = w.block->program->lists[op.target];
  for (uint32_t half = 0; half < 2; ++half) {
    const uint64_t* s = w.Src<uint64_t>(op.a + half * 256);
    uint32_t* low = w.Dst<uint32_t>(list[half * 2]);
    uint32_t* high = w.Dst<uint32_t>(list[half * 2 + 1]);
    ForMask(w.mask, [&](int i) {
      low[i] = static_cast<uint32_t>(s[i]);
      high[i] = static_cast<uint32_t>(s[i] >> 32);
    });
  }
}

void Split128(Warp& w, const Op& op) {
  const std::vector<uint32_t>& list = w.block->program->lists[op.target];
  for (uint32_t half = 0; half < 2; ++half) {
    const uint64_t* s = w.Src<uint64_t>(op.a + half * 256);
    uint64_t* d = w.Dst<uint64_t>(list[half]);
    ForMask(w.mask, [&](int i) { d[i] = s[i]; });
  }
}

template <typename D, typename S>
void Resize(Warp& w, const Op& op) {
  const S* s = w.Src<S>(op.a);
  D* d = w.Dst<D>(op.d);
  ForMask(w.mask, [&](int i) { d[i] = static_cast<D>(s[i]); });
}

template <typename S>
ExecFn ResizeFrom(int to) {
  switch (to) {
    case 2:
      return &Resize<uint16_t, S>;
    case 4:
      return &Resize<uint32_t, S>;
    case 8:
      return &Resize<uint64_t, S>;
    default:
      return nullptr;
  }
}

}  // namespace

ExecFn FindJoin(int total, int element) {
  if (total == 2 && element == 1) return &Join<uint16_t, uint8_t>;
  if (total == 4 && element == 1) return &Join<uint32_t, uint8_t>;
  if (total == 4 && element == 2) return &Join<uint32_t, uint16_t>;
  if (total == 8 && element == 2) return &Join<uint64_t, uint16_t>;
  if (total == 8 && element == 4) return &Join<uint64_t, uint32_t>;
  if (total == 16 && element == 4) return &Join128Words;
  return total == 16 && element == 8 ? &Join128 : nullptr;
}

ExecFn FindSplit(int total, int element) {
  if (total == 2 && element == 1) return &Split<uint16_t, uint8_t>;
  if (total == 4 && element == 1) return &Split<uint32_t, uint8_t>;
  if (total == 4 && element == 2) return &Split<uint32_t, uint16_t>;
  if (total == 8 && element == 2) return &Split<uint64_t, uint16_t>;
  if (total == 8 && element == 4) return &Split<uint64_t, uint32_t>;
  if (total == 16 && element == 4) return &Split128Words;
  return total == 16 && element == 8 ? &Split128 : nullptr;
}

ExecFn FindResize(int from, int to, bool sign) {
  switch (from) {
    case 2:
      return sign ? ResizeFrom<int16_t>(to) : ResizeFrom<uint16_t>(to);
    case 4:
      return sign ? ResizeFrom<int32_t>(to) : ResizeFrom<uint32_t>(to);
    case 8:
      return sign ? ResizeFrom<int64_t>(to) : ResizeFrom<uint64_t>(to);
    default:
      return nullptr;
  }
}

void ExecSpecial(Warp& w, const Op& op) {
  const Special special = static_cast<Special>(op.kind);
  const bool by_lane = special <= Special::kTidZ || special == Special::kLaneid ||
                       (special >= Special::kLanemaskEq && special <= Special::kLanemaskGe);
  if (op.bytes == 4 && w.mask == kAllLanes && special <= Special::kTidZ) {
    std::memcpy(w.Dst<uint32_t>(op.d), w.tid[op.kind], sizeof w.tid[0]);
    return;
  }
  if (op.bytes == 4 && w.mask == kAllLanes && !by_lane) {
    std::fill_n(w.Dst<uint32_t>(op.d), kLanes, static_cast<uint32_t>(SpecialValue(w, special, 0)));
    return;
  }
  ForMask(w.mask, [&](int i) {
    const uint64_t value = SpecialValue(w, special, i);
    if (op.bytes == 2) w.Dst<uint16_t>(op.d)[i] = static_cast<uint16_t>(value);
    if (op.bytes == 4) w.Dst<uint32_t>(op.d)[i] = static_cast<uint32_t>(value);
    if (op.bytes == 8) w.Dst<uint64_t>(op.d)[i] = value;
  });
}

void ExecPredicate(Warp& w, const Op& op) {
  const uint32_t a = w.Pred(op.a);
  switch (static_cast<PredicateOp>(op.kind)) {
    case PredicateOp::kMov:
      w.SetPred(op.d, a);
      break;
    case PredicateOp::kNot:
      w.SetPred(op.d, ~a);
      break;
    case PredicateOp::kAnd:
      w.SetPred(op.d, a & w.Pred(op.b));
      break;
    case PredicateOp::kOr:
      w.SetPred(op.d, a | w.Pred(op.b));
      break;
    case PredicateOp::kXor:
      w.SetPred(op.d, a ^ w.Pred(op.b));
      break;
  }
}

void ExecSelectPredicate(Warp& w, const Op& op) {
  const uint32_t c = w.Pred(op.c);
  w.SetPred(op.d, (w.Pred(op.a) & c) | (w.Pred(op.b) & ~c));
}

void ExecLocalAddress(Warp& w, const Op& op) {
  const uint64_t address = static_cast<uint64_t>(w.frame->local_base) + static_cast<uint64_t>(op.imm);
  ForMask(w.mask, [&](int i) {
    if (op.bytes == 4) w.Dst<uint32_t>(op.d)[i] = static_cast<uint32_t>(address);
    if (op.bytes == 8) w.Dst<uint64_t>(op.d)[i] = address;
  });
}

void ExecIsSpace(Warp& w, const Op& op) {
  const uint64_t* a = w.Src<uint64_t>(op.a);
  uint32_t result = 0;
  ForMask(w.mask, [&](int i) {
    auto in = [&](uint64_t window) { return a[i] - window < kWindowBytes; };
    bool yes = false;
    switch (op.space) {
      case AddressSpace::kShared:
        yes = in(kSharedWindow);
        break;
      case AddressSpace::kLocal:
        yes = in(kLocalWindow);
        break;
      case AddressSpace::kParam:
        yes = in(kParamWindow);
        break;
      default: {
        const Region* region = w.block->memory->Find(a[i]);
        const bool constant = region != nullptr && region->is_constant;
        const bool window = in(kSharedWindow) || in(kLocalWindow);
        yes = op.space == AddressSpace::kConst ? constant : !window && !constant;
      }
    }
    result |= uint32_t{yes} << i;
  });
  w.SetPred(op.d, result);
}

void ExecConvertPack(Warp& w, const Op& op) {
  const int bits = op.bytes;
  const bool is_signed = op.flags & 1;
  const int64_t high = (int64_t{1} << (is_signed ? bits - 1 : bits)) - 1, low = is_signed ? -high - 1 : 0;
  auto clamp = [&](int32_t x) {
    return static_cast<uint32_t>(std::clamp<int64_t>(x, low, high)) & static_cast<uint32_t>((uint64_t{1} << bits) - 1);
  };
  ForMask(w.mask, [&](int i) {
    const uint32_t packed = clamp(w.Src<int32_t>(op.a)[i]) << bits | clamp(w.Src<int32_t>(op.b)[i]);
    const uint64_t rest = op.c == kNoOperand ? 0 : w.Src<uint32_t>(op.c)[i];
    w.Dst<uint32_t>(op.d)[i] = static_cast<uint32_t>(rest << (2 * bits)) | packed;
  });
}

}  // namespace solstice::device
