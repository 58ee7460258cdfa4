#include "runtime/verify/judge.h"

#include <algorithm>

#include "runtime/core/dtype.h"

namespace solstice::verify {
namespace {

constexpr double kDefaultRatio = 0.99;
constexpr double kSliceRatio = 0.9;

}  // namespace

double Rules::slice_ratio() const { return std::min(kSliceRatio, required_ratio); }

Rules RulesFor(v1::DType dtype, const v1::Tolerance& tolerance) {
  Rules rules;
  rules.required_ratio = tolerance.required_matched_ratio();
  rules.capped = tolerance.has_max_error_cap() && tolerance.max_error_cap() > 0;
  rules.cap = tolerance.max_error_cap();
  rules.element = {tolerance.max_atol(), tolerance.max_rtol(), tolerance.allow_negative_inf()};
  rules.exact = dtype == v1::BOOL || (!core::IsFloating(dtype) && tolerance.max_atol() < 1);
  if (rules.exact) {
    rules.element.atol = rules.element.rtol = 0;
    if (rules.required_ratio >= kDefaultRatio) rules.required_ratio = 1;
  }
  return rules;
}

Layout LayoutOf(const v1::Tensor& tensor, const std::vector<int64_t>& shape) {
  Layout layout;
  int64_t values = core::ValuesPerElement(tensor.dtype()), bytes = core::ElementBytes(tensor.dtype());
  bool possible = bytes > 0;
  for (int64_t dimension : shape) {
    possible = possible && dimension >= 0 && !__builtin_mul_overflow(values, dimension, &values) &&
               !__builtin_mul_overflow(bytes, dimension, &bytes);
  }
  if (!possible) return layout;
  layout.possible = true;
  layout.bytes = bytes;
  layout.values = values;
  layout.slice = values == 0 || shape.empty() ? std::max<int64_t>(values, 1) : values / shape[0];
  layout.sliced = shape.size() >= 2 && layout.slice >= 2;
  return layout;
}

std::vector<int64_t> IndexOf(const std::vector<int64_t>& dimensions, int64_t position) {
  std::vector<int64_t> index(dimensions.size());
  for (size_t axis = dimensions.size(); axis-- > 0;) {
    index[axis] = position % dimensions[axis];
    position /= dimensions[axis];
  }
  return index;
}

std::vector<int64_t> DimensionsOf(const v1::Tensor& tensor, const std::vector<int64_t>& shape) {
  const int64_t packed = core::ValuesPerElement(tensor.dtype());
  if (packed == 1) return shape;
  std::vector<int64_t> dimensions = shape.empty() ? std::vector<int64_t>{1} : shape;
  dimensions.back() *= packed;
  return dimensions;
}

double MatchedRatio(const Tally& tally) {
  return tally.values == 0 ? 1 : static_cast<double>(tally.matched) / static_cast<double>(tally.values);
}

Fault FindFault(const Rules& rules, bool sliced, const Tally& tally) {
  if (tally.bad_expected > 0) return Fault::kBadExpected;
  if (tally.bad_actual > 0) return Fault::kBadActual;
  if (tally.actual_all_zero && tally.first_nonzero_expected.position >= 0) return Fault::kAllZero;
  if (!(MatchedRatio(tally) >= rules.required_ratio)) return Fault::kRatio;
  if (rules.capped && tally.max_absolute_error > rules.cap) return Fault::kCap;
  if (sliced && !(tally.worst_slice_ratio >= rules.slice_ratio())) return Fault::kSlice;
  return Fault::kNone;
}

void FillNumbers(const v1::Tensor& tensor, const std::vector<int64_t>& shape, const Tally& tally,
                 v1::OutputComparison* numbers) {
  const std::vector<int64_t> dimensions = DimensionsOf(tensor, shape);
  numbers->set_elements(tally.values);
  numbers->set_max_absolute_error(tally.max_absolute_error);
  numbers->set_max_relative_error(tally.max_relative_error);
  numbers->set_matched_ratio(MatchedRatio(tally));
  for (const Failure& failure : tally.first_failures) {
    v1::FailedElement* element = numbers->add_first_failures();
    for (int64_t i : IndexOf(dimensions, failure.position)) element->add_index(i);
    element->set_actual(failure.actual);
    element->set_expected(failure.expected);
  }
}

}  // namespace solstice::verify
