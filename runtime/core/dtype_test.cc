#include "runtime/core/dtype.h"

#include <gtest/gtest.h>

#include <string>

namespace solstice::core {
namespace {

struct Row {
  const char* name;
  v1::DType dtype;
  int64_t bytes;
  int64_t values;
  bool floating;
};

const Row kRows[] = {
    {"float64", v1::FLOAT64, 8, 1, true},
    {"float32", v1::FLOAT32, 4, 1, true},
    {"float16", v1::FLOAT16, 2, 1, true},
    {"bfloat16", v1::BFLOAT16, 2, 1, true},
    {"float8_e4m3fn", v1::FLOAT8_E4M3FN, 1, 1, true},
    {"float8_e5m2", v1::FLOAT8_E5M2, 1, 1, true},
    {"float4_e2m1fn_x2", v1::FLOAT4_E2M1FN_X2, 1, 2, true},
    {"int64", v1::INT64, 8, 1, false},
    {"int32", v1::INT32, 4, 1, false},
    {"int16", v1::INT16, 2, 1, false},
    {"int8", v1::INT8, 1, 1, false},
    {"uint8", v1::UINT8, 1, 1, false},
    {"bool", v1::BOOL, 1, 1, false},
};

TEST(DTypeTest, FactsOfEveryType) {
  for (const Row& row : kRows) {
    SCOPED_TRACE(row.name);
    auto parsed = ParseDType(row.name);
    ASSERT_TRUE(parsed.ok());
    EXPECT_EQ(*parsed, row.dtype);
    EXPECT_EQ(DTypeName(row.dtype), row.name);
    EXPECT_EQ(ElementBytes(row.dtype), row.bytes);
    EXPECT_EQ(ValuesPerElement(row.dtype), row.values);
    EXPECT_EQ(IsFloating(row.dtype), row.floating);
  }
}

// A type added to the protocol without facts here would have no size.
TEST(DTypeTest, EveryProtocolValueHasFacts) {
  for (int value = v1::DType_MIN; value <= v1::DType_MAX; ++value) {
    if (!v1::DType_IsValid(value) || value == v1::DTYPE_UNSPECIFIED) continue;
    const auto dtype = static_cast<v1::DType>(value);
    EXPECT_GT(ElementBytes(dtype), 0) << v1::DType_Name(dtype);
    auto parsed = ParseDType(DTypeName(dtype));
    ASSERT_TRUE(parsed.ok()) << v1::DType_Name(dtype);
    EXPECT_EQ(*parsed, dtype);
  }
}

TEST(DTypeTest, UnknownNamesAreRefusedWithTheNearest) {
  auto near = ParseDType("bfloat15");
  ASSERT_FALSE(near.ok());
  EXPECT_EQ(near.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_NE(base::MessageOf(near.status()).find("bfloat15"), std::string::npos);
  EXPECT_NE(base::MendOf(near.status()).find("bfloat16"), std::string::npos);

  for (const char* name : {"", "Float32", "unspecified", "torch.float32", " float32", "xxxxxxxxxxxxxxxxxxxxxxx"}) {
    auto parsed = ParseDType(name);
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(parsed.status().code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_FALSE(base::MendOf(parsed.status()).empty()) << name;
  }
}

TEST(DTypeTest, ValuesThatAreNoTypeHaveNoBytes) {
  for (int value : {0, 14, 1000}) {
    const auto dtype = static_cast<v1::DType>(value);
    EXPECT_EQ(ElementBytes(dtype), 0);
    EXPECT_EQ(DTypeName(dtype), "unspecified");
    EXPECT_FALSE(IsFloating(dtype));
  }
}

}  // namespace
}  // namespace solstice::core
