#include "server/service/listen.h"

#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <memory>

#include "runtime/base/strings.h"
#include "runtime/base/unique_fd.h"
#include "runtime/rpc/private_server.h"

namespace solstice::service {
namespace {

constexpr char kUnix[] = "unix:";

struct HostAndPort {
  std::string host;
  int port = 0;
};

StatusOr<HostAndPort> Split(const std::string& address) {
  const std::string mend = "use host:port with a port of 0 to 65535, [ipv6]:port, or unix:/path";
  Status bad = base::InvalidArgument(base::StrCat("address ", base::Quote(address), " is malformed"), mend);
  size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return bad;
  HostAndPort parts;
  parts.host = address.substr(0, colon);
  if (parts.host.front() == '[' && parts.host.back() == ']') {
    parts.host = parts.host.substr(1, parts.host.size() - 2);
  } else if (parts.host.find(':') != std::string::npos) {
    return bad;
  }
  const char* last = address.data() + address.size();
  auto [end, error] = std::from_chars(address.data() + colon + 1, last, parts.port);
  if (error != std::errc() || end != last || parts.port < 0 || parts.port > 65535 || parts.host.empty()) return bad;
  return parts;
}

Status PrepareTcp(const std::string& address) {
  SOLSTICE_ASSIGN_OR_RETURN(HostAndPort parts, Split(address));
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  int error = ::getaddrinfo(parts.host.c_str(), std::to_string(parts.port).c_str(), &hints, &found);
  if (error != 0) {
    return base::InvalidArgument(base::StrCat("address ", base::Quote(address), ": ", ::gai_strerror(error)),
                                 "name an address of this host");
  }
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  base::UniqueFd fd(::socket(found->ai_family, found->ai_socktype | SOCK_CLOEXEC, found->ai_protocol));
  if (!fd.valid()) return base::FromErrno(errno, address);
  // As gRPC does: connections of a server that has just stopped do not count.
  int one = 1;
  ::setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
  if (::bind(fd.get(), found->ai_addr, found->ai_addrlen) == 0) return absl::OkStatus();
  return base::FailedPrecondition(base::StrCat("cannot listen on ", address, ": ", std::strerror(errno)),
                                  errno == EADDRINUSE
                                      ? "stop what listens there (another solsticed?), or pass another --listen"
                                      : "pass another --listen");
}

Status PrepareUnix(const std::string& path) {
  if (path.empty() || path[0] != '/' || path.size() > rpc::kMaxSocketPathBytes) {
    return base::InvalidArgument(base::StrCat("socket path ", base::Quote(path, 200), " has ", path.size(),
                                              " bytes, the limit is ", rpc::kMaxSocketPathBytes),
                                 "use an absolute path of at most 107 bytes");
  }
  struct stat info;
  if (::lstat(path.c_str(), &info) != 0) {
    if (errno == ENOENT && ::access(path.substr(0, path.rfind('/') + 1).c_str(), W_OK) == 0) return absl::OkStatus();
    return base::FailedPrecondition(base::StrCat("cannot listen on ", path, ": ", std::strerror(errno)),
                                    "make its folder, writable for this user");
  }
  if (!S_ISSOCK(info.st_mode)) {
    return base::FailedPrecondition(base::StrCat("cannot listen on ", path, ": it exists and is no socket"),
                                    "remove it, or pass another --listen");
  }
  base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return base::FromErrno(errno, path);
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name) == 0 || errno != ECONNREFUSED) {
    return base::FailedPrecondition(base::StrCat("cannot listen on ", path, ": another server listens there"),
                                    "stop it, or pass another --listen");
  }
  if (::unlink(path.c_str()) != 0) return base::FromErrno(errno, path);
  return absl::OkStatus();
}

}  // namespace

std::string SocketPath(const std::string& address) {
  return address.starts_with(kUnix) ? address.substr(sizeof kUnix - 1) : "";
}

Status PrepareAddress(const std::string& address) {
  if (address.starts_with(kUnix)) return PrepareUnix(SocketPath(address));
  return PrepareTcp(address);
}

bool IsLocal(const std::string& address) {
  if (address.starts_with(kUnix)) return true;
  StatusOr<HostAndPort> parts = Split(address);
  return parts.ok() && (parts->host.starts_with("127.") || parts->host == "::1" || parts->host == "localhost");
}

}  // namespace solstice::service
