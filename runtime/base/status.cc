#include "runtime/base/status.h"

#include <cstring>

#include "absl/strings/cord.h"

namespace solstice::base {
namespace {
constexpr char kMendUrl[] = "solstice.dev/mend";
absl::string_view View(std::string_view text) { return absl::string_view(text.data(), text.size()); }
}  // namespace

Status MakeStatus(absl::StatusCode code, std::string_view message, std::string_view mend) {
  Status status(code, View(message));
  if (!mend.empty()) status.SetPayload(kMendUrl, absl::Cord(View(mend)));
  return status;
}

Status InvalidArgument(std::string_view m, std::string_view mend) {
  return MakeStatus(absl::StatusCode::kInvalidArgument, m, mend);
}
Status NotFound(std::string_view m, std::string_view mend) { return MakeStatus(absl::StatusCode::kNotFound, m, mend); }
Status AlreadyExists(std::string_view m, std::string_view mend) {
  return MakeStatus(absl::StatusCode::kAlreadyExists, m, mend);
}
Status FailedPrecondition(std::string_view m, std::string_view mend) {
  return MakeStatus(absl::StatusCode::kFailedPrecondition, m, mend);
}
Status ResourceExhausted(std::string_view m, std::string_view mend) {
  return MakeStatus(absl::StatusCode::kResourceExhausted, m, mend);
}
Status DeadlineExceeded(std::string_view m, std::string_view mend) {
  return MakeStatus(absl::StatusCode::kDeadlineExceeded, m, mend);
}
Status Unavailable(std::string_view m, std::string_view mend) {
  return MakeStatus(absl::StatusCode::kUnavailable, m, mend);
}
Status Internal(std::string_view m, std::string_view mend) { return MakeStatus(absl::StatusCode::kInternal, m, mend); }
Status DataLoss(std::string_view m, std::string_view mend) { return MakeStatus(absl::StatusCode::kDataLoss, m, mend); }
Status Unimplemented(std::string_view m, std::string_view mend) {
  return MakeStatus(absl::StatusCode::kUnimplemented, m, mend);
}
Status Cancelled(std::string_view m, std::string_view mend) {
  return MakeStatus(absl::StatusCode::kCancelled, m, mend);
}

Status FromErrno(int error, std::string_view what) {
  absl::StatusCode code = absl::StatusCode::kInternal;
  if (error == ENOENT) code = absl::StatusCode::kNotFound;
  if (error == EACCES || error == EPERM) code = absl::StatusCode::kPermissionDenied;
  if (error == ENOSPC || error == ENOMEM || error == EMFILE) code = absl::StatusCode::kResourceExhausted;
  return MakeStatus(code, std::string(what) + ": " + std::strerror(error));
}

std::string MendOf(const Status& status) {
  auto payload = status.GetPayload(kMendUrl);
  return payload.has_value() ? std::string(*payload) : std::string();
}

std::string MessageOf(const Status& status) { return std::string(status.message()); }

Status Annotate(const Status& status, std::string_view prefix) {
  if (status.ok()) return status;
  return MakeStatus(status.code(), std::string(prefix) + ": " + MessageOf(status), MendOf(status));
}

}  // namespace solstice::base
