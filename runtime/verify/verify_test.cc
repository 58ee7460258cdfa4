#include "runtime/verify/verify.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "runtime/core/float_formats.h"

namespace solstice::verify {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Shape = std::vector<int64_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

template <typename T>
std::vector<uint8_t> Raw(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<uint8_t> Encode(v1::DType dtype, const std::vector<double>& values) {
  std::vector<uint16_t> halves;
  std::vector<uint8_t> bytes;
  switch (dtype) {
    case v1::FLOAT64:
      return Raw(values);
    case v1::FLOAT32:
      return Raw(std::vector<float>(values.begin(), values.end()));
    case v1::FLOAT16:
      for (double value : values) halves.push_back(core::DoubleToHalf(value));
      return Raw(halves);
    case v1::BFLOAT16:
      for (double value : values) halves.push_back(core::DoubleToBfloat16(value));
      return Raw(halves);
    case v1::FLOAT8_E4M3FN:
      for (double value : values) bytes.push_back(core::FloatToE4m3(static_cast<float>(value)));
      return bytes;
    case v1::FLOAT8_E5M2:
      for (double value : values) {
        bytes.push_back(std::isinf(value) ? (value < 0 ? 0xfc : 0x7c) : core::FloatToE5m2(static_cast<float>(value)));
      }
      return bytes;
    case v1::INT64:
      return Raw(std::vector<int64_t>(values.begin(), values.end()));
    case v1::INT32:
      return Raw(std::vector<int32_t>(values.begin(), values.end()));
    case v1::INT16:
      return Raw(std::vector<int16_t>(values.begin(), values.end()));
    case v1::INT8:
      return Raw(std::vector<int8_t>(values.begin(), values.end()));
    default:
      return Raw(std::vector<uint8_t>(values.begin(), values.end()));
  }
}

v1::Tensor TensorOf(v1::DType dtype) {
  v1::Tensor tensor;
  tensor.set_name("y");
  tensor.set_dtype(dtype);
  return tensor;
}

v1::Tolerance Default() {
  v1::Tolerance tolerance;
  tolerance.set_max_atol(1e-2);
  tolerance.set_max_rtol(1e-2);
  tolerance.set_required_matched_ratio(0.99);
  return tolerance;
}

TensorComparison Compare(v1::DType dtype, const std::vector<double>& actual, const std::vector<double>& expected,
                         const v1::Tolerance& tolerance = Default(), Shape shape = {}) {
  if (shape.empty()) shape = {static_cast<int64_t>(expected.size())};
  return CompareTensor(TensorOf(dtype), shape, tolerance, Encode(dtype, actual), Encode(dtype, expected));
}

const v1::DType kAllTypes[] = {v1::FLOAT64, v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16, v1::FLOAT8_E4M3FN, v1::FLOAT8_E5M2,
                               v1::INT64,   v1::INT32,   v1::INT16,   v1::INT8,     v1::UINT8};

TEST(CompareTensorTest, EqualTensorsOfEveryTypePass) {
  for (v1::DType dtype : kAllTypes) {
    const TensorComparison result = Compare(dtype, {0, 1, 2, 3}, {0, 1, 2, 3});
    EXPECT_EQ(result.verdict, v1::PASSED) << v1::DType_Name(dtype);
    EXPECT_EQ(result.reason, "");
    EXPECT_EQ(result.numbers.name(), "y");
    EXPECT_EQ(result.numbers.elements(), 4);
    EXPECT_EQ(result.numbers.matched_ratio(), 1);
    EXPECT_EQ(result.numbers.max_absolute_error(), 0);
    EXPECT_EQ(result.numbers.max_relative_error(), 0);
  }
}

TEST(CompareTensorTest, AWrongElementOfEveryTypeFailsWithBothValues) {
  for (v1::DType dtype : kAllTypes) {
    SCOPED_TRACE(v1::DType_Name(dtype));
    const TensorComparison result = Compare(dtype, {0, 1, 4, 3}, {0, 1, 2, 3});
    EXPECT_EQ(result.verdict, v1::INCORRECT_NUMERICAL);
    EXPECT_EQ(result.numbers.matched_ratio(), 0.75);
    EXPECT_EQ(result.numbers.max_absolute_error(), 2);
    EXPECT_EQ(result.numbers.max_relative_error(), 1);
    ASSERT_EQ(result.numbers.first_failures_size(), 1);
    EXPECT_THAT(result.numbers.first_failures(0).index(), ElementsAre(2));
    EXPECT_EQ(result.numbers.first_failures(0).actual(), 4);
    EXPECT_EQ(result.numbers.first_failures(0).expected(), 2);
    EXPECT_THAT(result.reason, HasSubstr("1 of 4 elements"));
    EXPECT_THAT(result.reason, HasSubstr("at [2]: got 4, expected 2"));
  }
}

TEST(CompareTensorTest, ReasonIsASentence) {
  std::vector<double> expected(400, 0.5), actual(400, 0.5);
  for (int i : {77, 200, 201, 202, 399}) actual[i] = 1.25;
  const TensorComparison result = Compare(v1::FLOAT32, actual, expected, Default(), {20, 20});
  EXPECT_EQ(
      result.reason,
      "5 of 400 elements of output \"y\" differ by more than atol 0.01 + rtol 0.01 * |expected| (first at [3, 17]: "
      "got 1.25, expected 0.5; matched 0.9875, needed 0.99)");
}

// The truth table of non-finite pairs, both ways round, with and without leave for -inf.
TEST(CompareTensorTest, NonFinitePairs) {
  struct Row {
    double actual, expected;
    v1::Verdict plain, allowed;
  };
  const Row rows[] = {
      {kNan, 1, v1::INCORRECT_NUMERICAL, v1::INCORRECT_NUMERICAL},
      {kInf, 1, v1::INCORRECT_NUMERICAL, v1::INCORRECT_NUMERICAL},
      {-kInf, 1, v1::INCORRECT_NUMERICAL, v1::INCORRECT_NUMERICAL},
      {1, kNan, v1::INVALID_REFERENCE, v1::INVALID_REFERENCE},
      {1, kInf, v1::INVALID_REFERENCE, v1::INVALID_REFERENCE},
      {1, -kInf, v1::INVALID_REFERENCE, v1::INCORRECT_NUMERICAL},
      {kNan, kNan, v1::INVALID_REFERENCE, v1::INVALID_REFERENCE},
      {kInf, kInf, v1::INVALID_REFERENCE, v1::INVALID_REFERENCE},
      {-kInf, -kInf, v1::INVALID_REFERENCE, v1::PASSED},
      {kInf, -kInf, v1::INVALID_REFERENCE, v1::INCORRECT_NUMERICAL},
      {kNan, -kInf, v1::INVALID_REFERENCE, v1::INCORRECT_NUMERICAL},
      {-kInf, kInf, v1::INVALID_REFERENCE, v1::INVALID_REFERENCE},
      {-kInf, kNan, v1::INVALID_REFERENCE, v1::INVALID_REFERENCE},
      {kNan, kInf, v1::INVALID_REFERENCE, v1::INVALID_REFERENCE},
      {kInf, kNan, v1::INVALID_REFERENCE, v1::INVALID_REFERENCE},
  };
  v1::Tolerance generous = Default();  // no ratio and no tolerance excuses them
  generous.set_max_atol(1e300);
  generous.set_max_rtol(1e300);
  generous.set_required_matched_ratio(0.1);
  for (v1::DType dtype : {v1::FLOAT64, v1::FLOAT32, v1::FLOAT16, v1::BFLOAT16, v1::FLOAT8_E5M2}) {
    for (const Row& row : rows) {
      SCOPED_TRACE(testing::Message() << v1::DType_Name(dtype) << " " << row.actual << " " << row.expected);
      for (bool allow : {false, true}) {
        generous.set_allow_negative_inf(allow);
        std::vector<double> actual(1000, 1.0), expected(1000, 1.0);
        actual[500] = row.actual;
        expected[500] = row.expected;
        const TensorComparison result = Compare(dtype, actual, expected, generous);
        EXPECT_EQ(result.verdict, allow ? row.allowed : row.plain);
        const bool passed = result.verdict == v1::PASSED;
        EXPECT_EQ(result.numbers.max_absolute_error(), passed ? 0 : kInf);
        EXPECT_EQ(result.numbers.max_relative_error(), passed ? 0 : kInf);
        EXPECT_EQ(result.reason.empty(), passed);
        if (!passed) {
          EXPECT_THAT(result.reason, HasSubstr("at [500]"));
        }
      }
    }
  }
}

TEST(CompareTensorTest, InvalidReferenceOutranksAWrongOutput) {
  EXPECT_EQ(Compare(v1::FLOAT32, {kNan, 5, 1}, {1, 2, kNan}).verdict, v1::INVALID_REFERENCE);
}

TEST(CompareTensorTest, E4m3NanIsFound) {
  for (uint8_t nan : {0x7f, 0xff}) {
    const std::vector<uint8_t> good = {0x38, 0x40}, bad = {0x38, nan};
    EXPECT_EQ(CompareTensor(TensorOf(v1::FLOAT8_E4M3FN), {2}, Default(), bad, good).verdict, v1::INCORRECT_NUMERICAL);
    EXPECT_EQ(CompareTensor(TensorOf(v1::FLOAT8_E4M3FN), {2}, Default(), good, bad).verdict, v1::INVALID_REFERENCE);
    EXPECT_EQ(CompareTensor(TensorOf(v1::FLOAT8_E4M3FN), {2}, Default(), bad, bad).verdict, v1::INVALID_REFERENCE);
  }
}

TEST(CompareTensorTest, ToleranceEdges) {
  v1::Tolerance tolerance = Default();
  tolerance.set_max_atol(0.25);
  tolerance.set_max_rtol(0.5);
  // 0.25 + 0.5 * |-4| = 2.25, by the expected value and not by the actual one.
  EXPECT_EQ(Compare(v1::FLOAT64, {-6.25}, {-4}, tolerance).verdict, v1::PASSED);
  EXPECT_EQ(Compare(v1::FLOAT64, {std::nextafter(-6.25, -7.0)}, {-4}, tolerance).verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(Compare(v1::FLOAT64, {-1.75}, {-4}, tolerance).verdict, v1::PASSED);
  EXPECT_EQ(Compare(v1::FLOAT64, {-1.75 + 1e-12}, {-4}, tolerance).verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(Compare(v1::FLOAT64, {0.25}, {0}, tolerance).verdict, v1::PASSED);
  EXPECT_EQ(Compare(v1::FLOAT64, {0.3}, {0}, tolerance).verdict, v1::INCORRECT_NUMERICAL);
  // Computed in double: float32 differences near the edge are not rounded away.
  tolerance.set_max_atol(0);
  tolerance.set_max_rtol(0);
  EXPECT_EQ(Compare(v1::FLOAT32, {std::nextafterf(1.0f, 2.0f)}, {1}, tolerance).verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(Compare(v1::FLOAT32, {-0.0, 1}, {0.0, 1}, tolerance).verdict, v1::PASSED);
  // Differences too large for the type are still numbers.
  const double huge = std::numeric_limits<double>::max();
  EXPECT_EQ(Compare(v1::FLOAT64, {-huge}, {huge}, Default()).verdict, v1::INCORRECT_NUMERICAL);
}

TEST(CompareTensorTest, RatioEdge) {
  std::vector<double> expected(100, 1.0), actual(100, 1.0);
  actual[7] = 2;
  const TensorComparison enough = Compare(v1::FLOAT32, actual, expected);
  EXPECT_EQ(enough.verdict, v1::PASSED) << enough.reason;
  EXPECT_EQ(enough.numbers.matched_ratio(), 0.99);
  EXPECT_EQ(enough.numbers.first_failures_size(), 1) << "shown although it passed";
  actual[8] = 2;
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected).verdict, v1::INCORRECT_NUMERICAL);
}

TEST(CompareTensorTest, ErrorCap) {
  std::vector<double> expected(1000, 1.0), actual(1000, 1.0);
  actual[123] = 3.5;
  v1::Tolerance tolerance = Default();
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected, tolerance).verdict, v1::PASSED);
  tolerance.set_max_error_cap(2.5);
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected, tolerance).verdict, v1::PASSED) << "not said to be there";
  tolerance.set_has_max_error_cap(true);
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected, tolerance).verdict, v1::PASSED) << "exactly the cap";
  tolerance.set_max_error_cap(2.25);
  const TensorComparison result = Compare(v1::FLOAT32, actual, expected, tolerance);
  EXPECT_EQ(result.verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(result.reason, "output \"y\" is off by 2.5 at [123], more than max_error_cap 2.25");
  tolerance.set_max_error_cap(0);
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected, tolerance).verdict, v1::PASSED) << "0 is no cap";
}

