// Compares outputs with the reference's (protocol solstice-v1, DESIGN section 6). Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/verify/verdict.h"
#include "solstice/v1/definition.pb.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::verify {

struct TensorComparison {
  v1::Verdict verdict = v1::PASSED;  // PASSED, INCORRECT_NUMERICAL, INCORRECT_SHAPE or INVALID_REFERENCE
  std::string reason, mend;
  v1::OutputComparison numbers;
};

// `actual` and `expected` hold prod(shape) elements of `tensor.dtype()`, dense, little endian; they are not kept. In
// this order, the first that applies:
// - a tensor without dtype or of impossible shape, or `expected` of another size: INVALID_REFERENCE; `actual` of
// another
//   size: INCORRECT_SHAPE;
// - expected NaN or infinite, save -inf where `allow_negative_inf`: INVALID_REFERENCE;
// - actual NaN or infinite, or finite where -inf is expected: INCORRECT_NUMERICAL, however few. Both -inf match where
//   allowed;
// - actual all zeros and expected not: INCORRECT_NUMERICAL;
// - fewer than `required_matched_ratio` of the elements pass |actual - expected| <= max_atol + max_rtol |expected|,
//   computed in double;
// - an element above `max_error_cap` (absolute; where has_max_error_cap and above 0);
// - a slice along the leading axis below min(0.9, required_matched_ratio). Rank 2 and more only, and slices of two
// values
//   and more: in a list each element would be a slice, and the ratio would mean nothing.
// Integers are exact, every element of them, unless max_atol >= 1 (the default says nothing about integers; then the
// rules above hold) or required_matched_ratio is below the default 0.99 (then that ratio of them). bool compares truth
// values (any non-zero byte is true) and is exact whatever max_atol is. float4_e2m1fn_x2 compares both values of a
// byte, and counts and indexes values: the last index is 2 byte + nibble. A tensor without elements passes with
// ratio 1.
//
// In `numbers`, max_relative_error is the largest |actual - expected| / max(|expected|, 1e-8); an element that fails
// for NaN or infinity has infinite errors; first_failures has the first 8 elements that fail their own rule.
TensorComparison CompareTensor(const v1::Tensor& tensor, const std::vector<int64_t>& shape,
                               const v1::Tolerance& tolerance, std::span<const uint8_t> actual,
                               std::span<const uint8_t> expected);

// Merges `from` into `into`, of the same output: worst errors, smallest ratio; first failures of whichever had some
// first. An empty `into` becomes `from`.
void MergeComparison(const v1::OutputComparison& from, v1::OutputComparison* into);

}  // namespace solstice::verify
