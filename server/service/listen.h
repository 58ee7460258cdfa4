// Addresses a server may listen on, checked before gRPC binds them: gRPC steals a live unix socket and says little
// about a port in use.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace solstice::service {

// "host:port", "[::1]:port", "unix:/path". INVALID_ARGUMENT: malformed, a port out of range, a socket path over 107
// bytes. FAILED_PRECONDITION: in use (says by what); a stale socket of a server that is gone is removed.
Status PrepareAddress(const std::string& address);
// Whether everybody who can reach it is this host's user: a unix socket or a loopback address.
bool IsLocal(const std::string& address);
// The path of "unix:/path", else "".
std::string SocketPath(const std::string& address);

}  // namespace solstice::service