TEST(CompareTensorTest, EverySliceNeedsNineTenths) {
  // 1 % of the elements, all in one row.
  std::vector<double> expected(2000, 1.0), actual(2000, 1.0);
  for (int i = 0; i < 10; ++i) actual[3 * 20 + i] = 2;
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected).verdict, v1::PASSED) << "a list has no slices";
  const TensorComparison result = Compare(v1::FLOAT32, actual, expected, Default(), {100, 20});
  EXPECT_EQ(result.verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_THAT(result.reason, HasSubstr("in slice 3 of 100"));
  EXPECT_THAT(result.reason, HasSubstr("only 0.5 of the elements match"));
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected, Default(), {10, 10, 20}).verdict, v1::PASSED) << "slices of 200";
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected, Default(), {1, 2000}).verdict, v1::PASSED);
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected, Default(), {2000, 1}).verdict, v1::PASSED) << "a list in two axes";

  // Exactly 0.9 is enough.
  std::vector<double> edge(2000, 1.0);
  edge[0] = edge[1] = 2;
  EXPECT_EQ(Compare(v1::FLOAT32, edge, expected, Default(), {100, 20}).verdict, v1::PASSED);
  edge[2] = 2;
  EXPECT_EQ(Compare(v1::FLOAT32, edge, expected, Default(), {100, 20}).verdict, v1::INCORRECT_NUMERICAL);

  // A workload that asks for less asks for less of a slice too.
  v1::Tolerance loose = Default();
  loose.set_required_matched_ratio(0.5);
  EXPECT_EQ(Compare(v1::FLOAT32, actual, expected, loose, {100, 20}).verdict, v1::PASSED);
}

