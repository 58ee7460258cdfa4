// Which bubblewrap to use, and its command lines. Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "runtime/sandbox/spawner.h"

namespace solstice::sandbox {

struct Bubblewrap {
  std::string program;    // absolute, links resolved
  std::string libraries;  // folder of the libraries that came with it; "": the system's serve it
};

// Path, links resolved, of `name` in $PATH, /usr/bin or /bin, or of `name` itself if it has a slash; "" if there is
// none.
std::string FindProgram(const std::string& name);

// What there is, to be tried in this order. A `name` with a slash is that program alone; else a bundle's own,
// <program_folder>/../libexec/solstice/<name>, comes before the system's (FindProgram). A folder "bwrap-libraries"
// beside a program holds its libraries.
std::vector<Bubblewrap> FindBubblewraps(const std::string& name, const std::string& program_folder);

// INVALID_ARGUMENT for paths that are not absolute and plain, an empty command, NULs.
Status CheckJailSpec(const JailSpec& spec);

// `sources[i]` stands for spec.mounts[i].source. `filter_fd` < 0: no system call filter.
std::vector<std::string> BubblewrapCommand(const std::string& bwrap, const JailSpec& spec,
                                           const std::vector<std::string>& sources, int filter_fd);

}  // namespace solstice::sandbox
