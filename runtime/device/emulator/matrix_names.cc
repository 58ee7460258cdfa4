#include "runtime/device/emulator/matrix_names.h"

#include <algorithm>
#include <array>
#include <utility>

namespace solstice::device {
namespace {

constexpr std::pair<std::string_view, Element> kElements[] = {
    {"f16", Element::kF16},   {"bf16", Element::kBf16}, {"tf32", Element::kTf32}, {"f32", Element::kF32},
    {"f64", Element::kF64},   {"s8", Element::kS8},     {"u8", Element::kU8},     {"s4", Element::kS4},
    {"u4", Element::kU4},     {"s32", Element::kS32},   {"b1", Element::kB1},     {"e4m3", Element::kE4m3},
    {"e5m2", Element::kE5m2}, {"e3m2", Element::kE3m2}, {"e2m3", Element::kE2m3}, {"e2m1", Element::kE2m1}};

constexpr std::pair<std::string_view, AddressSpace> kSpaces[] = {
    {"global", AddressSpace::kGlobal}, {"shared", AddressSpace::kShared}, {"shared::cta", AddressSpace::kShared}};

using Shape = std::array<int, 3>;

bool IsOneOf(const Shape& shape, std::initializer_list<Shape> shapes) {
  return std::find(shapes.begin(), shapes.end(), shape) != shapes.end();
}

// "m16n8k32"
bool ReadShape(std::string_view word, MatrixWords* words) {
  int* const to[] = {&words->m, &words->n, &words->k};
  int values[3] = {};
  size_t at = 0;
  for (int i = 0; i < 3; ++i) {
    if (i == 2 && at == word.size()) break;  // "m8n8" of ldmatrix
    if (at >= word.size() || word[at] != "mnk"[i]) return false;
    const size_t begin = ++at;
    while (at < word.size() && at - begin < 3 && word[at] >= '0' && word[at] <= '9') {
      values[i] = values[i] * 10 + (word[at++] - '0');
    }
    if (at == begin) return false;
  }
  if (at != word.size()) return false;
  for (int i = 0; i < 3; ++i) *to[i] = values[i];
  return true;
}

bool IsEightBits(Element e) { return e == Element::kS8 || e == Element::kU8; }
bool IsFourBits(Element e) { return e == Element::kS4 || e == Element::kU4; }
bool IsByteFloat(Element e) { return e == Element::kE4m3 || e == Element::kE5m2; }
bool IsNarrowFloat(Element e) { return e >= Element::kE4m3; }
bool IsSumOfHalves(Element e) { return e == Element::kF16 || e == Element::kF32; }

bool IsMma(const MatrixKey& key, bool narrow) {
  const Shape shape = {key.m, key.n, key.k};
  const bool same = key.a == key.b, one_sum = key.c == key.d;
  const bool column = key.a_row && !key.b_row;
  auto sums = [&](Element e) { return one_sum && key.d == e; };
  if (narrow) {
    return column && shape == Shape{16, 8, 32} && IsNarrowFloat(key.a) && IsNarrowFloat(key.b) && one_sum &&
           IsSumOfHalves(key.d);
  }
  switch (key.a) {
    case Element::kF16:
      if (!same || !IsSumOfHalves(key.c) || !IsSumOfHalves(key.d)) return false;
      if (shape == Shape{8, 8, 4}) return key.d == Element::kF32 || key.c == Element::kF16;
      return column && one_sum && IsOneOf(shape, {{16, 8, 8}, {16, 8, 16}});
    case Element::kBf16:
      return column && same && sums(Element::kF32) && IsOneOf(shape, {{16, 8, 8}, {16, 8, 16}});
    case Element::kTf32:
      return column && same && sums(Element::kF32) && IsOneOf(shape, {{16, 8, 4}, {16, 8, 8}});
    case Element::kF64:
      return column && same && sums(Element::kF64) && IsOneOf(shape, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}});
    case Element::kS8:
    case Element::kU8:
      return column && IsEightBits(key.b) && sums(Element::kS32) &&
             IsOneOf(shape, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}});
    case Element::kS4:
    case Element::kU4:
      return column && IsFourBits(key.b) && sums(Element::kS32) &&
             IsOneOf(shape, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}});
    case Element::kB1:
      return column && same && sums(Element::kS32) && IsOneOf(shape, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}});
    case Element::kE4m3:
    case Element::kE5m2:
      return column && IsByteFloat(key.b) && one_sum && IsSumOfHalves(key.d) &&
             IsOneOf(shape, {{16, 8, 16}, {16, 8, 32}});
    default:
      return false;
  }
}