TEST(CompareTensorTest, AllZerosFailHoweverGenerousTheTolerance) {
  v1::Tolerance tolerance = Default();
  tolerance.set_max_atol(1e6);
  const TensorComparison result = Compare(v1::FLOAT32, {0, -0.0, 0}, {0, 0.001, 0.002}, tolerance);
  EXPECT_EQ(result.verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_THAT(result.reason, HasSubstr("the output is all zeros"));
  EXPECT_THAT(result.reason, HasSubstr("at [1]: got -0, expected 0.001"));
  EXPECT_FALSE(result.mend.empty());
  EXPECT_EQ(Compare(v1::FLOAT32, {0, 0, 0}, {0, -0.0, 0}).verdict, v1::PASSED) << "zeros are expected";
  EXPECT_EQ(Compare(v1::FLOAT32, {0, 0.001, 0}, {0, 0, 0}, tolerance).verdict, v1::PASSED);
  EXPECT_THAT(Compare(v1::INT32, {0, 0}, {0, 3}).reason, HasSubstr("the output is all zeros"));
}

TEST(CompareTensorTest, IntegersAreExactUnlessToldOtherwise) {
  std::vector<double> expected(1000, 100), actual(1000, 100);
  actual[3] = 101;
  for (v1::DType dtype : {v1::INT64, v1::INT32, v1::INT16, v1::INT8, v1::UINT8}) {
    SCOPED_TRACE(v1::DType_Name(dtype));
    const TensorComparison exact = Compare(dtype, actual, expected);
    EXPECT_EQ(exact.verdict, v1::INCORRECT_NUMERICAL) << "the default ratio is about floating point";
    EXPECT_THAT(exact.reason, HasSubstr("(compared exactly)"));
    v1::Tolerance tolerance = Default();
    tolerance.set_max_atol(1);
    tolerance.set_max_rtol(0);
    EXPECT_EQ(Compare(dtype, actual, expected, tolerance).verdict, v1::PASSED);
    std::vector<double> two_off = actual;
    for (int i = 0; i < 20; ++i) two_off[i] = 102;
    EXPECT_EQ(Compare(dtype, two_off, expected, tolerance).verdict, v1::INCORRECT_NUMERICAL);
    tolerance = Default();
    tolerance.set_required_matched_ratio(0.95);
    EXPECT_EQ(Compare(dtype, actual, expected, tolerance).verdict, v1::PASSED) << "the workload asked for less";
  }
}

TEST(CompareTensorTest, LargeIntegersKeepEveryBit) {
  const std::vector<int64_t> expected = {(int64_t{1} << 62) + 1, INT64_MIN}, wrong = {int64_t{1} << 62, INT64_MIN};
  EXPECT_EQ(CompareTensor(TensorOf(v1::INT64), {2}, Default(), Raw(expected), Raw(expected)).verdict, v1::PASSED);
  const auto result = CompareTensor(TensorOf(v1::INT64), {2}, Default(), Raw(wrong), Raw(expected));
  EXPECT_EQ(result.verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(result.numbers.max_absolute_error(), 1);
  const std::vector<int64_t> low = {INT64_MIN}, high = {INT64_MAX};
  EXPECT_EQ(CompareTensor(TensorOf(v1::INT64), {1}, Default(), Raw(low), Raw(high)).numbers.max_absolute_error(),
            0x1p64);
}

TEST(CompareTensorTest, BoolsCompareTruthValues) {
  const std::vector<uint8_t> expected = {1, 0, 1, 0}, odd = {0xff, 0, 2, 0}, wrong = {1, 1, 1, 0};
  EXPECT_EQ(CompareTensor(TensorOf(v1::BOOL), {4}, Default(), odd, expected).verdict, v1::PASSED);
  v1::Tolerance generous = Default();
  generous.set_max_atol(100);
  const auto result = CompareTensor(TensorOf(v1::BOOL), {4}, generous, wrong, expected);
  EXPECT_EQ(result.verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_THAT(result.reason, HasSubstr("at [1]: got true, expected false"));
}

TEST(CompareTensorTest, Fp4ComparesBothNibbles) {
  // Values low nibble first: 0x21 is 0.5, 1.
  const std::vector<uint8_t> expected = {0x21, 0x43, 0x65, 0x77}, low = {0x21, 0x47, 0x65, 0x77},
                             high = {0x21, 0x73, 0x65, 0x77}, swapped = {0x12, 0x34, 0x56, 0x77};
  const v1::Tensor tensor = TensorOf(v1::FLOAT4_E2M1FN_X2);
  const auto equal = CompareTensor(tensor, {2, 2}, Default(), expected, expected);
  EXPECT_EQ(equal.verdict, v1::PASSED);
  EXPECT_EQ(equal.numbers.elements(), 8);
  const auto first = CompareTensor(tensor, {2, 2}, Default(), low, expected);
  EXPECT_EQ(first.verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(first.numbers.matched_ratio(), 0.875);
  EXPECT_THAT(first.numbers.first_failures(0).index(), ElementsAre(0, 2));
  EXPECT_EQ(first.numbers.first_failures(0).actual(), 6);
  EXPECT_EQ(first.numbers.first_failures(0).expected(), 1.5);
  EXPECT_THAT(CompareTensor(tensor, {2, 2}, Default(), high, expected).numbers.first_failures(0).index(),
              ElementsAre(0, 3));
  EXPECT_EQ(CompareTensor(tensor, {2, 2}, Default(), swapped, expected).verdict, v1::INCORRECT_NUMERICAL);
  const std::vector<uint8_t> one = {0x21}, other = {0x31};
  EXPECT_THAT(CompareTensor(tensor, {}, Default(), other, one).numbers.first_failures(0).index(), ElementsAre(1));
}

TEST(CompareTensorTest, AtMostEightFailuresInOrder) {
  std::vector<double> expected(64, 1.0), actual(64, 2.0);
  const auto result = Compare(v1::FLOAT16, actual, expected, Default(), {4, 4, 4});
  ASSERT_EQ(result.numbers.first_failures_size(), 8);
  EXPECT_THAT(result.numbers.first_failures(0).index(), ElementsAre(0, 0, 0));
  EXPECT_THAT(result.numbers.first_failures(7).index(), ElementsAre(0, 1, 3));
}

TEST(CompareTensorTest, ZeroDimensionalAndEmpty) {
  const auto scalar = CompareTensor(TensorOf(v1::FLOAT32), {}, Default(), Raw<float>({2.0f}), Raw<float>({1.0f}));
  EXPECT_EQ(scalar.verdict, v1::INCORRECT_NUMERICAL);
  EXPECT_EQ(scalar.numbers.first_failures(0).index_size(), 0);
  EXPECT_THAT(scalar.reason, HasSubstr("at []"));
  for (const Shape& shape : {Shape{0}, Shape{0, 4}, Shape{4, 0}, Shape{2, 0, 3}}) {
    for (v1::DType dtype : {v1::FLOAT32, v1::BOOL, v1::FLOAT4_E2M1FN_X2}) {
      const auto empty = CompareTensor(TensorOf(dtype), shape, Default(), {}, {});
      EXPECT_EQ(empty.verdict, v1::PASSED) << empty.reason;
      EXPECT_EQ(empty.numbers.matched_ratio(), 1);
      EXPECT_EQ(empty.numbers.elements(), 0);
    }
  }
}

TEST(CompareTensorTest, BuffersOfAnotherSizeAreNotRead) {
  const auto four = Raw<float>({1, 2, 3, 4}), three = Raw<float>({1, 2, 3});
  const auto shape = CompareTensor(TensorOf(v1::FLOAT32), {4}, Default(), three, four);
  EXPECT_EQ(shape.verdict, v1::INCORRECT_SHAPE);
  EXPECT_THAT(shape.reason, HasSubstr("holds 12 bytes"));
  EXPECT_EQ(CompareTensor(TensorOf(v1::FLOAT32), {4}, Default(), four, three).verdict, v1::INVALID_REFERENCE);
  EXPECT_EQ(CompareTensor(TensorOf(v1::FLOAT32), {-4}, Default(), four, four).verdict, v1::INVALID_REFERENCE);
  EXPECT_EQ(CompareTensor(TensorOf(v1::DTYPE_UNSPECIFIED), {4}, Default(), four, four).verdict, v1::INVALID_REFERENCE);
  EXPECT_EQ(CompareTensor(TensorOf(v1::FLOAT32), {INT64_MAX, 8}, Default(), {}, {}).verdict, v1::INVALID_REFERENCE);
}

TEST(CompareTensorTest, UnalignedBuffersAreRead) {
  std::vector<uint8_t> raw = Raw<double>({1, 2});
  raw.insert(raw.begin(), 0);
  const std::span<const uint8_t> shifted(raw.data() + 1, 16);
  EXPECT_EQ(CompareTensor(TensorOf(v1::FLOAT64), {2}, Default(), shifted, Raw<double>({1, 2})).verdict, v1::PASSED);
}

TEST(CompareTensorTest, RelativeErrorNearZeroIsBounded) {
  const auto result = Compare(v1::FLOAT64, {1e-3, 1}, {0, 1});
  EXPECT_EQ(result.verdict, v1::PASSED);
  EXPECT_DOUBLE_EQ(result.numbers.max_relative_error(), 1e5);
}

TEST(MergeComparisonTest, KeepsTheWorst) {
  const auto good = Compare(v1::FLOAT32, {1, 2}, {1, 2}).numbers;
  const auto bad = Compare(v1::FLOAT32, {1, 4}, {1, 2}).numbers;
  const auto worse = Compare(v1::FLOAT32, {kNan, 4}, {1, 2}).numbers;
  v1::OutputComparison merged;
  MergeComparison(good, &merged);
  EXPECT_EQ(merged.name(), "y");
  EXPECT_EQ(merged.matched_ratio(), 1);
  MergeComparison(bad, &merged);
  EXPECT_EQ(merged.matched_ratio(), 0.5);
  EXPECT_EQ(merged.max_absolute_error(), 2);
  ASSERT_EQ(merged.first_failures_size(), 1);
  MergeComparison(worse, &merged);
  EXPECT_EQ(merged.matched_ratio(), 0);
  EXPECT_EQ(merged.max_absolute_error(), kInf);
  EXPECT_EQ(merged.elements(), 2);
  ASSERT_EQ(merged.first_failures_size(), 1) << "the first ones stay";
  MergeComparison(good, &merged);
  EXPECT_EQ(merged.matched_ratio(), 0);
}

}  // namespace
}  // namespace solstice::verify
