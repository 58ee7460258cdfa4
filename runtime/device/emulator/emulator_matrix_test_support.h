// For tests of matrix instructions: where the PTX manual puts the elements of mma, what they are worth, and kernels
// that hold one instruction.
#pragma once

#include <cmath>
#include <random>

#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {

struct Form {
  int m, n, k;
  std::string d, a, b, c;
  std::string kind;    // between layout and types
  std::string suffix;  // after the types
  std::string layout = ".row.col";

  std::string Name() const {
    return base::StrCat("mma.sync.aligned.m", m, "n", n, "k", k, layout, kind, ".", d, ".", a, ".", b, ".", c, suffix);
  }
  bool IsQuadPairs() const { return k == 4 && a == "f16"; }
};

struct Place {
  int row, column;
};

inline int BitsOf(const std::string& type) {
  if (type == "f64") return 64;
  if (type == "f32" || type == "tf32" || type == "s32") return 32;
  if (type == "f16" || type == "bf16") return 16;
  if (type == "s4" || type == "u4") return 4;
  return type == "b1" ? 1 : 8;
}

inline Place PlaceOfA(const Form& f, int lane, int i) {
  const int g = lane >> 2, t = lane % 4, bits = BitsOf(f.a);
  if (f.IsQuadPairs()) {
    const int upper = lane < 16 ? 0 : 4;
    if (f.layout.substr(0, 4) == ".row") return {lane % 4 + upper, i};
    return {i % 4 + upper, lane % 4};
  }
  switch (bits) {
    case 64:
    case 32:
      if (f.m == 8) return {g, t};
      if (f.k == 16) return {i % 2 == 0 ? g : g + 8, i % 2 == 0 ? i * 2 + t : i * 2 - 2 + t};
      if (f.k == 8) return {i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4};
      return {i == 0 ? g : g + 8, t};
    case 16:
      if (f.k == 8) return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
      return {i < 2 || (4 <= i && i < 6) ? g : g + 8, i < 4 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8};
    case 8:
      if (f.m == 8) return {g, t * 4 + i};
      if (f.k == 16) return {i < 4 ? g : g + 8, t * 4 + (i & 3)};
      return {i < 4 || (8 <= i && i < 12) ? g : g + 8, i < 8 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16};
    case 4:
      if (f.m == 8) return {g, t * 8 + i};
      if (f.k == 32) return {i < 8 ? g : g + 8, t * 8 + (i & 7)};
      return {i < 8 || (16 <= i && i < 24) ? g : g + 8, i < 16 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32};
    default:
      if (f.m == 8) return {g, t * 32 + i};
      if (f.k == 128) return {i < 32 ? g : g + 8, t * 32 + (i & 31)};
      return {i < 32 || (64 <= i && i < 96) ? g : g + 8, i < 64 ? t * 32 + (i & 31) : t * 32 + (i & 31) + 128};
  }
}

inline Place PlaceOfB(const Form& f, int lane, int i) {
  const int g = lane >> 2, t = lane % 4;
  if (f.IsQuadPairs()) {
    const int upper = lane < 16 ? 0 : 4;
    if (f.layout.substr(4) == ".row") return {lane % 4, i + upper};
    return {i, lane % 4 + upper};
  }
  switch (BitsOf(f.b)) {
    case 64:
    case 32:
      return {t + i * 4, g};
    case 16:
      return {i < 2 ? t * 2 + (i & 1) : t * 2 + (i & 1) + 8, g};
    case 8:
      return {i < 4 ? t * 4 + (i & 3) : t * 4 + (i & 3) + 16, g};
    case 4:
      return {i < 8 ? t * 8 + (i & 7) : t * 8 + (i & 7) + 32, g};
    default:
      return {i < 32 ? t * 32 + i : t * 32 + (i & 31) + 128, g};
  }
}

inline Place PlaceOfC(const Form& f, const std::string& type, int lane, int i) {
  const int g = lane >> 2, t = lane % 4;
  if (f.IsQuadPairs()) {
    const int upper = lane < 16 ? 0 : 4;
    if (type == "f16") return {lane % 4 + upper, i};
    return {(lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)};
  }
  return {i < 2 ? g : g + 8, t * 2 + (i & 1)};
}

