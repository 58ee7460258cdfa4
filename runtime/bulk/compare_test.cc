// The kernels' comparisons are verify::CompareTensor's.
#include <cmath>
#include <limits>
#include <random>

#include "runtime/base/strings.h"
#include "runtime/bulk/bulk_test_support.h"
#include "runtime/core/dtype.h"
#include "runtime/core/float_formats.h"

namespace solstice::bulk {
namespace {

using Shape = std::vector<int64_t>;

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

template <typename T>
std::string Stored(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

v1::Tolerance Within(double atol, double rtol, double ratio = 0.99) {
  v1::Tolerance tolerance;
  tolerance.set_max_atol(atol);
  tolerance.set_max_rtol(rtol);
  tolerance.set_required_matched_ratio(ratio);
  return tolerance;
}

class CompareTest : public BulkTest {
 protected:
  // The comparison, which is the host's whatever it says.
  verify::TensorComparison Expect(const v1::Tensor& tensor, const Shape& shape, const v1::Tolerance& tolerance,
                                  const std::string& actual, const std::string& expected, int64_t shift = 0) {
    const verify::TensorComparison wanted =
        verify::CompareTensor(tensor, shape, tolerance, Bytes(actual), Bytes(expected));
    const device::Address actual_at = Put(actual, shift), expected_at = Put(expected, shift);
    verify::TensorComparison found;
    found.reason = "not written";
    EXPECT_OK(kernels_->Compare(tensor, shape, tolerance, actual_at, expected_at, &found));
    EXPECT_OK(kernels_->Finish());
    const std::string what = base::StrCat(core::DTypeName(tensor.dtype()), ", ", expected.size(), " bytes: ");
    EXPECT_EQ(found.verdict, wanted.verdict) << what << wanted.reason << found.reason;
    EXPECT_EQ(found.reason, wanted.reason) << what;
    EXPECT_EQ(found.mend, wanted.mend) << what;
    EXPECT_EQ(found.numbers.SerializeAsString(), wanted.numbers.SerializeAsString())
        << what << found.numbers.ShortDebugString() << "\n"
        << wanted.numbers.ShortDebugString();
    buffers_.clear();
    return wanted;
  }
};

constexpr v1::DType kAllTypes[] = {
    v1::FLOAT64, v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16, v1::FLOAT8_E4M3FN, v1::FLOAT8_E5M2, v1::FLOAT4_E2M1FN_X2,
    v1::INT64,   v1::INT32,   v1::INT16,   v1::INT8,     v1::UINT8,         v1::BOOL};

// The kernels judge what passes, whole or with misses: nothing is copied to the host but results.
TEST_F(CompareTest, EveryTypeWithMissesHereAndThere) {
  std::mt19937_64 random(1);
  int passed_with_misses = 0, failed = 0, passed_whole = 0, failed_slice = 0;
  for (v1::DType dtype : kAllTypes) {
    for (int round = 0; round < 24; ++round) {
      const Shape shape = round % 3 == 0   ? Shape{int64_t(1 + random() % 900)}
                          : round % 3 == 1 ? Shape{int64_t(1 + random() % 40), int64_t(1 + random() % 40)}
                                           : Shape{3, 5, int64_t(1 + random() % 200)};
      const v1::Tensor tensor = MakeTensor("y", dtype);
      auto expected = generate::GenerateInput(tensor, RandomSource(), shape, 0, {random(), 0}, 0);
      auto other = generate::GenerateInput(tensor, RandomSource(), shape, 0, {random(), 0}, 0);
      ASSERT_TRUE(expected.ok() && other.ok());
      std::string actual = *expected;
      const size_t element = static_cast<size_t>(core::ElementBytes(dtype));
      const uint64_t rarity = round % 4 == 0 ? ~0ull : round % 4 == 1 ? 3 : 80;
      for (size_t at = 0; at < actual.size(); at += element) {
        if (random() % rarity == 0) actual.replace(at, element, *other, at, element);
      }
      const double ratios[] = {0.99, 0.5, 0.9, 1};
      v1::Tolerance tolerance = Within(round % 5 * 0.05, round % 2 * 0.02, ratios[random() % 4]);
      if (round % 7 == 3) {
        tolerance.set_has_max_error_cap(true);
        tolerance.set_max_error_cap(1.5);
      }
      const auto result = Expect(tensor, shape, tolerance, actual, *expected, round % 6 == 5 ? 3 : 0);
      if (result.verdict != v1::PASSED) {
        ++failed;
        failed_slice += result.reason.rfind("in slice", 0) == 0;
      } else {
        ++(result.numbers.first_failures_size() > 0 ? passed_with_misses : passed_whole);
      }
    }
  }
  EXPECT_GT(passed_with_misses, 20);
  EXPECT_GT(passed_whole, 20);
  EXPECT_GT(failed, 20);
  EXPECT_GT(failed_slice, 0);
}

TEST_F(CompareTest, NanAndInfinity) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const v1::Tensor tensor = MakeTensor("y", v1::FLOAT32);
  v1::Tolerance tolerance = Within(1e-2, 1e-2);
  const std::vector<float> plain = {1, 2, 3, 4, 5};
  for (bool allowed : {false, true}) {
    tolerance.set_allow_negative_inf(allowed);
    for (float special : {nan, inf, -inf}) {
      std::vector<float> touched = plain;
      touched[3] = special;
      EXPECT_EQ(Expect(tensor, {5}, tolerance, Stored(touched), Stored(plain)).verdict, v1::INCORRECT_NUMERICAL);
      const bool matches = allowed && special == -inf;
      EXPECT_EQ(Expect(tensor, {5}, tolerance, Stored(touched), Stored(touched)).verdict,
                matches ? v1::PASSED : v1::INVALID_REFERENCE);
      Expect(tensor, {5}, tolerance, Stored(plain), Stored(touched));
    }
  }
  // Finite values whose difference is not.
  const double huge = std::numeric_limits<double>::max();
  Expect(MakeTensor("y", v1::FLOAT64), {2}, Within(1e-2, 1e-2, 0.5), Stored<double>({huge, 1}),
         Stored<double>({-huge, 1}));
  const uint16_t half_inf = 0xfc00;
  Expect(MakeTensor("y", v1::FLOAT16), {2}, tolerance, Stored<uint16_t>({half_inf, 1}),
         Stored<uint16_t>({half_inf, 1}));
  Expect(MakeTensor("y", v1::FLOAT8_E4M3FN), {2}, tolerance, "\x7f\x01", "\x7e\x01");
  Expect(MakeTensor("y", v1::FLOAT8_E5M2), {2}, tolerance, "\xfc\x01", "\xfc\x01");
}

TEST_F(CompareTest, ZerosEverywhere) {
  const v1::Tensor tensor = MakeTensor("y", v1::BFLOAT16);
  const std::string zeros(200, '\0'), ones(200, '\x01'), negative = [] {
    std::string text;
    for (int i = 0; i < 100; ++i) text += std::string("\0\x80", 2);
    return text;
  }();
  EXPECT_EQ(Expect(tensor, {100}, Within(1, 0), zeros, zeros).verdict, v1::PASSED);
  EXPECT_EQ(Expect(tensor, {100}, Within(1, 0), zeros, negative).verdict, v1::PASSED);
  EXPECT_EQ(Expect(tensor, {100}, Within(1, 0), negative, ones).verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(Expect(tensor, {100}, Within(1, 0), ones, zeros).verdict, v1::PASSED);
}

TEST_F(CompareTest, EverySlice) {
  const v1::Tensor tensor = MakeTensor("y", v1::FLOAT32);
  for (int64_t length : {2, 10, 600}) {  // a warp's and a block's slices
    const int64_t slices = 12000 / length;
    std::vector<float> expected(static_cast<size_t>(12000), 1.0f);
    auto wrong = [&](int64_t slice, int64_t count) {
      std::vector<float> actual = expected;
      for (int64_t i = 0; i < count; ++i) actual[static_cast<size_t>(slice * length + i * 7 % length)] = 3;
      return Stored(actual);
    };
    const int64_t most = length / 10;
    for (int64_t slice : {int64_t{0}, slices / 2, slices - 1}) {
      EXPECT_EQ(Expect(tensor, {slices, length}, Within(0.1, 0), wrong(slice, most + 1), Stored(expected)).verdict,
                v1::INCORRECT_NUMERICAL);
      EXPECT_EQ(Expect(tensor, {slices, length}, Within(0.1, 0), wrong(slice, most), Stored(expected)).verdict,
                v1::PASSED);
    }
    // Many wrong together, but no slice too many.
    if (most == 0) continue;
    std::vector<float> spread = expected;
    for (int64_t slice = 0; slice < slices / 12; ++slice) spread[static_cast<size_t>(slice * length)] = 3;
    EXPECT_EQ(Expect(tensor, {slices, length}, Within(0.1, 0), Stored(spread), Stored(expected)).verdict, v1::PASSED);
  }
}

TEST_F(CompareTest, WholeNumbersBeyondDoubles) {
  const int64_t large = int64_t{1} << 62, lowest = std::numeric_limits<int64_t>::min();
  const v1::Tensor tensor = MakeTensor("y", v1::INT64);
  EXPECT_EQ(Expect(tensor, {2}, Within(0, 0), Stored<int64_t>({large, 1}), Stored<int64_t>({large + 1, 1})).verdict,
            v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(Expect(tensor, {2}, Within(1, 0), Stored<int64_t>({large, 1}), Stored<int64_t>({large + 1, 1})).verdict,
            v1::PASSED);
  Expect(tensor, {2}, Within(1e30, 0), Stored<int64_t>({lowest, ~lowest}), Stored<int64_t>({~lowest, lowest}));
  Expect(MakeTensor("y", v1::BOOL), {4}, Within(5, 5), std::string("\x00\x01\x02\xff", 4),
         std::string("\x00\xff\x01\x02", 4));
}

TEST_F(CompareTest, EmptyAndImpossibleTensors) {
  Expect(MakeTensor("y", v1::FLOAT32), {0, 5}, Within(0, 0), "", "");
  verify::TensorComparison found;
  EXPECT_OK(kernels_->Compare(MakeTensor("y", v1::FLOAT32), {-1}, Within(0, 0), 0, 0, &found));
  EXPECT_EQ(found.verdict, v1::INVALID_REFERENCE);
  EXPECT_OK(host_->Compare(MakeTensor("y", v1::DTYPE_UNSPECIFIED), {1}, Within(0, 0), 0, 0, &found));
  EXPECT_OK(host_->Finish());
  EXPECT_EQ(found.verdict, v1::INVALID_REFERENCE);
}

// Relative errors are divided only where they may be the largest: it must not matter in which order they come.
TEST_F(CompareTest, LargestErrorInAnyOrder) {
  const std::string expected = Stored<float>({1, 1, 1, 1});
  for (int largest = 0; largest < 4; ++largest) {
    for (float by : {1.0625f, 1.25f, 4.0f}) {
      std::vector<float> actual(4, 1 + 0x1p-10f);
      actual[static_cast<size_t>(largest)] = 1 + by * 0x1p-10f;
      const auto result = Expect(MakeTensor("y", v1::FLOAT32), {4}, Within(0.1, 0), Stored(actual), expected);
      EXPECT_EQ(result.numbers.max_relative_error(), by * 0x1p-10);
    }
  }
}

TEST_F(CompareTest, LargestErrorsOfManyBlocks) {
  std::mt19937_64 random(2);
  std::vector<float> expected(300001), actual(expected.size());
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = static_cast<float>(std::exp(static_cast<double>(random() % 2000) / 100 - 15));
    actual[i] = expected[i] * (1 + static_cast<float>(random() % 1000) * 1e-6f);
  }
  const auto result =
      Expect(MakeTensor("y", v1::FLOAT32), {300001}, Within(1e-3, 1e-3), Stored(actual), Stored(expected));
  EXPECT_EQ(result.verdict, v1::PASSED);
}

TEST_F(CompareTest, ManyAtOnceAndTheHostAlike) {
  std::vector<verify::TensorComparison> found(200);
  const v1::Tensor tensor = MakeTensor("y", v1::FLOAT32);
  const std::string expected = Stored<float>({1, 2, 3, 4}), wrong = Stored<float>({1, 2, 9, 4});
  const device::Address expected_at = Put(expected), right_at = Put(expected), wrong_at = Put(wrong);
  for (Bulk* bulk : {kernels_.get(), host_.get()}) {
    for (size_t i = 0; i < found.size(); ++i) {
      found[i] = {};
      EXPECT_OK(bulk->Compare(tensor, {4}, Within(0.1, 0.1), i == 77 ? wrong_at : right_at, expected_at, &found[i]));
    }
    EXPECT_OK(bulk->Finish());
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_EQ(found[i].verdict, i == 77 ? v1::INCORRECT_NUMERICAL : v1::PASSED);
      EXPECT_EQ(found[i].numbers.elements(), 4);
    }
    EXPECT_EQ(found[77].numbers.max_absolute_error(), 6);
  }
}

}  // namespace
}  // namespace solstice::bulk
