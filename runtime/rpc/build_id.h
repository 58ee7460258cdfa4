// What identifies a build: a client compares its own with a private server's, and results record the judge's.
#pragma once

#include <string>

#include "runtime/base/status.h"

namespace solstice::rpc {

// The linker's build id (NT_GNU_BUILD_ID) of an ELF program in hex; where it has none, the start of the SHA-256 of the
// file. NOT_FOUND, INVALID_ARGUMENT (no 64-bit little-endian ELF file).
StatusOr<std::string> BuildIdOf(const std::string& program);
// 20 hex digits over `solsticed` and `solstice-worker` in `directory`, what stands there of them.
StatusOr<std::string> InstallationBuildId(const std::string& directory);

}  // namespace solstice::rpc