inline long double Small(uint32_t code, int exponent_bits, int mantissa_bits, int bias) {
  const uint32_t mantissa = code & ((1u << mantissa_bits) - 1);
  const int exponent = static_cast<int>(code >> mantissa_bits & ((1u << exponent_bits) - 1));
  const bool negative = code >> (mantissa_bits + exponent_bits) & 1;
  const long double value = exponent == 0 ? std::ldexp(static_cast<long double>(mantissa), 1 - bias - mantissa_bits)
                                          : std::ldexp(static_cast<long double>(mantissa + (1u << mantissa_bits)),
                                                       exponent - bias - mantissa_bits);
  return negative ? -value : value;
}

inline long double ValueOf(const std::string& type, uint64_t bits) {
  const uint32_t x = static_cast<uint32_t>(bits);
  if (type == "f64") return __builtin_bit_cast(double, bits);
  if (type == "f32") return __builtin_bit_cast(float, x);
  if (type == "tf32") return __builtin_bit_cast(float, x & ~0x1fffu);
  if (type == "f16") return x == 0x7c00 || x == 0xfc00 ? (x == 0x7c00 ? INFINITY : -INFINITY) : Small(x, 5, 10, 15);
  if (type == "bf16") return Small(x, 8, 7, 127);
  if (type == "e4m3") return Small(x, 4, 3, 7);
  if (type == "e5m2") return Small(x, 5, 2, 15);
  if (type == "e3m2") return Small(x, 3, 2, 3);
  if (type == "e2m3") return Small(x, 2, 3, 1);
  if (type == "e2m1") return Small(x >> 2, 2, 1, 1);
  if (type == "s32") return static_cast<int32_t>(x);
  if (type == "s8") return static_cast<int8_t>(x);
  if (type == "s4") return static_cast<int>(x) - (x > 7 ? 16 : 0);
  return x;
}

// A code whose sums of products fit a double.
inline uint64_t RandomCode(const std::string& type, std::mt19937_64& random) {
  const uint64_t r = random();
  const auto with_exponent = [&](int mantissa_bits, uint64_t exponent, int bits) {
    return (r >> 63) << (bits - 1) | exponent << mantissa_bits | (r & ((uint64_t{1} << mantissa_bits) - 1));
  };
  if (type == "f64") return with_exponent(52, 1020 + (r >> 56) % 7, 64);
  if (type == "f32") return with_exponent(23, 122 + (r >> 56) % 12, 32);
  if (type == "tf32") return with_exponent(23, 124 + (r >> 56) % 6, 32);
  if (type == "bf16") return with_exponent(7, 124 + (r >> 56) % 6, 16);
  if (type == "f16") return with_exponent(10, 12 + (r >> 56) % 6, 16);
  if (type == "e4m3") return (r & 0x7f) == 0x7f ? 0x35 : r & 0xff;
  if (type == "e5m2") return with_exponent(2, 8 + (r >> 56) % 12, 8);
  if (type == "e3m2" || type == "e2m3") return r & 0x3f;
  if (type == "e2m1") return r & 0x3c;
  if (type == "s32")
    return (r >> 40 & 1) ? 0x7fffffff - (r & 0xff) : (r >> 41 & 1) ? 0x80000000 + (r & 0xff) : r & 0xffff;
  return r & ((uint64_t{1} << BitsOf(type)) - 1);
}

inline long double Rounded(const std::string& type, long double x) {
  if (type == "f32") return static_cast<float>(x);
  if (type == "f64") return static_cast<double>(x);
  if (x == 0) return x;
  const int exponent = std::max(std::ilogb(x), -14);
  const long double rounded = std::ldexp(std::nearbyint(std::ldexp(x, 10 - exponent)), exponent - 10);
  return std::fabs(rounded) > 65504 ? std::copysign(static_cast<long double>(INFINITY), x) : rounded;
}

inline std::string Registers(const char* prefix, int count) {
  std::string text = "{";
  for (int i = 0; i < count; ++i) text += base::StrCat(i == 0 ? "%" : ", %", prefix, i);
  return text + "}";
}

