// NVRTC, nvJitLink and the headers must be of one release. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace solstice::compile {

// CUDA_VERSION of the first cuda.h on the include path, as "13.0". NOT_FOUND: there is none.
StatusOr<std::string> HeaderVersion(const std::vector<std::string>& include_paths);
// FAILED_PRECONDITION naming all three unless major and minor agree.
Status CheckVersions(std::string_view nvrtc, std::string_view nvjitlink, const std::vector<std::string>& include_paths);

}  // namespace solstice::compile
