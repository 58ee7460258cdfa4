#include "runtime/rpc/private_server.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <filesystem>

#include "runtime/base/crypto.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"

namespace solstice::rpc {
namespace {

std::string LockPath(const std::string& data_dir) { return data_dir + "/server.lock"; }
std::string HandoverPath(const std::string& data_dir) { return data_dir + "/server.handover"; }

// A folder that nobody else can write to or list; made if it is missing.
Status PrivateFolder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return base::FromErrno(errno, path);
  struct stat info;
  // lstat: in /tmp another user could have put a link here.
  if (::lstat(path.c_str(), &info) != 0) return base::FromErrno(errno, path);
  if (!S_ISDIR(info.st_mode) || info.st_uid != ::geteuid() || (info.st_mode & 0077) != 0) {
    return base::FailedPrecondition(base::StrCat(path, ": not a folder of this user alone"),
                                    base::StrCat("remove it, or `chmod 700 ", path, "`"));
  }
  return absl::OkStatus();
}

bool UsableRuntimeDir(const char* path) {
  struct stat info;
  return path != nullptr && path[0] == '/' && ::stat(path, &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 0022) == 0;
}

}  // namespace

StatusOr<std::string> DefaultDataDir() {
  const char* given = std::getenv("SOLSTICE_DATA_DIR");
  if (given != nullptr && given[0] != '\0') return std::string(given);
  const char* data_home = std::getenv("XDG_DATA_HOME");
  if (data_home != nullptr && data_home[0] == '/') return std::string(data_home) + "/solstice";
  const char* home = std::getenv("HOME");
  if (home == nullptr || home[0] != '/') {
    return base::FailedPrecondition("no data folder: neither SOLSTICE_DATA_DIR nor HOME is set",
                                    "pass --data-dir or set SOLSTICE_DATA_DIR");
  }
  return std::string(home) + "/.local/share/solstice";
}

StatusOr<std::string> PrepareDataDir(const std::string& path) {
  if (path.empty()) return base::InvalidArgument("the data folder's path is empty", "pass --data-dir");
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    std::error_code error;
    std::filesystem::path folder(path);
    if (!folder.has_filename()) folder = folder.parent_path();
    if (folder.has_parent_path()) std::filesystem::create_directories(folder.parent_path(), error);
    if (error) return base::FromErrno(error.value(), path);
    if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return base::FromErrno(errno, path);
  } else if (!S_ISDIR(info.st_mode)) {
    return base::FailedPrecondition(base::StrCat(path, ": not a folder"), "pass another --data-dir");
  }
  char resolved[PATH_MAX];
  if (::realpath(path.c_str(), resolved) == nullptr) return base::FromErrno(errno, path);
  if (::access(resolved, R_OK | W_OK | X_OK) != 0) return base::FromErrno(errno, path);
  return std::string(resolved);
}

StatusOr<std::string> PrivateSocketPath(const std::string& data_dir) {
  const char* runtime = std::getenv("XDG_RUNTIME_DIR");
  std::string folder = UsableRuntimeDir(runtime) ? std::string(runtime) + "/solstice"
                                                 : base::StrCat("/tmp/solstice-", static_cast<int64_t>(::geteuid()));
  SOLSTICE_RETURN_IF_ERROR(PrivateFolder(folder));
  std::string path = base::StrCat(folder, "/", base::Hex(base::Sha256(data_dir)).substr(0, 16), ".sock");
  if (path.size() > kMaxSocketPathBytes) {
    return base::FailedPrecondition(base::StrCat("socket path ", base::Quote(path, 200), " has ", path.size(),
                                                 " bytes, the limit is ", kMaxSocketPathBytes),
                                    "set XDG_RUNTIME_DIR to a shorter path");
  }
  return path;
}

StatusOr<std::optional<PrivateLock>> PrivateLock::TryTake(const std::string& data_dir) {
  std::string path = LockPath(data_dir);
  // A few rounds: the file may be removed between opening and locking it.
  for (int round = 0; round < 10; ++round) {
    base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (!fd.valid()) return base::FromErrno(errno, path);
    if (::flock(fd.get(), LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) return std::optional<PrivateLock>();
      if (errno == EINTR) continue;
      return base::FromErrno(errno, path);
    }
    PrivateLock lock(std::move(fd), path);
    if (lock.StillOurs()) return std::optional<PrivateLock>(std::move(lock));
  }
  return base::Unavailable(base::StrCat(path, ": the lock file keeps changing"), "try again");
}

bool PrivateLock::StillOurs() const {
  struct stat held, named;
  return ::fstat(fd_.get(), &held) == 0 && ::stat(path_.c_str(), &named) == 0 && held.st_ino == named.st_ino &&
         held.st_dev == named.st_dev;
}

Status RequestHandover(const std::string& data_dir, const std::string& build_id) {
  return base::WriteFileAtomically(HandoverPath(data_dir), build_id + "\n");
}

bool HandoverRequested(const std::string& data_dir, const std::string& build_id) {
  auto wanted = base::ReadFile(HandoverPath(data_dir), 4096);
  if (!wanted.ok()) return false;
  std::string_view build = base::Trim(*wanted);
  if (build == build_id) {
    ClearHandover(data_dir);
    return false;
  }
  return !build.empty();
}

void ClearHandover(const std::string& data_dir) { ::unlink(HandoverPath(data_dir).c_str()); }

}  // namespace solstice::rpc