// Elements of a matrix that a lane holds, and the registers they take.
struct Share {
  std::string type;
  int elements;
  int bits() const { return BitsOf(type); }
  int registers() const { return std::max(1, elements * bits() / std::max(32, bits())); }
};

// A kernel that loads registers of a, b and c from `in`, does `name`, and stores those of d to `out`; register r of
// lane l is the 64-bit word 32 r + l.
inline std::string MatrixKernel(const std::string& name, const Share& d, const Share& a, const Share& b, const Share& c,
                                const std::string& before = "") {
  const Share* shares[] = {&a, &b, &c};
  const char* prefixes[] = {"a", "b", "c"};
  std::string text = base::StrCat(
      ".visible .entry k(.param .u64 in, .param .u64 out)\n{\n.reg .pred %p;\n.reg .b32 %t;\n.reg .b64 "
      "%i, %o, %q;\n.reg .b",
      std::max(32, d.bits()), " %d<16>;\n");
  std::string loads;
  int word = 0;
  for (int s = 0; s < 3; ++s) {
    const int width = std::max(32, shares[s]->bits());
    text += base::StrCat(".reg .b", width, " %", prefixes[s], "<16>;\n");
    for (int r = 0; r < shares[s]->registers(); ++r, ++word) {
      loads += base::StrCat("ld.global.b", width, " %", prefixes[s], r, ", [%i+", word * 256, "];\n");
    }
  }
  text +=
      "mov.u32 %t, %tid.x;\nmul.wide.u32 %q, %t, 8;\nld.param.u64 %i, [in];\nld.param.u64 %o, [out];\n"
      "add.s64 %i, %i, %q;\nadd.s64 %o, %o, %q;\n" +
      loads + before;
  text += base::StrCat(name, " ", Registers("d", d.registers()), ", ", Registers("a", a.registers()), ", ",
                       Registers("b", b.registers()), ", ", Registers("c", c.registers()), ";\n");
  for (int r = 0; r < d.registers(); ++r) {
    text += base::StrCat("st.global.b", std::max(32, d.bits()), " [%o+", r * 256, "], %d", r, ";\n");
  }
  return Wrap(text + "ret;\n}\n");
}

inline uint64_t BitsAt(const std::vector<uint64_t>& words, int first, const Share& share, int lane, int i) {
  const int width = std::max(32, share.bits()), bit = i * share.bits();
  const uint64_t word = words[(first + bit / width) * 32 + lane] >> (bit % width);
  return share.bits() == 64 ? word : word & ((uint64_t{1} << share.bits()) - 1);
}

struct Shares {
  Share d, a, b, c;
  explicit Shares(const Form& f)
      : d{f.d, f.m * f.n / 32}, a{f.a, f.m * f.k / 32}, b{f.b, f.k * f.n / 32}, c{f.c, f.m * f.n / 32} {
    if (f.IsQuadPairs()) d.elements = c.elements = 8, a.elements = b.elements = 4;
  }
};

inline std::vector<uint64_t> RandomWords(const Shares& s, std::mt19937_64& random) {
  std::vector<uint64_t> words;
  for (const Share* share : {&s.a, &s.b, &s.c}) {
    const int width = std::max(32, share->bits());
    const size_t first = words.size();
    words.resize(first + static_cast<size_t>(share->registers()) * 32);
    for (int i = 0; i < share->elements; ++i) {
      for (int lane = 0; lane < 32; ++lane) {
        const int bit = i * share->bits();
        words[first + static_cast<size_t>(bit / width * 32 + lane)] |= RandomCode(share->type, random) << (bit % width);
      }
    }
  }
  return words;
}

inline std::vector<uint64_t> RunMatrix(const std::string& ptx, const std::vector<uint64_t>& in, int registers,
                                       int threads = 32) {
  Machine machine(ptx);
  const Address from = machine.Buffer(in), to = machine.Buffer(std::vector<uint64_t>(registers * 32));
  const RunOutcome outcome = machine.Run("k", 1, threads, {Argument(from), Argument(to)});
  EXPECT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  return machine.Read<uint64_t>(to, static_cast<size_t>(registers) * 32);
}

}  // namespace solstice::device
