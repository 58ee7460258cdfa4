#include "runtime/plan/statement.h"

namespace solstice::plan {

StatusOr<Rejection> RejectionFrom(const Status& status) {
  Rejection rejection;
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
      rejection.verdict = v1::INVALID_SUBMISSION;
      break;
    case absl::StatusCode::kResourceExhausted:
      rejection.verdict = v1::RESOURCE_EXCEEDED;
      break;
    case absl::StatusCode::kNotFound:
      rejection.verdict = v1::COMPILE_ERROR;
      break;
    default:
      return status;
  }
  rejection.reason = base::MessageOf(status);
  rejection.mend = base::MendOf(status);
  return rejection;
}

}  // namespace solstice::plan
