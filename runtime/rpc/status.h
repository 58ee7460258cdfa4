// Status over gRPC: code and message as gRPC's own, the mend as google.rpc details that any client can read
// (ErrorInfo {reason, domain, metadata.mend}; RetryInfo with RESOURCE_EXHAUSTED). Pure functions, thread-safe.
#pragma once

#include <grpcpp/support/status.h>

#include <chrono>
#include <optional>
#include <string>

#include "runtime/base/status.h"

namespace solstice::rpc {

inline constexpr char kErrorDomain[] = "solstice.dev";
// What a client should wait before it repeats a RESOURCE_EXHAUSTED call.
inline constexpr std::chrono::milliseconds kRetryDelay{2000};
// Both travel in a header, of which gRPC takes 8 KiB, encoded at up to three times their size.
inline constexpr size_t kMaxMessageBytes = 1024;
inline constexpr size_t kMaxMendBytes = 768;

// Text is cut to the limits above; bytes that are not UTF-8 are escaped.
grpc::Status ToGrpc(const Status& status);
// The inverse; malformed or missing details leave the mend empty.
Status FromGrpc(const grpc::Status& status);
// The delay that the server asked for, if it did.
std::optional<std::chrono::milliseconds> RetryDelay(const grpc::Status& status);

}  // namespace solstice::rpc
