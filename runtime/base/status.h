// Status helpers. A Status means "we failed" or "the request is wrong"; how a submission ended is a Verdict, never a
// Status (proto/solstice/v1/evaluation.proto). No exception crosses a library's edge.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace solstice {

using absl::Status;
using absl::StatusOr;

namespace base {

// Constructors from std types (Debian's absl::string_view is not std::string_view). `message` says where and why:
// "workload.jsonl:3: $.axes.N: must be a non-negative integer". `mend`, if any, says what to do about it.
Status MakeStatus(absl::StatusCode code, std::string_view message, std::string_view mend = {});
Status InvalidArgument(std::string_view message, std::string_view mend = {});
Status NotFound(std::string_view message, std::string_view mend = {});
Status AlreadyExists(std::string_view message, std::string_view mend = {});
Status FailedPrecondition(std::string_view message, std::string_view mend = {});
Status ResourceExhausted(std::string_view message, std::string_view mend = {});
Status DeadlineExceeded(std::string_view message, std::string_view mend = {});
Status Unavailable(std::string_view message, std::string_view mend = {});
Status Internal(std::string_view message, std::string_view mend = {});
Status DataLoss(std::string_view message, std::string_view mend = {});
Status Unimplemented(std::string_view message, std::string_view mend = {});
Status Cancelled(std::string_view message, std::string_view mend = {});
// From errno: "<what>: <strerror>".
Status FromErrno(int error, std::string_view what);

std::string MendOf(const Status& status);
std::string MessageOf(const Status& status);
// The same status with "<prefix>: " before its message; the mend is kept.
Status Annotate(const Status& status, std::string_view prefix);

}  // namespace base
}  // namespace solstice

#define SOLSTICE_CONCAT_INNER_(a, b) a##b
#define SOLSTICE_CONCAT_(a, b) SOLSTICE_CONCAT_INNER_(a, b)

#define SOLSTICE_RETURN_IF_ERROR(expression)             \
  do {                                                   \
    ::solstice::Status solstice_status_ = (expression);  \
    if (!solstice_status_.ok()) return solstice_status_; \
  } while (false)

// SOLSTICE_ASSIGN_OR_RETURN(auto value, Function());
#define SOLSTICE_ASSIGN_OR_RETURN(declaration, expression) \
  SOLSTICE_ASSIGN_OR_RETURN_IMPL_(SOLSTICE_CONCAT_(solstice_or_, __LINE__), declaration, expression)
#define SOLSTICE_ASSIGN_OR_RETURN_IMPL_(variable, declaration, expression) \
  auto variable = (expression);                                            \
  if (!variable.ok()) return variable.status();                            \
  declaration = std::move(variable).value()
