#include "runtime/generate/scalar.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/crypto.h"

namespace solstice::generate {
namespace {

v1::ScalarValue Integer(int64_t value) {
  v1::ScalarValue scalar;
  scalar.set_integer(value);
  return scalar;
}
v1::ScalarValue Number(double value) {
  v1::ScalarValue scalar;
  scalar.set_number(value);
  return scalar;
}
v1::ScalarValue Boolean(bool value) {
  v1::ScalarValue scalar;
  scalar.set_boolean(value);
  return scalar;
}

std::string Encoded(const v1::ScalarValue& value, v1::DType dtype) {
  auto bytes = EncodeScalar(value, dtype);
  return bytes.ok() ? base::Hex(*bytes) : "refused";
}

TEST(EncodeScalarTest, LittleEndianInTheTensorsType) {
  EXPECT_EQ(Encoded(Number(1.5), v1::FLOAT64), "000000000000f83f");
  EXPECT_EQ(Encoded(Number(1e-6), v1::FLOAT32), "bd378635");
  EXPECT_EQ(Encoded(Number(1.5), v1::FLOAT16), "003e");
  EXPECT_EQ(Encoded(Number(1.5), v1::BFLOAT16), "c03f");
  EXPECT_EQ(Encoded(Number(1.5), v1::FLOAT8_E4M3FN), "3c");
  EXPECT_EQ(Encoded(Number(1.5), v1::FLOAT8_E5M2), "3e");
  EXPECT_EQ(Encoded(Number(1.5), v1::FLOAT4_E2M1FN_X2), "33");
  EXPECT_EQ(Encoded(Integer(-2), v1::INT64), "feffffffffffffff");
  EXPECT_EQ(Encoded(Integer(-2), v1::INT32), "feffffff");
  EXPECT_EQ(Encoded(Integer(-2), v1::INT16), "feff");
  EXPECT_EQ(Encoded(Integer(-2), v1::INT8), "fe");
  EXPECT_EQ(Encoded(Integer(200), v1::UINT8), "c8");
  EXPECT_EQ(Encoded(Boolean(true), v1::BOOL), "01");
}

TEST(EncodeScalarTest, KindsConvertWhereNothingIsLost) {
  EXPECT_EQ(Encoded(Integer(2), v1::FLOAT32), "00000040");
  EXPECT_EQ(Encoded(Boolean(true), v1::FLOAT32), "0000803f");
  EXPECT_EQ(Encoded(Number(3), v1::INT32), "03000000");
  EXPECT_EQ(Encoded(Boolean(true), v1::INT32), "01000000");
  EXPECT_EQ(Encoded(Integer(1), v1::BOOL), "01");
  EXPECT_EQ(Encoded(Number(0), v1::BOOL), "00");
  // Rounded once: by way of double this would be 0x5a800000.
  EXPECT_EQ(Encoded(Integer((int64_t{1} << 54) + (int64_t{1} << 30) + 1), v1::FLOAT32), "0100805a");
}

TEST(EncodeScalarTest, RangeEdges) {
  EXPECT_EQ(Encoded(Integer(2147483647), v1::INT32), "ffffff7f");
  EXPECT_EQ(Encoded(Integer(2147483648), v1::INT32), "refused");
  EXPECT_EQ(Encoded(Integer(-32769), v1::INT16), "refused");
  EXPECT_EQ(Encoded(Integer(128), v1::INT8), "refused");
  EXPECT_EQ(Encoded(Integer(-1), v1::UINT8), "refused");
  EXPECT_EQ(Encoded(Integer(256), v1::UINT8), "refused");
  EXPECT_EQ(Encoded(Integer(2), v1::BOOL), "refused");
  EXPECT_EQ(Encoded(Number(1.5), v1::INT32), "refused");
  EXPECT_EQ(Encoded(Number(0x1p63), v1::INT64), "refused");
  EXPECT_EQ(Encoded(Number(-0x1p63), v1::INT64), "0000000000000080");
  EXPECT_EQ(Encoded(Number(1e39), v1::FLOAT32), "refused");
  EXPECT_EQ(Encoded(Number(0x1.ffffffp127), v1::FLOAT32), "refused") << "rounds to infinity";
  EXPECT_EQ(Encoded(Number(65504), v1::FLOAT16), "ff7b");
  EXPECT_EQ(Encoded(Number(65520), v1::FLOAT16), "refused");
  EXPECT_EQ(Encoded(Number(-1e39), v1::BFLOAT16), "refused");
  EXPECT_EQ(Encoded(Number(449), v1::FLOAT8_E4M3FN), "refused");
  EXPECT_EQ(Encoded(Number(60000), v1::FLOAT8_E5M2), "refused");
  EXPECT_EQ(Encoded(Number(7), v1::FLOAT4_E2M1FN_X2), "refused");
}

TEST(EncodeScalarTest, WhatIsNoValueIsRefused) {
  for (v1::DType dtype : {v1::FLOAT64, v1::FLOAT32, v1::BFLOAT16, v1::INT32, v1::BOOL}) {
    EXPECT_EQ(Encoded({}, dtype), "refused");
    EXPECT_EQ(Encoded(Number(std::numeric_limits<double>::quiet_NaN()), dtype), "refused");
    EXPECT_EQ(Encoded(Number(-std::numeric_limits<double>::infinity()), dtype), "refused");
  }
  auto status = EncodeScalar(Number(1.5), v1::INT32).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(base::MessageOf(status), "the value 1.5 does not fit int32");
  EXPECT_FALSE(EncodeScalar(Integer(1), v1::DTYPE_UNSPECIFIED).ok());
}

}  // namespace
}  // namespace solstice::generate
