// What decides a comparison, apart from its words and from who counted. Internal to runtime/verify and runtime/bulk.
// Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/verify/compare_values.h"
#include "solstice/v1/definition.pb.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::verify {

// What the tolerance means for one tensor.
struct Rules {
  ElementRule element;
  double required_ratio = 1;
  bool exact = false;
  bool capped = false;
  double cap = 0;

  double slice_ratio() const;  // what every slice must reach
};
Rules RulesFor(v1::DType dtype, const v1::Tolerance& tolerance);

// How much is compared, in which slices.
struct Layout {
  bool possible = false;  // false: no dtype, or an impossible shape; nothing else is set
  int64_t bytes = 0, values = 0;
  int64_t slice = 1;    // values of one slice
  bool sliced = false;  // false: one slice, whose ratio says nothing more
};
Layout LayoutOf(const v1::Tensor& tensor, const std::vector<int64_t>& shape);

// Axes in values: the last is doubled for packed types.
std::vector<int64_t> DimensionsOf(const v1::Tensor& tensor, const std::vector<int64_t>& shape);
std::vector<int64_t> IndexOf(const std::vector<int64_t>& dimensions, int64_t position);

double MatchedRatio(const Tally& tally);

// The first rule of verify.h that the tally breaks.
enum class Fault { kNone, kBadExpected, kBadActual, kAllZero, kRatio, kCap, kSlice };
Fault FindFault(const Rules& rules, bool sliced, const Tally& tally);

void FillNumbers(const v1::Tensor& tensor, const std::vector<int64_t>& shape, const Tally& tally,
                 v1::OutputComparison* numbers);

}  // namespace solstice::verify
