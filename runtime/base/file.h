// Files with limits, and anonymous memory files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::base {

// The whole of a regular file. RESOURCE_EXHAUSTED over `limit_bytes`; NOT_FOUND; FAILED_PRECONDITION for anything but a
// regular file.
StatusOr<std::string> ReadFile(const std::string& path, int64_t limit_bytes);
// The same below `directory_fd`, refusing links and anything that leaves it (openat2 RESOLVE_BENEATH | NO_SYMLINKS).
StatusOr<std::string> ReadFileBeneath(int directory_fd, const std::string& relative_path, int64_t limit_bytes);
// Writes to a temporary name beside it, syncs, renames.
Status WriteFileAtomically(const std::string& path, std::string_view content);

// A memory file, close-on-exec, that holds `content` and is sealed against any change.
StatusOr<UniqueFd> SealedMemfd(const char* name, std::string_view content);
// A memory file of `bytes` zeros, close-on-exec, sealed against growing and shrinking.
StatusOr<UniqueFd> SizedMemfd(const char* name, int64_t bytes);
// The content of a memory file from another process: size-checked, copied.
StatusOr<std::string> ReadMemfd(int fd, int64_t limit_bytes);

// Directory of the running program, without trailing slash.
StatusOr<std::string> ProgramDirectory();

}  // namespace solstice::base
