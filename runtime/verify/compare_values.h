// The element loop of CompareTensor. Internal to runtime/verify and runtime/bulk.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/verify/element.h"
#include "solstice/v1/definition.pb.h"

namespace solstice::verify {

inline constexpr int kMostFailures = 8;

struct Failure {
  int64_t position = 0;  // flat, in values
  double actual = 0, expected = 0;
};

// What the loop found. Positions are -1 where there is none.
struct Tally {
  int64_t values = 0;
  int64_t matched = 0;
  double max_absolute_error = 0, max_relative_error = 0;
  int64_t largest_error_at = -1;
  std::vector<Failure> first_failures;  // at most kMostFailures
  int64_t bad_expected = 0;             // not finite and not an allowed -inf
  Failure first_bad_expected{-1};
  int64_t bad_actual = 0;  // not finite against finite, or the other way round
  Failure first_bad_actual{-1};
  bool actual_all_zero = true;
  Failure first_nonzero_expected{-1};
  double worst_slice_ratio = 1;
  int64_t worst_slice = -1;
};

// Compares `values` values (nibbles count) in slices of `slice` values each.
Tally CompareValues(v1::DType dtype, const ElementRule& rule, const uint8_t* actual, const uint8_t* expected,
                    int64_t values, int64_t slice);

// Value number `position` of both.
Failure ReadFailure(v1::DType dtype, const uint8_t* actual, const uint8_t* expected, int64_t position);

}  // namespace solstice::verify
