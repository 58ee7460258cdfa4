// atom and red: one lane after another, atomic against other host threads.
#include <cmath>
#include <cstring>

#include "runtime/device/emulator/execute.h"
#include "runtime/device/emulator/float_bits.h"
#include "runtime/device/emulator/sanitizer.h"

namespace solstice::device {
namespace {

template <typename T>
using Bits = std::conditional_t<sizeof(T) == 2, uint16_t, std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>>;

float Flush(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  return (bits & 0x7f800000u) == 0 ? __builtin_bit_cast(float, bits & 0x80000000u) : x;
}

// Adds in global memory flush float32 subnormals; those in shared memory do not.
struct AddFloat {
  static uint32_t Do(uint32_t old, uint32_t b, uint32_t, bool shared) {
    float x = __builtin_bit_cast(float, old), y = __builtin_bit_cast(float, b);
    float r = shared ? x + y : Flush(Flush(x) + Flush(y));
    return r != r ? 0x7fffffffu : __builtin_bit_cast(uint32_t, r);
  }
};
struct AddDouble {
  static uint64_t Do(uint64_t old, uint64_t b, uint64_t, bool) {
    const double r = __builtin_bit_cast(double, old) + __builtin_bit_cast(double, b);
    if (r == r) return __builtin_bit_cast(uint64_t, r);
    constexpr uint64_t kInfinity = 0x7ff0'0000'0000'0000u, kQuiet = 0x0008'0000'0000'0000u;
    if ((old & ~(uint64_t{1} << 63)) > kInfinity) return old | kQuiet;
    if ((b & ~(uint64_t{1} << 63)) > kInfinity) return b | kQuiet;
    return 0xfff8'0000'0000'0000u;
  }
};
template <bool kBrain>
uint16_t Add16(uint16_t a, uint16_t b) {
  return kBrain ? DoubleToBrain(double{BrainToFloat(a)} + BrainToFloat(b))
                : DoubleToHalf(double{HalfToFloat(a)} + HalfToFloat(b));
}
template <bool kBrain, int kOp>  // 0 add, 1 min, 2 max
uint16_t Narrow(uint16_t a, uint16_t b) {
  if (kOp == 0) return Add16<kBrain>(a, b);
  const float x = kBrain ? BrainToFloat(a) : HalfToFloat(a), y = kBrain ? BrainToFloat(b) : HalfToFloat(b);
  if (x != x) return y != y ? 0x7fff : b;
  if (y != y) return a;
  if (x == y) return kOp == 1 ? a | b : a & b;
  return (x < y) == (kOp == 1) ? a : b;
}
template <bool kBrain, int kOp>
struct NarrowOne {
  static uint16_t Do(uint16_t old, uint16_t b, uint16_t, bool) { return Narrow<kBrain, kOp>(old, b); }
};
template <bool kBrain, int kOp>
struct NarrowPair {
  static uint32_t Do(uint32_t old, uint32_t b, uint32_t, bool) {
    const uint32_t high = Narrow<kBrain, kOp>(static_cast<uint16_t>(old >> 16), static_cast<uint16_t>(b >> 16));
    return high << 16 | Narrow<kBrain, kOp>(static_cast<uint16_t>(old), static_cast<uint16_t>(b));
  }
};

template <typename T, AtomicOp kOp>
struct Integer {
  using U = Bits<T>;
  static U Do(U old, U b, U c, bool) {
    switch (kOp) {
      case AtomicOp::kAdd:
        return static_cast<U>(old + b);
      case AtomicOp::kMin:
        return static_cast<T>(b) < static_cast<T>(old) ? b : old;
      case AtomicOp::kMax:
        return static_cast<T>(b) > static_cast<T>(old) ? b : old;
      case AtomicOp::kAnd:
        return old & b;
      case AtomicOp::kOr:
        return old | b;
      case AtomicOp::kXor:
        return old ^ b;
      case AtomicOp::kInc:
        return old >= b ? 0 : static_cast<U>(old + 1);
      case AtomicOp::kDec:
        return old == 0 || old > b ? b : static_cast<U>(old - 1);
      case AtomicOp::kExch:
        return b;
      case AtomicOp::kCas:
        return old == b ? c : old;
    }
    return old;
  }
};

template <typename U, typename F>
void Atomic(Warp& w, const Op& op) {
  uint64_t address[kLanes];
  uint8_t* host[kLanes];
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    uint64_t base = op.space == AddressSpace::kLocal && op.a == kNoOperand ? w.frame->local_base : 0;
    if (op.a != kNoOperand) base = op.address32 ? w.Src<uint32_t>(op.a)[i] : w.Src<uint64_t>(op.a)[i];
    address[i] = base + static_cast<uint64_t>(op.imm);
    if (op.address32) address[i] = static_cast<uint32_t>(address[i]);
  }
  if (!ResolveSlow(w, op, address, sizeof(U), true, host)) return;
  if (w.block->sanitizer != nullptr) w.block->sanitizer->Atomic(w, op, host, sizeof(U));
  const uint8_t* shared = w.block->shared.host;
  const U* b = w.Src<U>(op.b);
  const U* c = op.c == kNoOperand ? b : w.Src<U>(op.c);
  U* d = op.d == kNoOperand ? nullptr : w.Dst<U>(op.d);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    U* at = reinterpret_cast<U*>(host[i]);
    const bool in_shared = host[i] >= shared && host[i] < shared + w.block->shared.bytes;
    U old = __atomic_load_n(at, __ATOMIC_RELAXED);
    const U operand = b[i], second = c[i];
    while (!__atomic_compare_exchange_n(at, &old, F::Do(old, operand, second, in_shared), false, __ATOMIC_SEQ_CST,
                                        __ATOMIC_SEQ_CST)) {
    }
    if (d != nullptr) d[i] = old;
  }
}

