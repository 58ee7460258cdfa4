#include "server/state/transition.h"

#include "runtime/base/strings.h"

namespace solstice::state {

bool IsFinal(v1::EvaluationState state) {
  return state == v1::COMPLETED || state == v1::CANCELLED || state == v1::FAILED;
}

Status CheckTransition(v1::EvaluationState from, v1::EvaluationState to) {
  bool legal = false;
  switch (from) {
    case v1::QUEUED:
      legal = to == v1::COMPILING || to == v1::COMPLETED || to == v1::CANCELLED;
      break;
    case v1::COMPILING:
      legal = to == v1::WAITING || to == v1::QUEUED || IsFinal(to);
      break;
    case v1::WAITING:
      legal = to == v1::RUNNING || to == v1::QUEUED || IsFinal(to);
      break;
    case v1::RUNNING:
      legal = to == v1::QUEUED || IsFinal(to);
      break;
    default:
      break;
  }
  if (legal) return absl::OkStatus();
  auto name = [](v1::EvaluationState state) {
    const std::string& known = v1::EvaluationState_Name(state);
    return known.empty() ? base::StrCat("state ", static_cast<int>(state)) : known;
  };
  return base::FailedPrecondition(base::StrCat("an evaluation cannot go from ", name(from), " to ", name(to)));
}

}  // namespace solstice::state
