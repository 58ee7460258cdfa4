#include "runtime/verify/verify.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/base/strings.h"
#include "runtime/core/dtype.h"
#include "runtime/verify/compare_values.h"

namespace solstice::verify {
namespace {

constexpr double kDefaultRatio = 0.99;
constexpr double kSliceRatio = 0.9;

// What the tolerance means for one tensor.
struct Rules {
  ElementRule element;
  double required_ratio = 1;
  bool exact = false;
  bool capped = false;
  double cap = 0;
};

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

// Everything a sentence about this tensor needs.
struct Subject {
  const v1::Tensor& tensor;
  std::vector<int64_t> dimensions;  // in values: the last is doubled for packed types

  std::vector<int64_t> Index(int64_t position) const {
    std::vector<int64_t> index(dimensions.size());
    for (size_t axis = dimensions.size(); axis-- > 0;) {
      index[axis] = position % dimensions[axis];
      position /= dimensions[axis];
    }
    return index;
  }

  std::string At(int64_t position) const {
    std::string text = "[";
    for (int64_t i : Index(position)) text += base::StrCat(text.size() == 1 ? "" : ", ", i);
    return text + "]";
  }

  // The shortest text that the dtype reads back the same.
  std::string Text(double value) const {
    if (std::isnan(value)) return "NaN";
    if (std::isinf(value)) return value < 0 ? "-infinity" : "infinity";
    if (tensor.dtype() == v1::FLOAT64) return base::StrCat(value);
    if (core::IsFloating(tensor.dtype())) return base::StrCat(static_cast<float>(value));
    if (tensor.dtype() == v1::BOOL) return base::StrCat(value != 0);
    return std::fabs(value) < 0x1p63 ? base::StrCat(static_cast<int64_t>(value)) : base::StrCat(value);
  }

  std::string Pair(const Failure& failure) const {
    return base::StrCat("at ", At(failure.position), ": got ", Text(failure.actual), ", expected ",
                        Text(failure.expected));
  }

  std::string Output() const { return base::StrCat("output ", base::Quote(tensor.name())); }
};

// Four digits, rounded down: 0.98999 is not shown as 0.99.
std::string RatioText(double ratio) { return base::StrCat(std::floor(ratio * 1e4) / 1e4); }

// At most six significant digits.
std::string Short(double value) {
  char buffer[32];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, 6);
  return std::string(buffer, result.ptr);
}

std::string SizeProblem(const Subject& subject, const char* whose, uint64_t got, int64_t wanted) {
  return base::StrCat(subject.Output(), ": ", whose, " holds ", got, " bytes, its shape and dtype (",
                      core::DTypeName(subject.tensor.dtype()), ") take ", wanted);
}

void FillNumbers(const Subject& subject, const Tally& tally, v1::OutputComparison* numbers) {
  numbers->set_elements(tally.values);
  numbers->set_max_absolute_error(tally.max_absolute_error);
  numbers->set_max_relative_error(tally.max_relative_error);
  numbers->set_matched_ratio(
      tally.values == 0 ? 1 : static_cast<double>(tally.matched) / static_cast<double>(tally.values));
  for (const Failure& failure : tally.first_failures) {
    v1::FailedElement* element = numbers->add_first_failures();
    for (int64_t i : subject.Index(failure.position)) element->add_index(i);
    element->set_actual(failure.actual);
    element->set_expected(failure.expected);
  }
}

std::string MismatchReason(const Subject& subject, const Rules& rules, const Tally& tally, double ratio) {
  const std::string rule = rules.exact ? std::string(" (compared exactly)")
                                       : base::StrCat(" by more than atol ", Short(rules.element.atol), " + rtol ",
                                                      Short(rules.element.rtol), " * |expected|");
  return base::StrCat(tally.values - tally.matched, " of ", tally.values, " elements of ", subject.Output(), " differ",
                      rule, " (first ", subject.Pair(tally.first_failures.front()), "; matched ", RatioText(ratio),
                      ", needed ", Short(rules.required_ratio), ")");
}

// The verdict, by the rules in verify.h in their order.
void Judge(const Subject& subject, const Rules& rules, const Tally& tally, bool sliced, TensorComparison* result) {
  auto fail = [&](v1::Verdict verdict, std::string reason, std::string mend) {
    result->verdict = verdict;
    result->reason = std::move(reason);
    result->mend = std::move(mend);
  };
  if (tally.bad_expected > 0) {
    return fail(v1::INVALID_REFERENCE,
                base::StrCat("the reference's ", subject.Output(), " has ", tally.bad_expected, " of ", tally.values,
                             " elements that are not finite (first at ", subject.At(tally.first_bad_expected.position),
                             ": ", subject.Text(tally.first_bad_expected.expected), ")"),
                "this is the definition's fault, not the submission's: mend its reference or inputs, or set "
                "allow_negative_inf if -infinity is meant");
  }
  if (tally.bad_actual > 0) {
    return fail(
        v1::INCORRECT_NUMERICAL,
        base::StrCat(tally.bad_actual, " of ", tally.values, " elements of ", subject.Output(),
                     " are NaN or infinite where they may not be, or finite where -infinity is expected (first ",
                     subject.Pair(tally.first_bad_actual), ")"),
        "look for a division by zero, an overflow, or elements that are never written");
  }
  if (tally.actual_all_zero && tally.first_nonzero_expected.position >= 0) {
    return fail(v1::INCORRECT_NUMERICAL,
                base::StrCat("the output is all zeros: ", subject.Output(), " has none of its expected values (first ",
                             subject.Pair(tally.first_nonzero_expected), ")"),
                "check that the kernel computes the output rather than clearing it");
  }
  const double ratio = result->numbers.matched_ratio();
  if (!(ratio >= rules.required_ratio)) {
    return fail(v1::INCORRECT_NUMERICAL, MismatchReason(subject, rules, tally, ratio), "");
  }
  if (rules.capped && tally.max_absolute_error > rules.cap) {
    return fail(v1::INCORRECT_NUMERICAL,
                base::StrCat(subject.Output(), " is off by ", Short(tally.max_absolute_error), " at ",
                             subject.At(tally.largest_error_at), ", more than max_error_cap ", Short(rules.cap)),
                "");
  }
  const double slice_ratio = std::min(kSliceRatio, rules.required_ratio);
  if (sliced && !(tally.worst_slice_ratio >= slice_ratio)) {
    return fail(
        v1::INCORRECT_NUMERICAL,
        base::StrCat("in slice ", tally.worst_slice, " of ", subject.dimensions[0], " along the leading axis of ",
                     subject.Output(), " only ", RatioText(tally.worst_slice_ratio),
                     " of the elements match, each slice needs ", Short(slice_ratio)),
        "look for rows that are skipped or handled by another path, the last ones above all");
  }
}

}  // namespace

