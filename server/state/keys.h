// Keys and value framing of the store (docs/formats/store.md). Pure functions.
//
// A tenant holds no '/', and every key has at most one part of free form, its last; so no two records share a key.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "google/protobuf/message_lite.h"
#include "runtime/base/status.h"

namespace solstice::state {

inline constexpr char kDefaultTenant[] = "local";
inline constexpr size_t kMaxTenantBytes = 64;
inline constexpr size_t kMaxClientRequestIdCharacters = 128;

// [a-z0-9_-]{1,64}
bool IsValidTenant(std::string_view tenant);
// "ev_" and a ULID: 26 of Crockford's digits, the first at most 7.
bool IsEvaluationId(std::string_view id);

namespace keys {

inline constexpr char kSchema[] = "!schema";
inline constexpr char kServerKey[] = "!server_key";

std::string Evaluation(std::string_view tenant, std::string_view id);
// All events of an evaluation share EventPrefix; the number is big endian, so that they sort by it.
std::string EventPrefix(std::string_view tenant, std::string_view id);
std::string Event(std::string_view tenant, std::string_view id, int64_t seq);
std::string Submission(std::string_view tenant, std::string_view id);
std::string Bundle(std::string_view tenant, std::string_view digest);
std::string Idempotency(std::string_view tenant, std::string_view client_request_id);
std::string CachedResult(std::string_view tenant, std::string_view cache_key);
// Evaluations that have not ended.
inline constexpr char kUnfinishedPrefix[] = "u/";
std::string Unfinished(std::string_view tenant, std::string_view id);
// Newest first: each digit of the ULID is replaced by its complement.
std::string NewestFirstPrefix(std::string_view tenant);
std::string NewestFirst(std::string_view tenant, std::string_view id);
// Exchanges an id and its complement.
std::string ComplementId(std::string_view id);

// The two parts after the kind: "u/local/ev_..." gives "local" and "ev_...".
struct TenantAndRest {
  std::string tenant;
  std::string rest;
};
std::optional<TenantAndRest> Parse(std::string_view key);

}  // namespace keys

// A format version byte before the bytes of a value.
std::string Frame(std::string_view bytes);
std::string Frame(const google::protobuf::MessageLite& message);
// DATA_LOSS for an empty value, FAILED_PRECONDITION for a version that this build does not know. `key` names it.
StatusOr<std::string_view> Unframe(std::string_view value, std::string_view key);
Status Unframe(std::string_view value, std::string_view key, google::protobuf::MessageLite* message);

}  // namespace solstice::state
