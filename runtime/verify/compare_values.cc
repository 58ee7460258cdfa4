#include "runtime/verify/compare_values.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "runtime/core/float_formats.h"

namespace solstice::verify {
namespace {

template <typename T>
T Load(const uint8_t* data, int64_t position) {
  T value;
  std::memcpy(&value, data + position * static_cast<int64_t>(sizeof value), sizeof value);
  return value;
}

// Readers: value number `position` of a tensor. Floating types read as double, integers as int64.
struct ReadF64 {
  static double At(const uint8_t* data, int64_t position) { return Load<double>(data, position); }
};
struct ReadF32 {
  static double At(const uint8_t* data, int64_t position) { return Load<float>(data, position); }
};
struct ReadF16 {
  static double At(const uint8_t* data, int64_t position) { return core::HalfToFloat(Load<uint16_t>(data, position)); }
};
struct ReadBf16 {
  static double At(const uint8_t* data, int64_t position) {
    return core::Bfloat16ToFloat(Load<uint16_t>(data, position));
  }
};
struct ReadE4m3 {
  static double At(const uint8_t* data, int64_t position) { return core::E4m3ToFloat(data[position]); }
};
struct ReadE5m2 {
  static double At(const uint8_t* data, int64_t position) { return core::E5m2ToFloat(data[position]); }
};
struct ReadE2m1 {
  static double At(const uint8_t* data, int64_t position) {
    return core::E2m1ToFloat(static_cast<uint8_t>(data[position / 2] >> (position % 2 * 4)));
  }
};
template <typename Integer>
struct ReadInteger {
  static int64_t At(const uint8_t* data, int64_t position) { return Load<Integer>(data, position); }
};
struct ReadTruth {
  static int64_t At(const uint8_t* data, int64_t position) { return data[position] != 0; }
};

class Loop {
 public:
  Loop(const ElementRule& rule, Tally* tally) : rule_(rule), tally_(*tally) {}

  // True if the element passes.
  template <typename Value>
  bool Element(int64_t position, Value actual, Value expected) {
    if (actual != Value(0)) tally_.actual_all_zero = false;
    if (expected != Value(0) && tally_.first_nonzero_expected.position < 0) {
      tally_.first_nonzero_expected = Make(position, actual, expected);
    }
    if (!Finite(actual) || !Finite(expected)) return NotFinite(position, actual, expected);
    const double error = Difference(actual, expected);
    const double size = std::fabs(static_cast<double>(expected));
    if (error > tally_.max_absolute_error) {
      tally_.max_absolute_error = error;
      tally_.largest_error_at = position;
    }
    if (error > 0) {
      tally_.max_relative_error = std::max(tally_.max_relative_error, error / Denominator(size));
    }
    if (Matches(rule_, error, size)) return true;
    Note(position, actual, expected);
    return false;
  }

 private:
  template <typename Value>
  static Failure Make(int64_t position, Value actual, Value expected) {
    return {position, static_cast<double>(actual), static_cast<double>(expected)};
  }

  template <typename Value>
  void Note(int64_t position, Value actual, Value expected) {
    if (tally_.first_failures.size() < kMostFailures) {
      tally_.first_failures.push_back(Make(position, actual, expected));
    }
  }

  template <typename Value>
  bool NotFinite(int64_t position, Value actual, Value expected) {
    const double a = static_cast<double>(actual), e = static_cast<double>(expected);
    const bool valid = IsValidExpected(rule_, e);
    if (valid && a == e) return true;  // both -inf
    if (!valid && tally_.bad_expected++ == 0) tally_.first_bad_expected = {position, a, e};
    if (valid && tally_.bad_actual++ == 0) tally_.first_bad_actual = {position, a, e};
    if (tally_.max_absolute_error < kInfinity) tally_.largest_error_at = position;
    tally_.max_absolute_error = kInfinity;
    tally_.max_relative_error = kInfinity;
    Note(position, actual, expected);
    return false;
  }

  const ElementRule& rule_;
  Tally& tally_;
};

template <typename Reader>
Tally Run(const ElementRule& rule, const uint8_t* actual, const uint8_t* expected, int64_t values, int64_t slice) {
  Tally tally;
  tally.values = values;
  Loop loop(rule, &tally);
  for (int64_t first = 0; first < values; first += slice) {
    const int64_t end = std::min(first + slice, values);
    int64_t matched = 0;
    for (int64_t i = first; i < end; ++i) matched += loop.Element(i, Reader::At(actual, i), Reader::At(expected, i));
    tally.matched += matched;
    const double ratio = static_cast<double>(matched) / static_cast<double>(end - first);
    if (ratio < tally.worst_slice_ratio) {
      tally.worst_slice_ratio = ratio;
      tally.worst_slice = first / slice;
    }
  }
  return tally;
}

// Calls `function` with the reader of `dtype`.
template <typename Function>
auto WithReader(v1::DType dtype, Function function) {
  switch (dtype) {
    case v1::FLOAT64:
      return function(ReadF64());
    case v1::FLOAT32:
      return function(ReadF32());
    case v1::FLOAT16:
      return function(ReadF16());
    case v1::BFLOAT16:
      return function(ReadBf16());
    case v1::FLOAT8_E4M3FN:
      return function(ReadE4m3());
    case v1::FLOAT8_E5M2:
      return function(ReadE5m2());
    case v1::FLOAT4_E2M1FN_X2:
      return function(ReadE2m1());
    case v1::INT64:
      return function(ReadInteger<int64_t>());
    case v1::INT32:
      return function(ReadInteger<int32_t>());
    case v1::INT16:
      return function(ReadInteger<int16_t>());
    case v1::INT8:
      return function(ReadInteger<int8_t>());
    case v1::UINT8:
      return function(ReadInteger<uint8_t>());
    default:  // BOOL
      return function(ReadTruth());
  }
}

}  // namespace

Tally CompareValues(v1::DType dtype, const ElementRule& rule, const uint8_t* actual, const uint8_t* expected,
                    int64_t values, int64_t slice) {
  return WithReader(dtype, [&](auto reader) { return Run<decltype(reader)>(rule, actual, expected, values, slice); });
}

Failure ReadFailure(v1::DType dtype, const uint8_t* actual, const uint8_t* expected, int64_t position) {
  return WithReader(dtype, [&](auto reader) {
    return Failure{position, static_cast<double>(reader.At(actual, position)),
                   static_cast<double>(reader.At(expected, position))};
  });
}

}  // namespace solstice::verify
