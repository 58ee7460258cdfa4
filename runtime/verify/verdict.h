// Verdicts in order, and an evaluation's verdict from its workloads'. Pure functions, thread-safe.
#pragma once

#include "solstice/v1/evaluation.pb.h"

namespace solstice::verify {

// Rank of a verdict, worst highest: the order by which an evaluation's verdict is chosen. From the worst:
//   INVALID_REFERENCE    nothing can be said about the submission
//   REWARD_HACK          says what no other failure may hide
//   INVALID_SUBMISSION, COMPILE_ERROR        the program never ran
//   RUNTIME_ERROR, RESOURCE_EXCEEDED, TIMEOUT  it ran and did not end well
//   INCORRECT_SHAPE, INCORRECT_DTYPE, INCORRECT_NUMERICAL  it ended and is wrong
//   NEEDS_DEVICE         it could not be run here
//   PASSED
//   SKIPPED, then VERDICT_UNSPECIFIED (and unknown values): not run, which never outranks a workload that was
int Severity(v1::Verdict verdict);

// Sets verdict, reason, mend and `complete` from the workloads: the worst verdict in the order above and the first
// workload that has it, so PASSED needs at least one PASSED workload, and skipped ones only make it incomplete. Where
// nothing ran, SKIPPED (or NEEDS_DEVICE). `complete` is false when any workload was SKIPPED or NEEDS_DEVICE; a caller
// that ran smoke workloads only clears it afterwards. An evaluation without workloads that has a verdict already
// (COMPILE_ERROR) keeps it, incomplete.
void Summarise(v1::Evaluation* evaluation);

}  // namespace solstice::verify
