#include "runtime/sandbox/stage.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "runtime/base/strings.h"
#include "runtime/base/unique_fd.h"

namespace solstice::sandbox {
namespace {
using base::StrCat;

std::string RealPath(const std::string& path) {
  char* resolved = ::realpath(path.c_str(), nullptr);
  std::string text = resolved == nullptr ? "" : resolved;
  ::free(resolved);
  return text;
}
constexpr char kPrefix[] = "solstice-jails-";
constexpr const char* kParents[] = {"/run", "/tmp"};

// Removes the empty folders of servers that were killed: those whose lock nobody holds.
void RemoveLeftOvers(const std::string& parent) {
  DIR* entries = ::opendir(parent.c_str());
  if (entries == nullptr) return;
  while (dirent* entry = ::readdir(entries)) {
    if (std::string_view(entry->d_name).substr(0, sizeof kPrefix - 1) != kPrefix) continue;
    std::string folder = StrCat(parent, "/", std::string(entry->d_name));
    base::UniqueFd lock(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (lock.valid() && ::flock(lock.get(), LOCK_EX | LOCK_NB) == 0) ::rmdir(folder.c_str());
  }
  ::closedir(entries);
}

}  // namespace

StatusOr<std::unique_ptr<Stage>> Stage::Create() {
  std::string folder;
  // Folders that an unprivileged uid can pass through and that only root can rename in.
  for (const char* parent : kParents) {
    RemoveLeftOvers(parent);
    folder = StrCat(parent, "/", kPrefix, "XXXXXX");
    if (::mkdtemp(folder.data()) != nullptr) break;
    folder.clear();
  }
  if (folder.empty()) return base::FromErrno(errno, "mkdtemp in /run and /tmp");
  std::unique_ptr<Stage> stage(new Stage(folder));
  stage->lock_ = base::UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!stage->lock_.valid() || ::flock(stage->lock_.get(), LOCK_EX | LOCK_NB) != 0) {
    // Another server took it for a left-over in between.
    return base::Unavailable(StrCat(folder, ": cannot lock it"), "start the server again");
  }
  if (::unshare(CLONE_NEWNS) != 0) {
    return base::FailedPrecondition(
        StrCat("cannot make a private mount namespace: ", base::MessageOf(base::FromErrno(errno, "unshare"))),
        "run the server as an ordinary user, or allow it CAP_SYS_ADMIN");
  }
  if (::mount(nullptr, "/", nullptr, MS_PRIVATE | MS_REC, nullptr) != 0) {
    return base::FailedPrecondition(
        StrCat("cannot make the mounts private: ", base::MessageOf(base::FromErrno(errno, "mount"))),
        "in a chroot, bind the root folder to itself first; or run the server as an ordinary user");
  }
  if (::mount("solstice", folder.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755,size=1m") != 0) {
    return base::FromErrno(errno, "mount tmpfs");
  }
  return stage;
}

Stage::~Stage() { ::rmdir(folder_.c_str()); }

StatusOr<std::string> Stage::Add(const std::string& source) {
  std::string real = RealPath(source);
  struct stat info;
  if (real.empty() || ::stat(real.c_str(), &info) != 0) return base::FromErrno(errno, source);
  if (!S_ISREG(info.st_mode) && !S_ISDIR(info.st_mode)) {
    return base::InvalidArgument(StrCat(source, ": only files and folders can be mounted"));
  }
  std::string key = StrCat(info.st_dev, ":", info.st_ino, ":", real);
  if (auto found = staged_.find(key); found != staged_.end()) return found->second;

  std::string target = StrCat(folder_, "/", staged_.size());
  if (S_ISDIR(info.st_mode)) {
    if (::mkdir(target.c_str(), 0755) != 0) return base::FromErrno(errno, target);
  } else {
    base::UniqueFd file(::open(target.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file.valid()) return base::FromErrno(errno, target);
  }
  if (::mount(real.c_str(), target.c_str(), nullptr, MS_BIND, nullptr) != 0) {
    return base::FromErrno(errno, StrCat("bind mount of ", real));
  }
  if (::mount(nullptr, target.c_str(), nullptr, MS_REMOUNT | MS_BIND | MS_RDONLY | MS_NOSUID | MS_NODEV, nullptr) !=
      0) {
    return base::FromErrno(errno, StrCat("read-only remount of ", real));
  }
  staged_[key] = target;
  return target;
}

}  // namespace solstice::sandbox
