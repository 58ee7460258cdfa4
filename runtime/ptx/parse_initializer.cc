// Initialisers of module-scope variables: numbers, addresses of symbols, nested braces.
#include <cstring>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/ptx/parser.h"

namespace solstice::ptx {
namespace {

using base::StrCat;

constexpr int kPointerBytes = 8;

// IEEE half and bfloat16 constants are written as bit patterns; only these two take decimal floating point.
bool IsFloatType(const Type& type) { return type.name == "f32" || type.name == "f64"; }

}  // namespace

// Behind the '='.
bool Parser::ParseInitializer(Variable* variable, const std::vector<int64_t>& dimensions) {
  bool unsized = !dimensions.empty() && dimensions[0] == 0;
  if (!unsized) {
    int64_t bytes = variable->count * variable->type.bytes;
    if (!Count(&initial_bytes_, Limits::kInitialBytes, static_cast<size_t>(bytes), "bytes of initial values")) {
      return false;
    }
    variable->initial.resize(static_cast<size_t>(bytes));
  }
  int64_t elements = 0;
  if (IsPunctuation('{')) {
    if (!ParseInitializerList(variable, dimensions, 0, &elements)) return false;
  } else {
    if (!ParseInitializerElement(variable, 0)) return false;
    elements = 1;
  }
  if (unsized) variable->count = elements;
  return true;
}

// A braced list at `depth` dimensions; `*at` is the element it starts at and, afterwards, the one behind it.
bool Parser::ParseInitializerList(Variable* variable, const std::vector<int64_t>& dimensions, size_t depth,
                                  int64_t* at) {
  if (depth > static_cast<size_t>(Limits::kDimensions)) return Fail("an initialiser is nested too deep");
  Advance();
  int64_t inner = 1;  // elements of one item of this list, if it is a list
  for (size_t i = depth + 1; i < dimensions.size(); ++i) inner *= dimensions[i];
  int64_t start = *at, next = start;
  if (!IsPunctuation('}')) {
    do {
      if (IsPunctuation('{')) {
        int64_t item = next;
        if (!ParseInitializerList(variable, dimensions, depth + 1, &item)) return false;
        next += inner;
        if (item > next) return Fail("an inner list of the initialiser has too many elements");
      } else if (!ParseInitializerElement(variable, next++)) {
        return false;
      }
    } while (Accept(',') && !IsPunctuation('}'));
  }
  bool unsized = depth == 0 && !dimensions.empty() && dimensions[0] == 0;
  int64_t size = depth < dimensions.size() ? inner * dimensions[depth] : 1;
  if (!unsized && next - start > size) return Fail("the initialiser has too many elements");
  // An unsized array grows as elements are read; a short inner list still fills its row.
  *at = unsized ? start + (next - start + inner - 1) / std::max<int64_t>(inner, 1) * inner : next;
  if (unsized) {
    size_t bytes = static_cast<size_t>(*at) * variable->type.bytes;
    if (bytes > variable->initial.size()) {
      if (!Count(&initial_bytes_, Limits::kInitialBytes, bytes - variable->initial.size(), "bytes of initial values")) {
        return false;
      }
      variable->initial.resize(bytes);
    }
  }
  return Expect('}', "after an initialiser");
}

bool Parser::ParseInitializerElement(Variable* variable, int64_t at) {
  int64_t bytes = variable->type.bytes;
  if (at < 0 || at >= Limits::kVariableBytes / bytes) return Fail("the initialiser has too many elements");
  int64_t offset = at * bytes;
  auto end = static_cast<size_t>(offset + bytes);
  if (end > variable->initial.size()) {
    if (variable->count != 0) return Fail("the initialiser has too many elements");
    if (!Count(&initial_bytes_, Limits::kInitialBytes, end - variable->initial.size(), "bytes of initial values")) {
      return false;
    }
    variable->initial.resize(end);
  }
  if (IsIdentifier() && token_.text != "WARP_SZ") return ParseSymbolAddress(variable, offset, std::nullopt);
  if (token_.kind == Token::Kind::kInteger && Peek().kind == Token::Kind::kPunctuation && Peek().punctuation == '(') {
    uint64_t mask = token_.bits;  // 0xFF00(symbol): one byte of an address
    Advance();
    Advance();
    return ParseSymbolAddress(variable, offset, mask) && Expect(')', "after the address in a mask");
  }
  Constant value;
  return ParseConstant(&value) && StoreElement(variable, offset, value);
}

bool Parser::StoreElement(Variable* variable, int64_t offset, const Constant& value) {
  size_t bytes = variable->type.bytes;
  uint64_t low = value.bits, high = 0;
  if (value.is_float) {
    if (!IsFloatType(variable->type) && static_cast<size_t>(value.float_bytes) != bytes) {
      return Fail(StrCat("a floating-point initialiser does not fit the type ", base::Quote(variable->type.name)));
    }
    if (value.float_bytes == 8 && bytes == 4) {
      double wide;
      std::memcpy(&wide, &low, sizeof wide);
      auto narrow = static_cast<float>(wide);
      uint32_t bits;
      std::memcpy(&bits, &narrow, sizeof bits);
      low = bits;
    } else if (value.float_bytes == 4 && bytes == 8) {
      auto bits = static_cast<uint32_t>(low);
      float narrow;
      std::memcpy(&narrow, &bits, sizeof narrow);
      double wide = narrow;
      std::memcpy(&low, &wide, sizeof low);
    }
  } else if (IsFloatType(variable->type)) {
    double wide = value.is_unsigned ? static_cast<double>(low) : static_cast<double>(static_cast<int64_t>(low));
    Constant converted;
    converted.is_float = true;
    converted.float_bytes = 8;
    std::memcpy(&converted.bits, &wide, sizeof wide);
    return StoreElement(variable, offset, converted);
  } else if (!value.is_unsigned && static_cast<int64_t>(low) < 0) {
    high = ~uint64_t{0};
  }
  uint8_t* at = variable->initial.data() + offset;
  std::memcpy(at, &low, std::min<size_t>(bytes, sizeof low));
  if (bytes > sizeof low) std::memcpy(at + sizeof low, &high, bytes - sizeof low);
  return true;
}

// symbol, generic(symbol), either with + or - a constant. With a mask the element holds one byte of the address: the
// eight in a row together make one relocation.
bool Parser::ParseSymbolAddress(Variable* variable, int64_t offset, std::optional<uint64_t> mask) {
  Variable::Relocation relocation;
  relocation.offset = offset;
  std::string_view name;
  int line = token_.line;
  if (!ExpectIdentifier(&name, "a symbol")) return false;
  if (name == "generic" && Accept('(')) {
    relocation.generic = true;
    if (!ExpectIdentifier(&name, "a symbol") || !ParseOffset(&relocation.addend)) return false;
    if (!Expect(')', "after the symbol")) return false;
  }
  int64_t addend = 0;
  if (!ParseOffset(&addend)) return false;
  relocation.addend = static_cast<int64_t>(static_cast<uint64_t>(relocation.addend) + static_cast<uint64_t>(addend));
  relocation.symbol = name;
  wanted_.try_emplace(name, line);
  if (!mask.has_value()) {
    if (variable->type.bytes != kPointerBytes) {
      return Fail("an address in an initialiser needs an element of 8 bytes");
    }
    variable->relocations.push_back(std::move(relocation));
    return true;
  }
  if (variable->type.bytes != 1) return Fail("a masked address in an initialiser needs an element of 1 byte");
  int byte = 0;
  while (byte < kPointerBytes && *mask != uint64_t{0xFF} << (8 * byte)) ++byte;
  if (byte == kPointerBytes) return Fail("the mask of an address must select one byte");
  if (byte == 0) {
    variable->relocations.push_back(std::move(relocation));
    return true;
  }
  const Variable::Relocation* first = variable->relocations.empty() ? nullptr : &variable->relocations.back();
  if (first == nullptr || first->offset + byte != offset || first->symbol != relocation.symbol ||
      first->addend != relocation.addend || first->generic != relocation.generic) {
    return Fail("the bytes of an address in an initialiser must follow each other from the lowest");
  }
  return true;
}

}  // namespace solstice::ptx
