#include "runtime/base/file.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>

#include "runtime/base/strings.h"

namespace solstice::base {
namespace {

StatusOr<std::string> ReadAll(int fd, int64_t limit_bytes, const std::string& name) {
  struct stat info;
  if (::fstat(fd, &info) != 0) return FromErrno(errno, name);
  if (!S_ISREG(info.st_mode)) return FailedPrecondition(StrCat(name, ": not a regular file"));
  if (info.st_size > limit_bytes) {
    return ResourceExhausted(StrCat(name, ": ", info.st_size, " bytes, the limit is ", limit_bytes));
  }
  std::string content(static_cast<size_t>(info.st_size), '\0');
  size_t done = 0;
  while (done < content.size()) {
    ssize_t n = ::pread(fd, content.data() + done, content.size() - done, static_cast<off_t>(done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FromErrno(errno, name);
    if (n == 0) break;
    done += static_cast<size_t>(n);
  }
  content.resize(done);
  return content;
}

Status WriteAll(int fd, std::string_view content, std::string_view name) {
  while (!content.empty()) {
    ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return FromErrno(errno, name);
    content.remove_prefix(static_cast<size_t>(n));
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes) {
  // O_NONBLOCK: a FIFO must not hang us before the regular-file check.
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return FromErrno(errno, path);
  return ReadAll(fd.get(), limit_bytes, path);
}

StatusOr<std::string> ReadFileBeneath(int directory_fd, const std::string& relative_path, int64_t limit_bytes) {
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  UniqueFd fd(static_cast<int>(::syscall(SYS_openat2, directory_fd, relative_path.c_str(), &how, sizeof how)));
  if (!fd.valid()) return FromErrno(errno, relative_path);
  return ReadAll(fd.get(), limit_bytes, relative_path);
}

Status WriteFileAtomically(const std::string& path, std::string_view content) {
  std::string temporary = StrCat(path, ".tmp.", ::getpid());
  UniqueFd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return FromErrno(errno, temporary);
  Status status = WriteAll(fd.get(), content, temporary);
  if (status.ok() && ::fsync(fd.get()) != 0) status = FromErrno(errno, temporary);
  if (status.ok() && ::rename(temporary.c_str(), path.c_str()) != 0) status = FromErrno(errno, path);
  if (!status.ok()) ::unlink(temporary.c_str());
  return status;
}

StatusOr<UniqueFd> SealedMemfd(const char* name, std::string_view content) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return FromErrno(errno, "memfd_create");
  SOLSTICE_RETURN_IF_ERROR(WriteAll(fd.get(), content, "memfd"));
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL) != 0) {
    return FromErrno(errno, "F_ADD_SEALS");
  }
  return fd;
}

StatusOr<UniqueFd> SizedMemfd(const char* name, int64_t bytes) {
  UniqueFd fd(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!fd.valid()) return FromErrno(errno, "memfd_create");
  if (::ftruncate(fd.get(), bytes) != 0) return FromErrno(errno, "ftruncate");
  if (::fcntl(fd.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) != 0) return FromErrno(errno, "F_ADD_SEALS");
  return fd;
}

StatusOr<std::string> ReadMemfd(int fd, int64_t limit_bytes) { return ReadAll(fd, limit_bytes, "memfd"); }

StatusOr<std::string> ProgramDirectory() {
  char path[4096];
  ssize_t n = ::readlink("/proc/self/exe", path, sizeof path);
  if (n <= 0 || n == sizeof path) return FromErrno(errno, "/proc/self/exe");
  std::string text(path, static_cast<size_t>(n));
  return text.substr(0, text.rfind('/'));
}

}  // namespace solstice::base
