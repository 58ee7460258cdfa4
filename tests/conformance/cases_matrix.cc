// Matrix instructions. Operands are either small integers, of which every order of summation gives the same bits, or
// random, and then the answers agree within a bound: half precision of what the sum of magnitudes can be.
#include <cmath>
#include <random>

#include "runtime/base/strings.h"
#include "tests/conformance/kernel.h"
#include "tests/conformance/operands.h"

namespace solstice::conformance {
namespace {

using base::StrCat;

constexpr int kTuples = 64;  // two warps

struct Mma {
  std::string shape, types;  // "m16n8k16", "f32.f16.f16.f32"
  std::string a, b, c;       // element types
  int a_words, b_words, c_words, depth;
  std::string layout = "row.col";
  std::string middle = "", end = "";  // modifiers before the types and after them
};

int ElementBits(const std::string& type) {
  if (type == "b1") return 1;
  if (type == "s4" || type == "u4") return 4;
  if (type == "tf32") return 32;
  if (type == "e4m3" || type == "e5m2") return 8;
  return BytesOf(type) * 8;
}

bool IsFloat(const std::string& type) { return FormatOf(type) != nullptr; }

uint64_t Element(const std::string& type, bool small, std::mt19937_64& random) {
  const uint64_t word = random();
  const int bits = ElementBits(type);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (!IsFloat(type)) return word & mask;
  const FloatFormat& format = *FormatOf(type);
  if (small) {
    const uint64_t code = EncodeValue(static_cast<double>(static_cast<int>(word % 5) - 2), format);
    return type == "tf32" ? code << 13 : code;
  }
  // Magnitudes of 1/4 to 2, with all bits of the mantissa.
  const uint64_t exponent = static_cast<uint64_t>(format.bias() - 2) + word % 3;
  const uint64_t fraction = (word >> 8) & ((uint64_t{1} << format.mantissa) - 1);
  const uint64_t code = ((word >> 63) << (format.bits() - 1)) | exponent << format.mantissa | fraction;
  return type == "tf32" ? code << 13 : code;
}

uint64_t Word(const std::string& type, int bytes, bool small, std::mt19937_64& random) {
  uint64_t word = 0;
  const int bits = ElementBits(type);
  for (int at = 0; at < bytes * 8; at += bits) word |= Element(type, small, random) << at;
  return word;
}

std::string Registers(const char* kind, int first, int count) {
  std::string list = "{";
  for (int i = 0; i < count; ++i) list += StrCat(i == 0 ? "" : ", ", "%", kind, first + i);
  return list + "}";
}

std::string Repeated(const std::string& type, int count) {
  std::string list;
  for (int i = 0; i < count; ++i) list += type + " ";
  return list;
}

// What a sum of `depth` products of magnitude below 4 and one more addend can differ by.
Bound SumBound(const std::string& c, const std::string& a, int depth) {
  const bool coarse = a == "e4m3" || a == "e5m2";
  const int bits = c == "f64" ? 51 : c == "f16" ? 9 : coarse ? 12 : 20;
  return {Bound::Kind::kAbsolute, std::ldexp(4.0 * depth + 2, -bits),
          StrCat("2^-", bits, " of the largest sum of magnitudes, 4 x ", depth, " + 2")};
}

void AddMma(const Mma& m, std::vector<Case>* cases) {
  const bool is_double = m.c == "f64";
  const std::string word = is_double ? "b64" : "b32";
  const std::string result = m.c == "f16" ? "f16x2" : IsFloat(m.c) ? m.c : "b32";
  const std::string name = StrCat("mma.sync.aligned.", m.shape, ".", m.layout, m.middle, ".", m.types, m.end);
  const int operands = m.a_words + m.b_words + m.c_words;
  for (const bool small : {true, false}) {
    if (!small && !IsFloat(m.a)) break;
    Row row;
    row.name = IsFloat(m.a) ? StrCat(name, small ? " small" : " random") : name;
    row.results = Repeated(result, m.c_words);
    row.operands = Repeated(word, operands);
    row.text =
        StrCat(name, " ", Registers("o", 0, m.c_words), ", ", Registers("i", 0, m.a_words), ", ",
               Registers("i", m.a_words, m.b_words), ", ", Registers("i", m.a_words + m.b_words, m.c_words), ";");
    row.tuples = kTuples;
    if (!small) row.bound = SumBound(m.c, m.a, m.depth);
    std::mt19937_64 random(Hash(row.name.data(), row.name.size()));
    std::vector<std::vector<uint64_t>> input;
    for (int i = 0; i < kTuples; ++i) {
      std::vector<uint64_t> tuple;
      for (int k = 0; k < operands; ++k) {
        const std::string& type = k < m.a_words ? m.a : k < m.a_words + m.b_words ? m.b : m.c;
        tuple.push_back(Word(type, is_double ? 8 : 4, small, random));
      }
      input.push_back(std::move(tuple));
    }
    AddRow("matrix", row, cases, input);
  }
}

// A whole multiplication by wmma: 16x16 halves or bytes of A and B are loaded from the warp's input, the sum is stored
// to shared memory, and each lane returns eight words of it.
struct Wmma {
  std::string shape, element, sum;
  int m, n, k;
  int a_words, b_words, c_words;
};

void AddWmma(const Wmma& w, std::vector<Case>* cases) {
  for (const char* layout : {"row.row", "row.col", "col.row", "col.col"}) {
    const std::string a = std::string(layout, 3), b = layout + 4;
    const bool halves = ElementBits(w.element) == 16;
    // A lies at the warp's input, B behind it, C behind both.
    const int bytes = ElementBits(w.element) / 8, b_at = w.m * w.k * bytes, c_at = b_at + w.k * w.n * bytes;
    const int sum_bytes = w.sum == "f16" ? 2 : 4;
    Row row;
    const std::string types = w.element == "bf16" ? ".f32.bf16.bf16.f32"
                              : halves            ? StrCat(".", w.sum, ".", w.sum)
                                                  : StrCat(".s32.", w.element, ".", w.element, ".s32");
    row.name = StrCat("wmma.mma.sync.aligned.", layout, ".", w.shape, types);
    // Enough of them for a warp's matrices.
    const int words = c_at + w.m * w.n * sum_bytes > 32 * 64 ? 10 : 8, stride = words * 8;
    row.operands = Repeated("b64", words);
    row.results = Repeated("b32", 8);
    row.tuples = kTuples;
    const auto fragment = [](const char* name, int words) {
      std::string list = "{";
      for (int i = 0; i < words; ++i) list += StrCat(i == 0 ? "" : ", ", "%", name, i);
      return list + "}";
    };
    const std::string fa = fragment("fa", w.a_words), fb = fragment("fb", w.b_words), fc = fragment("fc", w.c_words);
    row.text =
        StrCat("{ .reg .b32 %fa<", w.a_words, ">, %fb<", w.b_words, ">, %fc<", w.c_words, ">;\n",
               "  mov.u32 %r0, %laneid;\n  mul.wide.u32 %q0, %r0, ", stride, ";\n  sub.s64 %q0, %src, %q0;\n",
               "  shr.u32 %r1, %t, 5;\n  shl.b32 %r1, %r1, 10;\n  mov.u32 %r2, $E_shared;\n  add.u32 %r1, %r1, %r2;\n",
               "  wmma.load.a.sync.aligned.", a, ".", w.shape, ".global.", w.element, " ", fa, ", [%q0], ",
               a == "row" ? w.k : w.m, ";\n  wmma.load.b.sync.aligned.", b, ".", w.shape, ".global.", w.element, " ",
               fb, ", [%q0+", b_at, "], ", b == "row" ? w.n : w.k, ";\n  wmma.load.c.sync.aligned.row.", w.shape,
               ".global.", w.sum, " ", fc, ", [%q0+", c_at, "], ", w.n, ";\n  ", row.name, " ", fc, ", ", fa, ", ", fb,
               ", ", fc, ";\n", "  wmma.store.d.sync.aligned.row.", w.shape, ".shared.", w.sum, " [%r1], ", fc, ", ",
               w.n, ";\n  bar.warp.sync -1;\n  shl.b32 %r3, %r0, 5;\n  add.u32 %r1, %r1, %r3;\n",
               "  ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%r1];\n  ld.shared.v4.b32 {%o4, %o5, %o6, %o7}, [%r1+16]; }");
    if (sum_bytes == 2) {
      // Half as much: the upper lanes would read what nobody wrote.
      row.text.insert(2,
                      "mov.b32 %r4, 0;\n  st.shared.v4.b32 [%mine], {%r4, %r4, %r4, %r4};\n"
                      "  st.shared.v4.b32 [%mine+1024], {%r4, %r4, %r4, %r4};\n  bar.sync 0;\n");
    }
    std::mt19937_64 random(Hash(row.name.data(), row.name.size()));
    std::vector<std::vector<uint64_t>> input;
    for (int i = 0; i < kTuples; ++i) {
      std::vector<uint64_t> tuple;
      for (int k = 0; k < words; ++k) {
        const int at = (i % 32) * stride + k * 8;
        tuple.push_back(Word(at < c_at ? w.element : w.sum, 8, true, random));
      }
      input.push_back(std::move(tuple));
    }
    AddRow("matrix", row, cases, input);
  }
}

void AddMatrixMoves(std::vector<Case>* cases) {
  // Rows of 16 bytes in a mixed-up order.
  const std::string address =
      "mad.lo.u32 %r0, %t, 5, 3;\n  and.b32 %r0, %r0, 31;\n  and.b32 %r1, %t, 0xffe0;\n"
      "  add.u32 %r0, %r0, %r1;\n  shl.b32 %r0, %r0, 4;\n  mov.u32 %r1, $E_shared;\n"
      "  add.u32 %r0, %r0, %r1;\n  ";
  const std::string fill = "st.shared.v4.b32 [%mine], {%i0, %i1, %i2, %i3};\n  bar.sync 0;\n  " + address;
  const std::string words = "b32 b32 b32 b32";
  for (const int count : {1, 2, 4}) {
    for (const char* trans : {"", ".trans"}) {
      const std::string modifiers = StrCat(".sync.aligned.m8n8.x", count, trans, ".shared.b16");
      AddRow("matrix",
             {"ldmatrix" + modifiers, Repeated("b32", count), words,
              StrCat(fill, "ldmatrix", modifiers, " ", Registers("o", 0, count), ", [%r0];"), kTuples},
             cases);
      AddRow("matrix",
             {"stmatrix" + modifiers, words, words,
              StrCat("st.shared.v4.b32 [%mine], {0, 0, 0, 0};\n  bar.sync 0;\n  ", address, "stmatrix", modifiers,
                     " [%r0], ", Registers("i", 0, count),
                     ";\n  bar.sync 0;\n  ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%mine];"),
              kTuples},
             cases);
    }
  }
  AddRow("matrix", {"movmatrix.sync.aligned.m8n8.trans.b16", "b32", "b32", "", kTuples}, cases);
}

}  // namespace

void AddMatrix(std::vector<Case>* cases) {
  std::vector<Mma> list = {
      {"m16n8k8", "f16.f16.f16.f16", "f16", "f16", "f16", 2, 1, 2, 8},
      {"m16n8k8", "f32.f16.f16.f32", "f16", "f16", "f32", 2, 1, 4, 8},
      {"m16n8k16", "f16.f16.f16.f16", "f16", "f16", "f16", 4, 2, 2, 16},
      {"m16n8k16", "f32.f16.f16.f32", "f16", "f16", "f32", 4, 2, 4, 16},
      {"m16n8k8", "f32.bf16.bf16.f32", "bf16", "bf16", "f32", 2, 1, 4, 8},
      {"m16n8k16", "f32.bf16.bf16.f32", "bf16", "bf16", "f32", 4, 2, 4, 16},
      {"m16n8k4", "f32.tf32.tf32.f32", "tf32", "tf32", "f32", 2, 1, 4, 4},
      {"m16n8k8", "f32.tf32.tf32.f32", "tf32", "tf32", "f32", 4, 2, 4, 8},
      {"m8n8k4", "f64.f64.f64.f64", "f64", "f64", "f64", 1, 1, 2, 4},
      {"m16n8k4", "f64.f64.f64.f64", "f64", "f64", "f64", 2, 1, 4, 4},
      {"m16n8k8", "f64.f64.f64.f64", "f64", "f64", "f64", 4, 2, 4, 8},
      {"m16n8k16", "f64.f64.f64.f64", "f64", "f64", "f64", 8, 4, 4, 16},
  };
  for (const char* layout : {"row.row", "row.col", "col.row", "col.col"}) {
    list.push_back({"m8n8k4", "f16.f16.f16.f16", "f16", "f16", "f16", 2, 2, 4, 4, layout});
    list.push_back({"m8n8k4", "f32.f16.f16.f32", "f16", "f16", "f32", 2, 2, 8, 4, layout});
  }
  for (const char* a : {"e4m3", "e5m2"}) {
    for (const char* b : {"e4m3", "e5m2"}) {
      list.push_back({"m16n8k32", StrCat("f32.", a, ".", b, ".f32"), a, b, "f32", 4, 2, 4, 32});
    }
  }
  struct IntegerShape {
    const char* shape;
    int a, b, c;
  };
  for (const char* saturate : {"", ".satfinite"}) {
    for (const char* a : {"s8", "u8"}) {
      for (const char* b : {"s8", "u8"}) {
        for (const IntegerShape& s :
             {IntegerShape{"m8n8k16", 1, 1, 2}, IntegerShape{"m16n8k16", 2, 1, 4}, IntegerShape{"m16n8k32", 4, 2, 4}}) {
          list.push_back(
              {s.shape, StrCat("s32.", a, ".", b, ".s32"), a, b, "s32", s.a, s.b, s.c, 0, "row.col", saturate});
        }
      }
    }
  }
  for (const char* a : {"s4", "u4"}) {
    for (const char* b : {"s4", "u4"}) {
      for (const IntegerShape& s :
           {IntegerShape{"m8n8k32", 1, 1, 2}, IntegerShape{"m16n8k32", 2, 1, 4}, IntegerShape{"m16n8k64", 4, 2, 4}}) {
        list.push_back({s.shape, StrCat("s32.", a, ".", b, ".s32"), a, b, "s32", s.a, s.b, s.c, 0});
      }
    }
  }
  for (const char* operation : {".xor.popc", ".and.popc"}) {
    for (const IntegerShape& s :
         {IntegerShape{"m8n8k128", 1, 1, 2}, IntegerShape{"m16n8k128", 2, 1, 4}, IntegerShape{"m16n8k256", 4, 2, 4}}) {
      list.push_back({s.shape, "s32.b1.b1.s32", "b1", "b1", "s32", s.a, s.b, s.c, 0, "row.col", "", operation});
    }
  }
  for (const Mma& mma : list) AddMma(mma, cases);
  for (const char* shape : {"m16n16k16", "m32n8k16", "m8n32k16"}) {
    const int m = shape[1] == '8' ? 8 : shape[1] == '1' ? 16 : 32, n = 256 / m;
    AddWmma({shape, "f16", "f32", m, n, 16, 8, 8, 8}, cases);
    AddWmma({shape, "f16", "f16", m, n, 16, 8, 8, 4}, cases);
    const int tall = m == 32 ? 4 : m == 16 ? 2 : 1, wide = 4 / tall;
    for (const char* element : {"s8", "u8"}) AddWmma({shape, element, "s32", m, n, 16, tall, wide, 8}, cases);
    AddWmma({shape, "bf16", "f32", m, n, 16, tall * 2, wide * 2, 8}, cases);
  }
  AddMatrixMoves(cases);
}

}  // namespace solstice::conformance
