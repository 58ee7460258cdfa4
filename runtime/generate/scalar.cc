#include "runtime/generate/scalar.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "runtime/base/strings.h"
#include "runtime/core/dtype.h"
#include "runtime/core/float_formats.h"

namespace solstice::generate {
namespace {

template <typename T>
std::string Bytes(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

std::string ValueText(const v1::ScalarValue& value) {
  switch (value.value_case()) {
    case v1::ScalarValue::kInteger:
      return base::StrCat(value.integer());
    case v1::ScalarValue::kNumber:
      return base::StrCat(value.number());
    default:
      return base::StrCat(value.boolean());
  }
}

Status DoesNotFit(const v1::ScalarValue& value, v1::DType dtype) {
  return base::InvalidArgument(base::StrCat("the value ", ValueText(value), " does not fit ", core::DTypeName(dtype)),
                               "change the workload's value or the definition's dtype");
}

// True and the number if `value` is a whole number that int64 holds.
bool AsInteger(const v1::ScalarValue& value, int64_t* integer) {
  switch (value.value_case()) {
    case v1::ScalarValue::kInteger:
      *integer = value.integer();
      return true;
    case v1::ScalarValue::kBoolean:
      *integer = value.boolean() ? 1 : 0;
      return true;
    case v1::ScalarValue::kNumber: {
      const double number = value.number();
      if (!(number >= -0x1p63 && number < 0x1p63) || number != std::floor(number)) return false;
      *integer = static_cast<int64_t>(number);
      return true;
    }
    default:
      return false;
  }
}

StatusOr<std::string> EncodeInteger(const v1::ScalarValue& value, v1::DType dtype) {
  int64_t integer = 0;
  if (!AsInteger(value, &integer)) return DoesNotFit(value, dtype);
  auto within = [integer](int64_t low, int64_t high) { return integer >= low && integer <= high; };
  switch (dtype) {
    case v1::INT64:
      return Bytes(integer);
    case v1::INT32:
      if (!within(INT32_MIN, INT32_MAX)) break;
      return Bytes(static_cast<int32_t>(integer));
    case v1::INT16:
      if (!within(INT16_MIN, INT16_MAX)) break;
      return Bytes(static_cast<int16_t>(integer));
    case v1::INT8:
      if (!within(INT8_MIN, INT8_MAX)) break;
      return Bytes(static_cast<int8_t>(integer));
    case v1::UINT8:
      if (!within(0, UINT8_MAX)) break;
      return Bytes(static_cast<uint8_t>(integer));
    default:  // BOOL
      if (!within(0, 1)) break;
      return Bytes(static_cast<uint8_t>(integer));
  }
  return DoesNotFit(value, dtype);
}

}  // namespace

StatusOr<std::string> EncodeScalar(const v1::ScalarValue& value, v1::DType dtype) {
  if (value.value_case() == v1::ScalarValue::VALUE_NOT_SET) return base::InvalidArgument("the scalar has no value");
  if (core::ElementBytes(dtype) == 0) return base::InvalidArgument("the scalar has no dtype");
  if (!core::IsFloating(dtype)) return EncodeInteger(value, dtype);

  double number = value.number();
  if (value.value_case() == v1::ScalarValue::kInteger) number = static_cast<double>(value.integer());
  if (value.value_case() == v1::ScalarValue::kBoolean) number = value.boolean() ? 1 : 0;
  if (!std::isfinite(number)) return DoesNotFit(value, dtype);
  const double magnitude = std::fabs(number);
  switch (dtype) {
    case v1::FLOAT64:
      return Bytes(number);
    case v1::FLOAT32: {
      // Straight from the integer where there is one: by way of double it would be rounded twice.
      const float rounded = value.value_case() == v1::ScalarValue::kInteger ? static_cast<float>(value.integer())
                            : magnitude > 0x1.ffffffp127                    ? std::numeric_limits<float>::infinity()
                                                                            : static_cast<float>(number);
      if (!std::isfinite(rounded)) break;
      return Bytes(rounded);
    }
    case v1::FLOAT16: {
      const uint16_t bits = core::DoubleToHalf(number);
      if ((bits & 0x7fff) == 0x7c00) break;
      return Bytes(bits);
    }
    case v1::BFLOAT16: {
      const uint16_t bits = core::DoubleToBfloat16(number);
      if ((bits & 0x7fff) == 0x7f80) break;
      return Bytes(bits);
    }
    case v1::FLOAT8_E4M3FN:
      if (magnitude > 448) break;
      return Bytes(core::FloatToE4m3(static_cast<float>(number)));
    case v1::FLOAT8_E5M2:
      if (magnitude > 57344) break;
      return Bytes(core::FloatToE5m2(static_cast<float>(number)));
    default: {  // FLOAT4_E2M1FN_X2
      if (magnitude > 6) break;
      const uint8_t nibble = core::FloatToE2m1(static_cast<float>(number));
      return Bytes(static_cast<uint8_t>(nibble | nibble << 4));
    }
  }
  return DoesNotFit(value, dtype);
}

}  // namespace solstice::generate
