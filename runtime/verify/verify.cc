#include "runtime/verify/verify.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "runtime/base/strings.h"
#include "runtime/core/dtype.h"
#include "runtime/verify/judge.h"

namespace solstice::verify {
namespace {

// Everything a sentence about this tensor needs.
struct Subject {
  const v1::Tensor& tensor;
  std::vector<int64_t> dimensions;  // in values: the last is doubled for packed types

  std::string At(int64_t position) const {
    std::string text = "[";
    for (int64_t i : IndexOf(dimensions, position)) text += base::StrCat(text.size() == 1 ? "" : ", ", i);
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

std::string MismatchReason(const Subject& subject, const Rules& rules, const Tally& tally) {
  const std::string rule = rules.exact ? std::string(" (compared exactly)")
                                       : base::StrCat(" by more than atol ", Short(rules.element.atol), " + rtol ",
                                                      Short(rules.element.rtol), " * |expected|");
  return base::StrCat(tally.values - tally.matched, " of ", tally.values, " elements of ", subject.Output(), " differ",
                      rule, " (first ", subject.Pair(tally.first_failures.front()), "; matched ",
                      RatioText(MatchedRatio(tally)), ", needed ", Short(rules.required_ratio), ")");
}

// The words for a fault.
void Explain(Fault fault, const Subject& subject, const Rules& rules, const Tally& tally, TensorComparison* result) {
  result->verdict = fault == Fault::kBadExpected ? v1::INVALID_REFERENCE : v1::INCORRECT_NUMERICAL;
  auto fail = [result](std::string reason, std::string mend) {
    result->reason = std::move(reason);
    result->mend = std::move(mend);
  };
  switch (fault) {
    case Fault::kNone:
      result->verdict = v1::PASSED;
      return;
    case Fault::kBadExpected:
      return fail(
          base::StrCat("the reference's ", subject.Output(), " has ", tally.bad_expected, " of ", tally.values,
                       " elements that are not finite (first at ", subject.At(tally.first_bad_expected.position), ": ",
                       subject.Text(tally.first_bad_expected.expected), ")"),
          "this is the definition's fault, not the submission's: mend its reference or inputs, or set "
          "allow_negative_inf if -infinity is meant");
    case Fault::kBadActual:
      return fail(base::StrCat(tally.bad_actual, " of ", tally.values, " elements of ", subject.Output(),
                               " are NaN or infinite where they may not be, or finite where -infinity is expected "
                               "(first ",
                               subject.Pair(tally.first_bad_actual), ")"),
                  "look for a division by zero, an overflow, or elements that are never written");
    case Fault::kAllZero:
      return fail(
          base::StrCat("the output is all zeros: ", subject.Output(), " has none of its expected values (first ",
                       subject.Pair(tally.first_nonzero_expected), ")"),
          "check that the kernel computes the output rather than clearing it");
    case Fault::kRatio:
      return fail(MismatchReason(subject, rules, tally), "");
    case Fault::kCap:
      return fail(base::StrCat(subject.Output(), " is off by ", Short(tally.max_absolute_error), " at ",
                               subject.At(tally.largest_error_at), ", more than max_error_cap ", Short(rules.cap)),
                  "");
    case Fault::kSlice:
      return fail(
          base::StrCat("in slice ", tally.worst_slice, " of ", subject.dimensions[0], " along the leading axis of ",
                       subject.Output(), " only ", RatioText(tally.worst_slice_ratio),
                       " of the elements match, each slice needs ", Short(rules.slice_ratio())),
          "look for rows that are skipped or handled by another path, the last ones above all");
  }
}

}  // namespace

TensorComparison CompareTensor(const v1::Tensor& tensor, const std::vector<int64_t>& shape,
                               const v1::Tolerance& tolerance, std::span<const uint8_t> actual,
                               std::span<const uint8_t> expected) {
  TensorComparison result;
  result.numbers.set_name(tensor.name());
  const Layout layout = LayoutOf(tensor, shape);
  const Subject subject{tensor, layout.possible ? DimensionsOf(tensor, shape) : shape};
  if (!layout.possible) {
    result.verdict = v1::INVALID_REFERENCE;
    result.reason = base::StrCat(subject.Output(), " has no dtype or an impossible shape");
    return result;
  }
  if (expected.size() != static_cast<uint64_t>(layout.bytes)) {
    result.verdict = v1::INVALID_REFERENCE;
    result.reason = SizeProblem(subject, "the reference's buffer", expected.size(), layout.bytes);
    return result;
  }
  if (actual.size() != static_cast<uint64_t>(layout.bytes)) {
    result.verdict = v1::INCORRECT_SHAPE;
    result.reason = SizeProblem(subject, "the buffer", actual.size(), layout.bytes);
    return result;
  }
  const Rules rules = RulesFor(tensor.dtype(), tolerance);
  const Tally tally = CompareValues(tensor.dtype(), rules.element, actual.data(), expected.data(), layout.values,
                                    layout.sliced ? layout.slice : std::max<int64_t>(layout.values, 1));
  FillNumbers(tensor, shape, tally, &result.numbers);
  Explain(FindFault(rules, layout.sliced, tally), subject, rules, tally, &result);
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