TensorComparison CompareTensor(const v1::Tensor& tensor, const std::vector<int64_t>& shape,
                               const v1::Tolerance& tolerance, std::span<const uint8_t> actual,
                               std::span<const uint8_t> expected) {
  TensorComparison result;
  result.numbers.set_name(tensor.name());
  Subject subject{tensor, shape};
  const int64_t packed = core::ValuesPerElement(tensor.dtype());
  int64_t values = packed, bytes = core::ElementBytes(tensor.dtype());
  bool sizeable = bytes > 0;
  for (int64_t dimension : shape) {
    sizeable = sizeable && dimension >= 0 && !__builtin_mul_overflow(values, dimension, &values) &&
               !__builtin_mul_overflow(bytes, dimension, &bytes);
  }
  if (!sizeable) {
    result.verdict = v1::INVALID_REFERENCE;
    result.reason = base::StrCat(subject.Output(), " has no dtype or an impossible shape");
    return result;
  }
  if (expected.size() != static_cast<uint64_t>(bytes)) {
    result.verdict = v1::INVALID_REFERENCE;
    result.reason = SizeProblem(subject, "the reference's buffer", expected.size(), bytes);
    return result;
  }
  if (actual.size() != static_cast<uint64_t>(bytes)) {
    result.verdict = v1::INCORRECT_SHAPE;
    result.reason = SizeProblem(subject, "the buffer", actual.size(), bytes);
    return result;
  }

  if (packed > 1 && shape.empty()) subject.dimensions = {1};
  if (packed > 1) subject.dimensions.back() *= packed;
  const Rules rules = RulesFor(tensor.dtype(), tolerance);
  const int64_t slice = values == 0 || shape.empty() ? std::max<int64_t>(values, 1) : values / shape[0];
  const bool sliced = shape.size() >= 2 && slice >= 2;
  const Tally tally = CompareValues(tensor.dtype(), rules.element, actual.data(), expected.data(), values,
                                    sliced ? slice : std::max<int64_t>(values, 1));
  FillNumbers(subject, tally, &result.numbers);
  Judge(subject, rules, tally, sliced, &result);
  return result;
}

void MergeComparison(const v1::OutputComparison& from, v1::OutputComparison* into) {
  if (into->name().empty() && into->elements() == 0 && into->first_failures_size() == 0) {
    *into = from;
    return;
  }
  into->set_max_absolute_error(std::max(into->max_absolute_error(), from.max_absolute_error()));
  into->set_max_relative_error(std::max(into->max_relative_error(), from.max_relative_error()));
  into->set_matched_ratio(std::min(into->matched_ratio(), from.matched_ratio()));
  into->set_elements(std::max(into->elements(), from.elements()));
  if (into->first_failures_size() == 0) *into->mutable_first_failures() = from.first_failures();
}

}  // namespace solstice::verify
