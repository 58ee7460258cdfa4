#include "runtime/worker/header_file.h"

#include <dirent.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <vector>

#include "runtime/base/strings.h"

namespace solstice::worker {
namespace {

using base::StrCat;

// A compile has one temporary file at a time.
constexpr size_t kMaxLeftovers = 64;
// Times of change are as fine as the kernel's tick, 10 ms at most; what happens after this has a later one.
constexpr timespec kTick = {0, 25'000'000};

bool Same(const struct stat& a, const struct stat& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_mode == b.st_mode && a.st_nlink == b.st_nlink &&
         a.st_size == b.st_size && a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

// Names in `folder` but `kept`; one more than kMaxLeftovers at most.
StatusOr<std::vector<std::string>> Others(const std::string& folder, const std::string& kept) {
  DIR* stream = ::opendir(folder.c_str());
  if (stream == nullptr) return base::FromErrno(errno, StrCat("opendir ", folder));
  std::vector<std::string> names;
  while (const dirent* entry = ::readdir(stream)) {
    std::string name = entry->d_name;
    if (name != "." && name != ".." && name != kept) names.push_back(name);
    if (names.size() > kMaxLeftovers) break;
  }
  ::closedir(stream);
  return names;
}

}  // namespace

StatusOr<std::unique_ptr<HeaderFile>> HeaderFile::Freeze(const std::string& path) {
  std::unique_ptr<HeaderFile> header(new HeaderFile);
  size_t slash = path.rfind('/');
  header->folder_ = path.substr(0, slash);
  header->name_ = path.substr(slash + 1);
  header->file_ = base::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!header->file_.valid()) return base::FromErrno(errno, StrCat("open ", path));
  if (::fchmod(header->file_.get(), 0400) != 0) return base::FromErrno(errno, StrCat("chmod ", path));
  ::nanosleep(&kTick, nullptr);
  if (::fstat(header->file_.get(), &header->frozen_) != 0) return base::FromErrno(errno, StrCat("stat ", path));
  SOLSTICE_RETURN_IF_ERROR(header->Tidy());
  return header;
}

Status HeaderFile::Tidy() const {
  std::string path = StrCat(folder_, "/", name_);
  struct stat now;
  if (::lstat(path.c_str(), &now) != 0 || !Same(now, frozen_)) {
    return base::Internal("a compile changed the precompiled header");
  }
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<std::string> others, Others(folder_, name_));
  if (others.size() > kMaxLeftovers) return base::Internal("a compile left too many files");
  for (const std::string& other : others) {
    // Not a folder: no compiler makes one.
    if (::unlink(StrCat(folder_, "/", other).c_str()) != 0)
      return base::FromErrno(errno, "a compile left more than files");
  }
  return absl::OkStatus();
}

}  // namespace solstice::worker
