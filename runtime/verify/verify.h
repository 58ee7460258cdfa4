// Compares outputs with the reference's (protocol solstice-v1, DESIGN section 6). Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "solstice/v1/definition.pb.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::verify {

struct TensorComparison {
  v1::Verdict verdict = v1::PASSED;  // PASSED, INCORRECT_NUMERICAL or INVALID_REFERENCE (the reference is not finite)
  std::string reason, mend;
  v1::OutputComparison numbers;
};

// `actual` and `expected` hold prod(shape) elements of `tensor.dtype()`.
TensorComparison CompareTensor(const v1::Tensor& tensor, const std::vector<int64_t>& shape,
                               const v1::Tolerance& tolerance, std::span<const uint8_t> actual,
                               std::span<const uint8_t> expected);

// Merges `from` into `into`: worst errors, smallest ratio, first failures kept.
void MergeComparison(const v1::OutputComparison& from, v1::OutputComparison* into);

// Rank of a verdict, worst highest: the order by which an evaluation's verdict is chosen.
int Severity(v1::Verdict verdict);
// The evaluation's verdict, reason, mend and completeness from its workloads. PASSED needs at least one PASSED workload.
void Summarise(v1::Evaluation* evaluation);

}  // namespace solstice::verify
