// Values passed by value, and the names a device adds to formulas.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/strings.h"
#include "runtime/core/float_formats.h"
#include "runtime/plan/statement.h"

namespace solstice::plan {
namespace {

using base::InvalidArgument;
using base::StrCat;

constexpr ScalarType kScalarTypes[] = {{"i8", 1, false},  {"i16", 2, false}, {"i32", 4, false}, {"i64", 8, false},
                                       {"u8", 1, false},  {"u16", 2, false}, {"u32", 4, false}, {"u64", 8, false},
                                       {"f16", 2, true},  {"bf16", 2, true}, {"f32", 4, true},  {"f64", 8, true},
                                       {"bool", 1, false}};

constexpr std::string_view kDeviceNames[] = {"sm_count", "max_shared", "l2_bytes", "arch"};

std::string LittleEndian(uint64_t bits, int bytes) {
  std::string out;
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>(bits >> (8 * i)));
  return out;
}

StatusOr<std::string> EncodeInteger(const ScalarType& type, const expr::Value& value) {
  if (std::holds_alternative<double>(value)) {
    return InvalidArgument(
        StrCat("the result is the float ", expr::ToText(value), ", ", type.name, " needs an integer"),
        "use // instead of /, or floor() or ceil()");
  }
  const bool* flag = std::get_if<bool>(&value);
  int64_t integer = flag != nullptr ? int64_t{*flag} : std::get<int64_t>(value);
  int64_t low = 0, high = 1;
  if (type.name != "bool") {
    bool is_signed = type.name[0] == 'i';
    int bits = 8 * type.bytes - (is_signed ? 1 : 0);
    high = bits >= 63 ? INT64_MAX : (int64_t{1} << bits) - 1;
    low = is_signed ? -high - 1 : 0;
  }
  if (integer < low || integer > high) {
    return InvalidArgument(StrCat(integer, " does not fit in ", type.name, " (", low, " to ", high, ")"));
  }
  return LittleEndian(static_cast<uint64_t>(integer), type.bytes);
}

StatusOr<std::string> EncodeFloat(const ScalarType& type, const expr::Value& value) {
  double number = expr::ToDouble(value);
  if (std::isnan(number)) return InvalidArgument("the result is not a number");
  uint64_t bits = 0;
  bool overflow = false;
  if (type.name == "f64") {
    std::memcpy(&bits, &number, sizeof number);
  } else if (type.name == "f32") {
    // 0x1.ffffffp127 is halfway between the largest float and the next; the conversion is defined only below it.
    overflow = std::fabs(number) >= 0x1.ffffffp127 && !std::isinf(number);
    float narrow = overflow ? 0.0f : static_cast<float>(number);
    uint32_t word = 0;
    std::memcpy(&word, &narrow, sizeof narrow);
    bits = word;
  } else {
    bool half = type.name == "f16";
    uint16_t word = half ? core::DoubleToHalf(number) : core::DoubleToBfloat16(number);
    uint16_t infinity = half ? 0x7C00 : 0x7F80;
    overflow = (word & 0x7FFF) == infinity && !std::isinf(number);
    bits = word;
  }
  if (overflow) return InvalidArgument(StrCat(expr::ToText(value), " does not fit in ", type.name));
  return LittleEndian(bits, type.bytes);
}

}  // namespace

const ScalarType* FindScalarType(std::string_view name) {
  for (const ScalarType& type : kScalarTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::vector<std::string> ScalarTypeNames() {
  std::vector<std::string> names;
  for (const ScalarType& type : kScalarTypes) names.emplace_back(type.name);
  return names;
}

const ScalarType* ScalarTypeOf(v1::DType dtype) {
  switch (dtype) {
    case v1::FLOAT64:
      return FindScalarType("f64");
    case v1::FLOAT32:
      return FindScalarType("f32");
    case v1::FLOAT16:
      return FindScalarType("f16");
    case v1::BFLOAT16:
      return FindScalarType("bf16");
    case v1::INT64:
      return FindScalarType("i64");
    case v1::INT32:
      return FindScalarType("i32");
    case v1::INT16:
      return FindScalarType("i16");
    case v1::INT8:
      return FindScalarType("i8");
    case v1::UINT8:
      return FindScalarType("u8");
    case v1::BOOL:
      return FindScalarType("bool");
    default:
      return nullptr;
  }
}

StatusOr<std::string> EncodeScalar(const ScalarType& type, const expr::Value& value) {
  return type.is_float ? EncodeFloat(type, value) : EncodeInteger(type, value);
}

std::vector<std::pair<std::string, int64_t>> DeviceNames(const v1::DeviceProperties& device) {
  int64_t arch = 0;
  for (char c : device.arch()) {
    if (c >= '0' && c <= '9' && arch < 1000000) arch = arch * 10 + (c - '0');
  }
  return {{"sm_count", device.sm_count()},
          {"max_shared", device.max_shared_bytes()},
          {"l2_bytes", device.l2_bytes()},
          {"arch", arch}};
}

bool IsDeviceName(std::string_view name) {
  return std::find(std::begin(kDeviceNames), std::end(kDeviceNames), name) != std::end(kDeviceNames);
}

}  // namespace solstice::plan
