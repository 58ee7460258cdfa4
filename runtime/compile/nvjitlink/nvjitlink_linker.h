// nvJitLink behind compile::Linker, opened with dlopen.
#pragma once

#include <memory>
#include <string>

#include "runtime/compile/compile.h"

namespace solstice::compile {

// FAILED_PRECONDITION with the loader's words if it cannot be opened.
StatusOr<std::unique_ptr<Linker>> OpenNvJitLink(const std::string& library_path);

}  // namespace solstice::compile