bool IsWmma(const MatrixKey& key) {
  const Shape shape = {key.m, key.n, key.k};
  const bool large = IsOneOf(shape, {{16, 16, 16}, {8, 32, 16}, {32, 8, 16}});
  if (key.a != key.b) return false;
  auto sums = [&](Element e) { return key.c == e && key.d == e; };
  switch (key.a) {
    case Element::kF16:
      return large && IsSumOfHalves(key.c) && IsSumOfHalves(key.d);
    case Element::kBf16:
      return large && sums(Element::kF32);
    case Element::kS8:
    case Element::kU8:
      return large && sums(Element::kS32);
    case Element::kTf32:
      return shape == Shape{16, 16, 8} && sums(Element::kF32);
    case Element::kF64:
      return shape == Shape{8, 8, 4} && sums(Element::kF64);
    default:
      return false;
  }
}

}  // namespace

bool MatrixWords::Has(std::string_view word) const { return std::find(rest.begin(), rest.end(), word) != rest.end(); }

bool ReadMatrixWords(const std::vector<std::string>& modifiers, MatrixWords* words) {
  bool sync = false, aligned = false, shaped = false;
  for (const std::string& word : modifiers) {
    const auto named = [&](const auto& pair) { return pair.first == word; };
    if (word == "sync") {
      sync = true;
    } else if (word == "aligned") {
      aligned = true;
    } else if (word == "row" || word == "col") {
      words->row_major.push_back(word == "row");
    } else if (const auto* e = std::find_if(std::begin(kElements), std::end(kElements), named);
               e != std::end(kElements)) {
      words->elements.push_back(e->second);
    } else if (const auto* s = std::find_if(std::begin(kSpaces), std::end(kSpaces), named); s != std::end(kSpaces)) {
      words->space = s->second;
    } else if (!shaped && ReadShape(word, words)) {
      shaped = true;
    } else {
      words->rest.push_back(word);
    }
  }
  return sync && aligned;
}

bool MakeMatrixKey(const MatrixWords& words, bool wmma, MatrixKey* key) {
  std::vector<Element> e = words.elements;
  // wmma in float16 names the accumulators only.
  if (wmma && e.size() == 2) e = {e[0], Element::kF16, Element::kF16, e[1]};
  if (e.size() != 4 || words.row_major.size() != 2 || words.space != AddressSpace::kGeneric) return false;
  key->m = words.m;
  key->n = words.n;
  key->k = words.k;
  key->d = e[0];
  key->a = e[1];
  key->b = e[2];
  key->c = e[3];
  key->wmma = wmma;
  key->a_row = words.row_major[0];
  key->b_row = words.row_major[1];
  bool narrow = false, popc = false, combine = false;
  for (const std::string_view word : words.rest) {
    if (word == "satfinite" && key->d == Element::kS32 && key->a != Element::kB1) {
      key->saturate = true;
    } else if (word == "kind::f8f6f4" && !wmma) {
      narrow = true;
    } else if (word == "popc") {
      popc = true;
    } else if (word == "and" || word == "xor") {
      combine = true;
      key->bitwise_and = word == "and";
    } else if (word != "rn" || key->d != Element::kF64) {
      return false;
    }
  }
  const bool bits = key->a == Element::kB1;
  if (popc != bits || combine != bits) return false;
  return wmma ? IsWmma(*key) : IsMma(*key, narrow);
}

bool MakeFragmentKey(const MatrixWords& words, MatrixRole role, FragmentKey* key) {
  if (words.elements.size() != 1 || words.row_major.size() != 1 || !words.rest.empty()) return false;
  MatrixKey product;
  product.m = key->m = words.m;
  product.n = key->n = words.n;
  product.k = key->k = words.k;
  product.wmma = key->wmma = true;
  key->role = role;
  key->element = words.elements[0];
  // It exists if some product has it.
  static constexpr std::pair<Element, Element> kProducts[] = {
      {Element::kF16, Element::kF16},  {Element::kF16, Element::kF32}, {Element::kBf16, Element::kF32},
      {Element::kTf32, Element::kF32}, {Element::kF64, Element::kF64}, {Element::kS8, Element::kS32},
      {Element::kU8, Element::kS32}};
  return std::any_of(std::begin(kProducts), std::end(kProducts), [&](const auto& pair) {
    product.a = product.b = pair.first;
    product.c = product.d = pair.second;
    return key->element == (role == MatrixRole::kAccumulator ? product.c : product.a) && IsWmma(product);
  });
}

}  // namespace solstice::device
