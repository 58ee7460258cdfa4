// The life of an evaluation as a pure function. Legal transitions (anything else is FAILED_PRECONDITION):
//
//   QUEUED    -> COMPILING | COMPLETED (answered from the result cache) | CANCELLED
//   COMPILING -> WAITING | COMPLETED (compile error) | CANCELLED | QUEUED (retry) | FAILED
//   WAITING   -> RUNNING | COMPLETED | CANCELLED | QUEUED (retry) | FAILED
//   RUNNING   -> COMPLETED | CANCELLED | QUEUED (retry) | FAILED
//
// COMPLETED, CANCELLED and FAILED are final.
#pragma once

#include "runtime/base/status.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::state {

bool IsFinal(v1::EvaluationState state);
// FAILED_PRECONDITION naming both states when the move is not legal.
Status CheckTransition(v1::EvaluationState from, v1::EvaluationState to);

}  // namespace solstice::state
