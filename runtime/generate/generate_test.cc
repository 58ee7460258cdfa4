#include "runtime/generate/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>

#include "runtime/base/crypto.h"
#include "runtime/core/dtype.h"
#include "runtime/core/float_formats.h"

namespace solstice::generate {
namespace {

using Shape = std::vector<int64_t>;
constexpr Seeds kSeeds = {0x0123456789abcdefull, 0xfedcba9876543210ull};

v1::Tensor TensorOf(const std::string& name, v1::DType dtype) {
  v1::Tensor tensor;
  tensor.set_name(name);
  tensor.set_dtype(dtype);
  return tensor;
}

v1::InputSource Random() {
  v1::InputSource source;
  source.set_random(true);
  return source;
}

std::string Make(const std::string& name, v1::DType dtype, const Shape& shape, int variant = 0, int index = 0,
                 Seeds seeds = kSeeds) {
  auto bytes = GenerateInput(TensorOf(name, dtype), Random(), shape, index, seeds, variant);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *std::move(bytes) : std::string();
}

template <typename T>
std::vector<T> As(const std::string& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

std::vector<double> Values(const std::string& bytes, v1::DType dtype) {
  std::vector<double> values;
  switch (dtype) {
    case v1::FLOAT64:
      return As<double>(bytes);
    case v1::FLOAT32:
      for (float value : As<float>(bytes)) values.push_back(value);
      break;
    case v1::FLOAT16:
      for (uint16_t bits : As<uint16_t>(bytes)) values.push_back(core::HalfToFloat(bits));
      break;
    case v1::BFLOAT16:
      for (uint16_t bits : As<uint16_t>(bytes)) values.push_back(core::Bfloat16ToFloat(bits));
      break;
    case v1::FLOAT8_E4M3FN:
      for (uint8_t bits : As<uint8_t>(bytes)) values.push_back(core::E4m3ToFloat(bits));
      break;
    case v1::FLOAT8_E5M2:
      for (uint8_t bits : As<uint8_t>(bytes)) values.push_back(core::E5m2ToFloat(bits));
      break;
    case v1::FLOAT4_E2M1FN_X2:
      for (uint8_t bits : As<uint8_t>(bytes)) {
        values.push_back(core::E2m1ToFloat(bits & 0xf));
        values.push_back(core::E2m1ToFloat(bits >> 4));
      }
      break;
    case v1::INT16:
      for (int16_t value : As<int16_t>(bytes)) values.push_back(value);
      break;
    case v1::INT32:
      for (int32_t value : As<int32_t>(bytes)) values.push_back(value);
      break;
    case v1::INT64:
      for (int64_t value : As<int64_t>(bytes)) values.push_back(static_cast<double>(value));
      break;
    case v1::INT8:
      for (int8_t value : As<int8_t>(bytes)) values.push_back(value);
      break;
    default:
      for (uint8_t value : As<uint8_t>(bytes)) values.push_back(value);
  }
  return values;
}

std::vector<double> MakeValues(const std::string& name, v1::DType dtype, const Shape& shape, int variant = 0) {
  return Values(Make(name, dtype, shape, variant), dtype);
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (double value : values) sum += value;
  return sum / static_cast<double>(values.size());
}
double Variance(const std::vector<double>& values) {
  const double mean = Mean(values);
  double sum = 0;
  for (double value : values) sum += (value - mean) * (value - mean);
  return sum / static_cast<double>(values.size());
}
double FractionBelow(const std::vector<double>& values, double limit) {
  return static_cast<double>(std::count_if(values.begin(), values.end(), [&](double v) { return v < limit; })) /
         static_cast<double>(values.size());
}
double Correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum / static_cast<double>(a.size()) / std::sqrt(Variance(a) * Variance(b));
}

TEST(GenerateTest, StandardNormals) {
  const struct {
    v1::DType dtype;
    double variance;  // of values clamped to +-2 for eight bits
  } rows[] = {{v1::FLOAT64, 1}, {v1::FLOAT32, 1}, {v1::FLOAT16, 1}, {v1::BFLOAT16, 1}};
  for (const auto& row : rows) {
    SCOPED_TRACE(v1::DType_Name(row.dtype));
    const std::vector<double> values = MakeValues("x", row.dtype, {1000, 1000});
    ASSERT_EQ(values.size(), 1000000u);
    EXPECT_NEAR(Mean(values), 0, 0.004);
    EXPECT_NEAR(Variance(values), row.variance, 0.006);
    // Quantiles against the error function; four standard errors are 0.002. Coarse types put ties on the limit.
    for (double limit : {-3.001, -2.001, -1.001, -0.4001, 0.0001, 0.7001, 1.5001, 2.5001}) {
      EXPECT_NEAR(FractionBelow(values, limit), 0.5 * std::erfc(-limit / std::sqrt(2.0)), 0.003) << limit;
    }
    EXPECT_GT(*std::max_element(values.begin(), values.end()), 4);
    EXPECT_LT(*std::min_element(values.begin(), values.end()), -4);
    // No serial correlation.
    std::vector<double> shifted(values.begin() + 1, values.end());
    shifted.push_back(values[0]);
    EXPECT_NEAR(Correlation(values, shifted), 0, 0.005);
  }
}

TEST(GenerateTest, NarrowFloats) {
  for (v1::DType dtype : {v1::FLOAT8_E4M3FN, v1::FLOAT8_E5M2}) {
    const std::vector<double> values = MakeValues("x", dtype, {500, 400});
    EXPECT_NEAR(Mean(values), 0, 0.01);
    EXPECT_NEAR(Variance(values), 0.92, 0.03) << "a normal clamped to two standard deviations";
    EXPECT_EQ(*std::max_element(values.begin(), values.end()), 2);
    EXPECT_EQ(*std::min_element(values.begin(), values.end()), -2);
  }
  // 6 needs |n| > 5, which these seeds lack.
  const std::vector<double> four = MakeValues("x", v1::FLOAT4_E2M1FN_X2, {500, 200});
  ASSERT_EQ(four.size(), 200000u);
  EXPECT_NEAR(Mean(four), 0, 0.01);
  EXPECT_NEAR(Variance(four), 1.03, 0.05);
  EXPECT_EQ(std::set<double>(four.begin(), four.end()).size(), 13u) << "-4 to 4, zeros equal";
  // |n| < 0.25 rounds to zero, ties to even apart.
  EXPECT_NEAR(static_cast<double>(std::count(four.begin(), four.end(), 0.0)) / 200000, std::erf(0.25 / std::sqrt(2.0)),
              0.005);
}

TEST(GenerateTest, Integers) {
  for (v1::DType dtype : {v1::INT16, v1::INT32, v1::INT64}) {
    const std::vector<double> values = MakeValues("x", dtype, {200000});
    EXPECT_EQ(*std::min_element(values.begin(), values.end()), -1024);
    EXPECT_EQ(*std::max_element(values.begin(), values.end()), 1023);
    EXPECT_NEAR(Mean(values), -0.5, 6);
    EXPECT_EQ(std::set<double>(values.begin(), values.end()).size(), 2048u);
  }
  const std::vector<double> bytes = MakeValues("x", v1::INT8, {20000});
  EXPECT_EQ(*std::min_element(bytes.begin(), bytes.end()), -128);
  EXPECT_EQ(*std::max_element(bytes.begin(), bytes.end()), 127);
  const std::vector<double> unsigned_bytes = MakeValues("x", v1::UINT8, {20000});
  EXPECT_EQ(*std::min_element(unsigned_bytes.begin(), unsigned_bytes.end()), 0);
  EXPECT_EQ(*std::max_element(unsigned_bytes.begin(), unsigned_bytes.end()), 255);
}

TEST(GenerateTest, BoolsAreAFairCoinWithBothSides) {
  const std::vector<double> values = MakeValues("x", v1::BOOL, {100003});
  EXPECT_NEAR(Mean(values), 0.5, 0.01);
  EXPECT_EQ(std::set<double>(values.begin(), values.end()), (std::set<double>{0, 1}));
  bool single[2] = {};
  for (uint64_t seed = 0; seed < 200; ++seed) {
    for (int64_t n : {2, 3, 5}) {
      const std::string few = Make("x", v1::BOOL, {n}, 0, 0, {seed, 0});
      EXPECT_NE(few.find('\0'), std::string::npos) << seed;
      EXPECT_NE(few.find('\1'), std::string::npos) << seed;
    }
    single[static_cast<int>(Make("x", v1::BOOL, {1}, 0, 0, {seed, 0})[0])] = true;
  }
  EXPECT_TRUE(single[0] && single[1]) << "one element is either";
}

TEST(GenerateTest, NormWeightsAndBiases) {
  for (v1::DType dtype : {v1::FLOAT64, v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16}) {
    for (int variant : {0, 2}) {
      EXPECT_EQ(MakeValues("q_norm_weight", dtype, {100}, variant), std::vector<double>(100, 1.0));
      EXPECT_EQ(MakeValues("q_norm_bias", dtype, {100}, variant), std::vector<double>(100, 0.0));
    }
    const std::vector<double> weights = MakeValues("q_norm_weight", dtype, {100000}, 1);
    EXPECT_NEAR(Mean(weights), 1, 0.003);
    EXPECT_NEAR(Variance(weights), 0.01, 0.0005);
    const std::vector<double> biases = MakeValues("q_norm_bias", dtype, {100000}, 1);
    EXPECT_NEAR(Mean(biases), 0, 0.003);
    EXPECT_NEAR(Variance(biases), 0.01, 0.0005);
  }
}

TEST(GenerateTest, CausalMasks) {
  const double lowest[] = {-65504, -0x1.fep127, -0x1.fffffep127};
  const v1::DType types[] = {v1::FLOAT16, v1::BFLOAT16, v1::FLOAT32};
  for (int type = 0; type < 3; ++type) {
    for (int variant : {0, 1, 2}) {
      const int side = 64;
      const std::vector<double> mask = MakeValues("attention_mask", types[type], {2, 3, side, side}, variant);
      int holes = 0;
      for (size_t i = 0; i < mask.size(); ++i) {
        const size_t column = i % side, row = i / side % side;
        ASSERT_TRUE(mask[i] == 0 || mask[i] == lowest[type]) << i;
        if (column > row) {
          ASSERT_EQ(mask[i], lowest[type]);
        }
        if (column == row) {
          ASSERT_EQ(mask[i], 0) << "every row keeps its diagonal";
        }
        holes += column < row && mask[i] != 0;
      }
      const double below = 6 * side * (side - 1) / 2;
      EXPECT_NEAR(holes / below, variant == 1 ? 0.25 : 0, 0.02);
    }
  }
}

TEST(GenerateTest, BinaryMasks) {
  const std::vector<double> mask = MakeValues("x_mask", v1::FLOAT32, {10000});
  EXPECT_EQ(std::set<double>(mask.begin(), mask.end()), (std::set<double>{0, 1}));
  EXPECT_NEAR(Mean(mask), 0.5, 0.02);
}

TEST(GenerateTest, CosinesSinesSpreadsDecays) {
  const std::vector<double> cosines = MakeValues("cos", v1::FLOAT32, {100000}),
                            sines = MakeValues("sin", v1::FLOAT32, {100000});
  EXPECT_NEAR(Mean(cosines), std::exp(-0.5), 0.01) << "the characteristic function of the normal";
  EXPECT_NEAR(Mean(sines), 0, 0.01);
  // The same words make both under one index, so they lie on the circle.
  for (size_t i = 0; i < cosines.size(); ++i) {
    ASSERT_NEAR(cosines[i] * cosines[i] + sines[i] * sines[i], 1, 1e-6) << i;
  }
  const std::vector<double> spreads = MakeValues("rstd", v1::FLOAT32, {100000});
  EXPECT_GE(*std::min_element(spreads.begin(), spreads.end()), 0.1f);
  EXPECT_NEAR(Mean(spreads), std::sqrt(2 / 3.14159265) + 0.1, 0.01);
  for (const char* name : {"A_log", "A", "A_cumsum", "g"}) {
    const std::vector<double> decays = MakeValues(name, v1::BFLOAT16, {100000});
    EXPECT_LE(*std::max_element(decays.begin(), decays.end()), 0);
    EXPECT_NEAR(Mean(decays), -std::sqrt(2 / 3.14159265), 0.01);
  }
}

TEST(GenerateTest, SoftmaxRows) {
  for (v1::DType dtype : {v1::FLOAT64, v1::FLOAT32, v1::BFLOAT16}) {
    for (int64_t length : {1, 7, 1500}) {
      const std::vector<double> values = MakeValues("attn_weights", dtype, {3, 5, length});
      for (int row = 0; row < 15; ++row) {
        double sum = 0, largest = 0;
        for (int64_t i = 0; i < length; ++i) {
          ASSERT_GE(values[row * length + i], 0);
          sum += values[row * length + i];
          largest = std::max(largest, values[row * length + i]);
        }
        EXPECT_NEAR(sum, 1, dtype == v1::BFLOAT16 ? 0.01 : 1e-5);
        if (length > 1) {
          EXPECT_GT(largest, 1.1 / static_cast<double>(length)) << "not uniform";
        }
      }
    }
  }
}

TEST(GenerateTest, WeightMatricesAreScaled) {
  EXPECT_NEAR(Variance(MakeValues("q_proj_weight", v1::FLOAT32, {1000, 64})), 1.0 / 64, 0.0005);
  EXPECT_NEAR(Variance(MakeValues("up_proj", v1::BFLOAT16, {4, 1000, 25})), 1.0 / 25, 0.001);
  EXPECT_NEAR(Variance(MakeValues("weight", v1::FLOAT32, {50000})), 1, 0.03) << "a list is no matrix";
}

TEST(GenerateTest, VariantsInputsAndSeedsAreIndependent) {
  const Shape shape = {50, 2000};
  const std::vector<double> base = MakeValues("x", v1::FLOAT32, shape);
  auto independent = [&](int variant, int index, Seeds seeds) {
    const std::vector<double> other = Values(Make("x", v1::FLOAT32, shape, variant, index, seeds), v1::FLOAT32);
    EXPECT_NEAR(Correlation(base, other), 0, 0.015);
  };
  independent(1, 0, kSeeds);
  independent(2, 0, kSeeds);
  independent(0, 1, kSeeds);
  independent(0, 40, kSeeds);
  independent(0, 0, {kSeeds.payload ^ 1, kSeeds.structure});
  independent(0, 0, {kSeeds.payload ^ (1ull << 63), kSeeds.structure});
  EXPECT_EQ(Make("x", v1::FLOAT32, shape), Make("x", v1::FLOAT32, shape, 0, 0, {kSeeds.payload, 77}))
      << "payload does not depend on the structure seed";
}

TEST(GenerateTest, StructureComesFromItsOwnSeed) {
  const std::string base = Make("kv_indices", v1::INT32, {1000});
  EXPECT_EQ(base, Make("kv_indices", v1::INT32, {1000}, 0, 0, {99, kSeeds.structure}));
  EXPECT_EQ(base, Make("kv_indices", v1::INT32, {1000}, 1)) << "the same shape of work in every variant";
  EXPECT_NE(base, Make("kv_indices", v1::INT32, {1000}, 0, 0, {kSeeds.payload, 99}));
  EXPECT_NE(base, Make("kv_indices", v1::INT32, {1000}, 0, 1));
  EXPECT_NE(Make("tokens", v1::INT32, {1000}), Make("tokens", v1::INT32, {1000}, 0, 0, {99, kSeeds.structure}));
}

// An element depends on its position alone: a longer tensor begins with the shorter one's.
TEST(GenerateTest, PrefixesAgreeAcrossBlocks) {
  for (v1::DType dtype : {v1::FLOAT64, v1::FLOAT32, v1::BFLOAT16, v1::FLOAT4_E2M1FN_X2, v1::INT64, v1::INT8}) {
    const std::string whole = Make("x", dtype, {5000});
    for (int64_t n : {0, 1, 3, 1023, 1024, 1025, 2047, 4096, 4999}) {
      const std::string part = Make("x", dtype, {n});
      EXPECT_EQ(part, whole.substr(0, part.size())) << v1::DType_Name(dtype) << " " << n;
    }
  }
}

TEST(GenerateTest, SizesAndZeroDimensions) {
  EXPECT_EQ(Make("x", v1::FLOAT32, {}).size(), 4u);
  EXPECT_EQ(Make("x", v1::BFLOAT16, {3, 5}).size(), 30u);
  EXPECT_EQ(Make("x", v1::FLOAT4_E2M1FN_X2, {3, 5}).size(), 15u) << "shapes count bytes";
  for (const char* name : {"x", "attn_weights", "attention_mask", "q_proj_weight"}) {
    EXPECT_EQ(Make(name, v1::FLOAT32, {4, 0}).size(), 0u);
    EXPECT_EQ(Make(name, v1::FLOAT32, {0, 0}).size(), 0u);
  }
  EXPECT_EQ(Make("x", v1::BOOL, {0}).size(), 0u);
}

TEST(GenerateTest, BadRequestsAreRefused) {
  auto code = [](const v1::InputSource& source, const v1::Tensor& tensor, const Shape& shape, int index, int variant) {
    auto result = GenerateInput(tensor, source, shape, index, kSeeds, variant);
    if (result.ok()) return absl::StatusCode::kOk;
    EXPECT_NE(base::MessageOf(result.status()).find("\"x\""), std::string::npos) << result.status();
    return result.status().code();
  };
  const v1::Tensor good = TensorOf("x", v1::FLOAT32);
  v1::InputSource custom, safetensors, none;
  custom.set_custom(true);
  safetensors.mutable_safetensors()->set_path("a.safetensors");
  EXPECT_EQ(code(custom, good, {4}, 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(safetensors, good, {4}, 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(none, good, {4}, 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Random(), TensorOf("x", v1::DTYPE_UNSPECIFIED), {4}, 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Random(), good, {-1}, 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Random(), good, {0, -1}, 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Random(), good, {INT64_MAX, 4}, 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Random(), good, {int64_t{1} << 32, int64_t{1} << 32}, 0, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Random(), good, {4}, -1, 0), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(code(Random(), good, {4}, 0, -1), absl::StatusCode::kInvalidArgument);
  std::vector<uint8_t> small(15);
  EXPECT_EQ(GenerateInputInto(good, Random(), {4}, 0, kSeeds, 0, small).code(), absl::StatusCode::kInvalidArgument);
}

TEST(GenerateTest, IntoCallersMemoryGivesTheSame) {
  const std::string made = Make("x", v1::BFLOAT16, {7, 333});
  std::vector<uint8_t> memory(made.size());
  ASSERT_TRUE(GenerateInputInto(TensorOf("x", v1::BFLOAT16), Random(), {7, 333}, 0, kSeeds, 0, memory).ok());
  EXPECT_EQ(std::memcmp(memory.data(), made.data(), made.size()), 0);
}

// Any change of a generator shows here; then the protocol's version changes too, since stored results would no longer
// be reproducible.
TEST(GenerateTest, GoldenDigests) {
  const struct {
    const char* name;
    v1::DType dtype;
    int variant;
    const char* digest;
  } rows[] = {
      {"x", v1::FLOAT64, 0, "00af7c65ae7868b3"},
      {"x", v1::FLOAT32, 0, "b77f8555b112473a"},
      {"x", v1::FLOAT32, 2, "72fa73957c9f7a1c"},
      {"x", v1::FLOAT16, 0, "97de226dd626dbe9"},
      {"x", v1::BFLOAT16, 0, "e0a034a2683a6666"},
      {"x", v1::FLOAT8_E4M3FN, 0, "0d7dd0e8fae7ec9c"},
      {"x", v1::FLOAT8_E5M2, 0, "bb188b5f08484acb"},
      {"x", v1::FLOAT4_E2M1FN_X2, 0, "a2cb909085aa83fc"},
      {"x", v1::INT64, 0, "89e2f6d43b62b9cb"},
      {"x", v1::INT32, 0, "2e06e2e0594be0ff"},
      {"x", v1::INT16, 0, "683fa5bc4751d8a5"},
      {"x", v1::INT8, 0, "3b7d5fe1eba69295"},
      {"x", v1::UINT8, 0, "3b7d5fe1eba69295"},
      {"x", v1::BOOL, 0, "81e342a8c0fa0a69"},
      {"kv_indptr", v1::INT32, 0, "b4e17fb0497a6241"},
      {"norm_weight", v1::BFLOAT16, 1, "ff506b3072d1675b"},
      {"norm_bias", v1::FLOAT32, 1, "79cb8269a7f39b9d"},
      {"causal_mask", v1::FLOAT32, 0, "46a7c4ef42c5f41d"},
      {"causal_mask", v1::FLOAT32, 1, "d1687d74ac15a0f1"},
      {"mask", v1::FLOAT32, 0, "0779b8058cdf4743"},
      {"cos", v1::FLOAT32, 0, "f4c5970ac6ce6bf0"},
      {"sin", v1::FLOAT64, 0, "049a8fa2c7889092"},
      {"rstd", v1::FLOAT32, 0, "8345f615dc91c31b"},
      {"A_log", v1::FLOAT32, 0, "6d5e423620c92959"},
      {"attn_weights", v1::FLOAT32, 0, "449104d90c2d1ecb"},
      {"o_proj_weight", v1::BFLOAT16, 0, "4f4e89a4e0cdb263"},
  };
  for (const auto& row : rows) {
    const std::string digest = base::Hex(base::Sha256(Make(row.name, row.dtype, {61, 61}, row.variant))).substr(0, 16);
    EXPECT_EQ(digest, row.digest) << row.name << " " << v1::DType_Name(row.dtype) << " variant " << row.variant;
  }
}

TEST(FillRandomTest, EveryByteOccursEvenly) {
  std::string data(1 << 20, '\0');
  FillRandom(1, 2, data.data(), static_cast<int64_t>(data.size()));
  std::vector<int> counts(256);
  for (unsigned char byte : data) ++counts[byte];
  for (int count : counts) EXPECT_NEAR(count, 4096, 400);
}

TEST(FillRandomTest, DependsOnSeedStreamAndPosition) {
  std::string base(1000, '\0'), other(1000, '\0');
  FillRandom(1, 2, base.data(), 1000);
  FillRandom(1, 2, other.data(), 1000);
  EXPECT_EQ(base, other);
  FillRandom(1, 3, other.data(), 1000);
  EXPECT_NE(base, other);
  FillRandom(2, 2, other.data(), 1000);
  EXPECT_NE(base, other);
  EXPECT_EQ(base::Hex(base::Sha256(base)).substr(0, 16), "db60a79520369e15");
  // Not the words that make inputs from the same seed.
  EXPECT_NE(base.substr(0, 64), Make("x", v1::UINT8, {64}, 0, 2, {1, 1}));
}

TEST(FillRandomTest, WritesExactlyWhatItIsGiven) {
  for (int64_t bytes : {0, 1, 2, 3, 4, 5, 4095, 4096, 4097, 9001}) {
    std::string data(bytes + 8, '\x5a'), whole(9001, '\0');
    FillRandom(3, 4, data.data(), bytes);
    FillRandom(3, 4, whole.data(), 9001);
    EXPECT_EQ(data.substr(0, bytes), whole.substr(0, bytes));
    EXPECT_EQ(data.substr(bytes), std::string(8, '\x5a')) << bytes;
  }
  char untouched = 'x';
  FillRandom(3, 4, &untouched, -5);
  EXPECT_EQ(untouched, 'x');
}

}  // namespace
}  // namespace solstice::generate
