// Starting one child process with everything set before exec. Used by the spawner's thread only.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "runtime/sandbox/spawner.h"

namespace solstice::sandbox {

struct ChildSpec {
  std::vector<std::string> argv;         // argv[0] is the absolute path that is executed
  std::vector<std::string> environment;  // "NAME=value"
  int error_fd = -1;                     // becomes 2
  int channel_fd = -1;                   // becomes 3
  int filter_fd = -1;                    // becomes 4, if there is one
  ProcessLimits limits;
  bool drop_privileges = false;  // to `id`, user and group alike, without further groups
  uid_t id = 0;
};

struct Child {
  pid_t pid = -1;
  base::UniqueFd pidfd;
};

// The child dies with the calling thread, leads its own session, has no environment but the given one and can gain no
// privileges.
// FAILED_PRECONDITION names the step that failed.
StatusOr<Child> StartChild(const ChildSpec& spec);

}  // namespace solstice::sandbox