template <typename T>
ExecFn IntegerFor(AtomicOp op) {
  using U = Bits<T>;
  switch (op) {
    case AtomicOp::kAdd:
      return &Atomic<U, Integer<T, AtomicOp::kAdd>>;
    case AtomicOp::kMin:
      return &Atomic<U, Integer<T, AtomicOp::kMin>>;
    case AtomicOp::kMax:
      return &Atomic<U, Integer<T, AtomicOp::kMax>>;
    case AtomicOp::kAnd:
      return &Atomic<U, Integer<T, AtomicOp::kAnd>>;
    case AtomicOp::kOr:
      return &Atomic<U, Integer<T, AtomicOp::kOr>>;
    case AtomicOp::kXor:
      return &Atomic<U, Integer<T, AtomicOp::kXor>>;
    case AtomicOp::kInc:
      return &Atomic<U, Integer<T, AtomicOp::kInc>>;
    case AtomicOp::kDec:
      return &Atomic<U, Integer<T, AtomicOp::kDec>>;
    case AtomicOp::kExch:
      return &Atomic<U, Integer<T, AtomicOp::kExch>>;
    case AtomicOp::kCas:
      return &Atomic<U, Integer<T, AtomicOp::kCas>>;
  }
  return nullptr;
}

template <bool kBrain>
ExecFn NarrowFor(AtomicOp op, bool pair) {
  switch (op) {
    case AtomicOp::kAdd:
      return pair ? &Atomic<uint32_t, NarrowPair<kBrain, 0>> : &Atomic<uint16_t, NarrowOne<kBrain, 0>>;
    case AtomicOp::kMin:
      return pair ? &Atomic<uint32_t, NarrowPair<kBrain, 1>> : &Atomic<uint16_t, NarrowOne<kBrain, 1>>;
    case AtomicOp::kMax:
      return pair ? &Atomic<uint32_t, NarrowPair<kBrain, 2>> : &Atomic<uint16_t, NarrowOne<kBrain, 2>>;
    default:
      return nullptr;
  }
}

// Compares and exchanges 16 aligned bytes; `old` becomes what was there.
bool CompareExchange128(uint8_t* at, uint64_t (&old)[2], const uint64_t (&value)[2]) {
  bool same;
  asm volatile("lock cmpxchg16b %1"
               : "=@ccz"(same), "+m"(*reinterpret_cast<uint8_t(*)[16]>(at)), "+a"(old[0]), "+d"(old[1])
               : "b"(value[0]), "c"(value[1])
               : "memory");
  return same;
}

}  // namespace

void ExecAtomic128(Warp& w, const Op& op) {
  const uint64_t* a = w.Src<uint64_t>(op.a);
  const Region* region = nullptr;
  const bool compares = static_cast<AtomicOp>(op.kind) == AtomicOp::kCas;
  uint8_t* host[kLanes];
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    host[i] = ResolveLane(w, op, {op.space, 16, 16, true}, i, a[i], &region);
    if (host[i] == nullptr) return;
  }
  if (w.block->sanitizer != nullptr) w.block->sanitizer->Atomic(w, op, host, 16);
  for (uint32_t m = w.mask; m != 0; m &= m - 1) {
    const int i = __builtin_ctz(m);
    uint64_t b[2], c[2], old[2];
    for (uint32_t half = 0; half < 2; ++half) {
      b[half] = w.Src<uint64_t>(op.b + half * 256)[i];
      c[half] = compares ? w.Src<uint64_t>(op.c + half * 256)[i] : b[half];
      old[half] = b[half];
    }
    // The exchange compares with what the last try found.
    while (!CompareExchange128(host[i], old, c) && !compares) {
    }
    for (uint32_t half = 0; half < 2 && op.d != kNoOperand; ++half) {
      w.Dst<uint64_t>(op.d + half * 256)[i] = old[half];
    }
  }
}

ExecFn FindAtomic(AtomicOp op, Type type, bool) {
  switch (type) {
    case Type::kB16:
      return IntegerFor<uint16_t>(op);
    case Type::kB32:
    case Type::kU32:
      return IntegerFor<uint32_t>(op);
    case Type::kS32:
      return IntegerFor<int32_t>(op);
    case Type::kB64:
    case Type::kU64:
      return IntegerFor<uint64_t>(op);
    case Type::kS64:
      return IntegerFor<int64_t>(op);
    case Type::kF32:
      if (op == AtomicOp::kExch) return IntegerFor<uint32_t>(op);
      return op == AtomicOp::kAdd ? &Atomic<uint32_t, AddFloat> : nullptr;
    case Type::kF64:
      if (op == AtomicOp::kExch) return IntegerFor<uint64_t>(op);
      return op == AtomicOp::kAdd ? &Atomic<uint64_t, AddDouble> : nullptr;
    case Type::kF16:
      return NarrowFor<false>(op, false);
    case Type::kBf16:
      return NarrowFor<true>(op, false);
    case Type::kF16x2:
      return NarrowFor<false>(op, true);
    case Type::kBf16x2:
      return NarrowFor<true>(op, true);
    default:
      return nullptr;
  }
}

}  // namespace solstice::device
