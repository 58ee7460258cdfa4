// Where a private server and its clients meet: the data folder, its lock, and the socket derived from it.
//
// The server holds a lock on `<data>/server.lock` from before it binds until it ends. It ends when that file is removed
// or `<data>/server.handover` names another build; clients of another build write that file, wait for the lock to
// become free and start their own server. All functions may be called from any thread.
#pragma once

#include <optional>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::rpc {

// Most bytes of a unix socket's path (sockaddr_un, less the NUL).
inline constexpr size_t kMaxSocketPathBytes = 107;

// $SOLSTICE_DATA_DIR, else $XDG_DATA_HOME/solstice, else ~/.local/share/solstice. FAILED_PRECONDITION when none of them
// is set.
StatusOr<std::string> DefaultDataDir();
// Makes the folder (0700) where there is none, and resolves links: every spelling of a folder gives one socket.
StatusOr<std::string> PrepareDataDir(const std::string& path);

// `$XDG_RUNTIME_DIR/solstice/<16 hex digits>.sock`, or the same in `/tmp/solstice-<uid>`; makes that folder.
// FAILED_PRECONDITION: the folder is another user's, open to others or no folder, or the path is too long.
// `data_dir` comes from PrepareDataDir.
StatusOr<std::string> PrivateSocketPath(const std::string& data_dir);

class PrivateLock {
 public:
  // None when another process holds it.
  static StatusOr<std::optional<PrivateLock>> TryTake(const std::string& data_dir);
  // False once the lock file was removed or replaced.
  bool StillOurs() const;

 private:
  PrivateLock(base::UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  base::UniqueFd fd_;
  std::string path_;
};

// Asks the server of the folder to end for `build_id`'s sake.
Status RequestHandover(const std::string& data_dir, const std::string& build_id);
// Whether a build other than `build_id` asked. Removes requests for `build_id` itself.
bool HandoverRequested(const std::string& data_dir, const std::string& build_id);
// For a server that starts: requests to its predecessors are done.
void ClearHandover(const std::string& data_dir);

}  // namespace solstice::rpc
