// The precompiled header that a compiler zygote keeps in its /tmp. Every compile is a fork with the zygote's own uid,
// so one in the hands of a hostile source could write to it for the next: a change is found, and ends the zygote.
#pragma once

#include <sys/stat.h>

#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::worker {

// Not thread-safe.
class HeaderFile {
 public:
  // Takes the right to write from `path`, which nobody writes any more and whose folder holds nothing else. To write
  // then takes a change of mode, which its time of change shows; that no process of this uid can set.
  static StatusOr<std::unique_ptr<HeaderFile>> Freeze(const std::string& path);
  // Call when no child runs. Removes what a killed compile left beside the file. INTERNAL: the file is not what it was,
  // or more lies there than a compile leaves.
  Status Tidy() const;

 private:
  HeaderFile() = default;

  std::string folder_, name_;
  base::UniqueFd file_;  // open, so that its inode number is not given to another
  struct stat frozen_ = {};
};

}  // namespace solstice::worker
