// Command lines for bubblewrap. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/sandbox/spawner.h"

namespace solstice::sandbox {

// INVALID_ARGUMENT for paths that are not absolute and plain, an empty command, NULs.
Status CheckJailSpec(const JailSpec& spec);

// `sources[i]` stands for spec.mounts[i].source. `filter_fd` < 0: no system call filter.
std::vector<std::string> BubblewrapCommand(const std::string& bwrap, const JailSpec& spec,
                                           const std::vector<std::string>& sources, int filter_fd);

}  // namespace solstice::sandbox
