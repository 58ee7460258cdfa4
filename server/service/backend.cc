#include "server/service/backend.h"

#include "runtime/base/strings.h"
#include "server/service/log.h"
#include "server/state/keys.h"

namespace solstice::service {
namespace {
constexpr char kTenantMetadata[] = "solstice-tenant";
}  // namespace

StatusOr<std::string> TenantOf(const grpc::CallbackServerContext& context, bool trust_metadata) {
  if (!trust_metadata) return std::string(state::kDefaultTenant);
  auto [first, last] = context.client_metadata().equal_range(kTenantMetadata);
  if (first == last) return std::string(state::kDefaultTenant);
  std::string tenant(first->second.data(), first->second.size());
  if (std::next(first) != last || !state::IsValidTenant(tenant)) {
    return base::InvalidArgument(base::StrCat("metadata ", kTenantMetadata, ": ", base::Quote(tenant),
                                              std::next(first) != last ? " is given twice" : " is not a valid name"),
                                 "send one of 1 to 64 of a-z, 0-9, _ and -");
  }
  return tenant;
}

Status CheckAccepting(const Backend& backend) {
  if (!backend.draining->load()) return absl::OkStatus();
  return base::Unavailable("the server is stopping", "submit again when it is back");
}

void RecordFailure(const char* method, const std::string& tenant, const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kDataLoss:
    case absl::StatusCode::kUnknown:
      LogError(base::StrCat(method, " (tenant ", tenant, ") failed: ", base::Quote(status.ToString(), 1000)));
      break;
    default:
      break;
  }
}

Status Overloaded() {
  return base::ResourceExhausted("the server has too many calls under way",
                                 "repeat the call after the delay that this error names");
}

}  // namespace solstice::service
