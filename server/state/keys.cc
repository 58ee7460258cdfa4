#include "server/state/keys.h"

#include <algorithm>

#include "runtime/base/strings.h"

namespace solstice::state {
namespace {

constexpr char kValueVersion = 1;
constexpr char kIdPrefix[] = "ev_";
constexpr size_t kIdPrefixBytes = 3;
constexpr size_t kUlidDigits = 26;
constexpr std::string_view kDigits = "0123456789ABCDEFGHJKMNPQRSTVWXYZ";

std::string Key(char kind, std::string_view tenant, std::string_view rest) {
  return base::StrCat(kind, "/", tenant, "/", rest);
}

}  // namespace

bool IsValidTenant(std::string_view tenant) {
  return !tenant.empty() && tenant.size() <= kMaxTenantBytes && std::all_of(tenant.begin(), tenant.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

bool IsEvaluationId(std::string_view id) {
  if (id.size() != kIdPrefixBytes + kUlidDigits || !id.starts_with(kIdPrefix)) return false;
  id.remove_prefix(kIdPrefixBytes);
  return id[0] <= '7' &&
         std::all_of(id.begin(), id.end(), [](char c) { return kDigits.find(c) != std::string_view::npos; });
}

namespace keys {

std::string Evaluation(std::string_view tenant, std::string_view id) { return Key('e', tenant, id); }
std::string EventPrefix(std::string_view tenant, std::string_view id) { return Key('v', tenant, id) + "/"; }

std::string Event(std::string_view tenant, std::string_view id, int64_t seq) {
  std::string key = EventPrefix(tenant, id);
  for (int shift = 56; shift >= 0; shift -= 8) key.push_back(static_cast<char>(static_cast<uint64_t>(seq) >> shift));
  return key;
}

std::string Submission(std::string_view tenant, std::string_view id) { return Key('s', tenant, id); }
std::string Bundle(std::string_view tenant, std::string_view digest) { return Key('b', tenant, digest); }
std::string Idempotency(std::string_view tenant, std::string_view client_request_id) {
  return Key('i', tenant, client_request_id);
}
std::string CachedResult(std::string_view tenant, std::string_view cache_key) { return Key('c', tenant, cache_key); }
std::string Unfinished(std::string_view tenant, std::string_view id) { return Key('u', tenant, id); }
std::string NewestFirstPrefix(std::string_view tenant) { return Key('n', tenant, ""); }
std::string NewestFirst(std::string_view tenant, std::string_view id) { return Key('n', tenant, ComplementId(id)); }

std::string ComplementId(std::string_view id) {
  std::string out(id);
  for (size_t i = kIdPrefixBytes; i < out.size(); ++i) {
    size_t digit = kDigits.find(out[i]);
    if (digit != std::string_view::npos) out[i] = kDigits[kDigits.size() - 1 - digit];
  }
  return out;
}

std::optional<TenantAndRest> Parse(std::string_view key) {
  if (key.size() < 4 || key[1] != '/') return std::nullopt;
  key.remove_prefix(2);
  size_t slash = key.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return TenantAndRest{std::string(key.substr(0, slash)), std::string(key.substr(slash + 1))};
}

}  // namespace keys

std::string Frame(std::string_view bytes) {
  std::string value(1, kValueVersion);
  value.append(bytes);
  return value;
}

std::string Frame(const google::protobuf::MessageLite& message) { return Frame(message.SerializeAsString()); }

StatusOr<std::string_view> Unframe(std::string_view value, std::string_view key) {
  if (value.empty()) return base::DataLoss(base::StrCat("store: the value of ", base::Quote(key), " is empty"));
  if (value[0] != kValueVersion) {
    return base::FailedPrecondition(
        base::StrCat("store: the value of ", base::Quote(key), " has format ", static_cast<int>(value[0]),
                     ", this build knows ", static_cast<int>(kValueVersion)),
        "use the build that wrote this data folder, or a newer one");
  }
  return value.substr(1);
}

Status Unframe(std::string_view value, std::string_view key, google::protobuf::MessageLite* message) {
  SOLSTICE_ASSIGN_OR_RETURN(std::string_view bytes, Unframe(value, key));
  if (!message->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return base::DataLoss(base::StrCat("store: the value of ", base::Quote(key), " is damaged"));
  }
  return absl::OkStatus();
}

}  // namespace solstice::state
