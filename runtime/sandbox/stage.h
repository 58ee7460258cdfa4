// A private place from which an unprivileged uid can read what its jail is made of, wherever the originals lie.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::sandbox {

// Every method on one thread, whose mount namespace becomes private. The mounts go with the thread and its children.
class Stage {
 public:
  // Needs root. Leaves the calling thread in a mount namespace of its own. Also removes what killed servers left.
  static StatusOr<std::unique_ptr<Stage>> Create();
  // Removes the folder's name; only after the thread has ended is nothing mounted there any more.
  ~Stage();

  // Path under the stage of a read-only view of `source`, a file or a folder. NOT_FOUND if there is none. A source that
  // was replaced since gets a new view.
  StatusOr<std::string> Add(const std::string& source);

 private:
  explicit Stage(std::string folder) : folder_(std::move(folder)) {}
  std::string folder_;
  base::UniqueFd lock_;  // held while the folder is in use: others may then not take it for a left-over
  std::map<std::string, std::string> staged_;  // "<device>:<inode>:<real path>" -> path
};

}  // namespace solstice::sandbox
