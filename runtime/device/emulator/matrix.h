// Matrices spread over the registers of a warp: what mma and wmma work on.
//
// Numbers: products are exact. Float sums over k and the accumulator are made in double, where products of 16-bit and
// narrower floats and of tf32 are exact, and rounded once to nearest even; float64 is a chain of fused multiply-adds in
// the order of k, starting with the accumulator; integers wrap, or saturate after the whole sum. Of tf32 operands the
// low 13 bits are ignored. NaN results are the canonical NaN. Hardware sums float32 in an order and with a precision of
// its own, so its last bits differ.
#pragma once

#include <compare>
#include <cstdint>
#include <vector>

namespace solstice::device {

enum class Element : uint8_t {
  kF16,
  kBf16,
  kTf32,
  kF32,
  kF64,
  kS8,
  kU8,
  kS4,
  kU4,
  kS32,
  kB1,
  kE4m3,
  kE5m2,
  kE3m2,  // this and the narrower ones stand in bytes
  kE2m3,
  kE2m1,
};

enum class MatrixRole : uint8_t { kA, kB, kAccumulator };

struct FragmentKey {
  MatrixRole role = MatrixRole::kA;
  Element element = Element::kF16;
  int m = 0, n = 0, k = 0;
  bool wmma = false;
  bool row_major = true;  // matters to m8n8k4 in float16 only

  auto operator<=>(const FragmentKey&) const = default;
};

// Which matrix element each part of each register of each lane holds. Bits are counted in words of 32.
struct Fragment {
  Element element = Element::kF16;
  int registers = 0;  // that instructions name
  int distinct = 0;   // those after them repeat their elements
  int parts = 1;      // elements in a register
  int register_bytes = 4;
  int rows = 0, columns = 0;
  std::vector<uint16_t> position;  // [register][part][lane]: row * columns + column
};

Fragment MakeFragment(const FragmentKey& key);

struct MatrixKey {
  int m = 0, n = 0, k = 0;
  Element a = Element::kF16, b = Element::kF16, c = Element::kF16, d = Element::kF16;
  bool wmma = false;
  bool a_row = true, b_row = false;
  bool saturate = false;
  bool bitwise_and = false;  // kB1: and instead of xor

  auto operator<=>(const MatrixKey&) const = default;
  // mma.m8n8k4 in float16 is four products, one for each pair of quads.
  bool IsQuadPairs() const { return !wmma && m == 8 && n == 8 && k == 4 && a == Element::kF16; }
};

inline constexpr int kMostFragmentRegisters = 8;

// Registers of 32 lanes each.
struct MatrixRegisters {
  const uint8_t* a[kMostFragmentRegisters];
  const uint8_t* b[kMostFragmentRegisters];
  const uint8_t* c[kMostFragmentRegisters];
  uint8_t* d[kMostFragmentRegisters];  // may be the same as sources
};

struct MatrixPlan;
using MultiplyFn = void (*)(const MatrixPlan&, const MatrixRegisters&);

// d = a * b + c.
struct MatrixPlan {
  int m = 0, n = 0, k = 0;  // k in words where elements are bits
  int products = 1;         // independent ones, their matrices one after the other
  bool saturate = false;
  bool bitwise_and = false;
  const Fragment* a = nullptr;
  const Fragment* b = nullptr;
  const Fragment* c = nullptr;
  const Fragment* d = nullptr;
  MultiplyFn multiply = nullptr;
};

}  // namespace solstice::device
