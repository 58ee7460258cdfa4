// Compile options: the allowlist, and what each means for the front end, the LTO link and ptxas. Thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace solstice::compile {

// Options after CheckOptions, sorted by who takes them.
struct OptionSet {
  std::vector<std::string> frontend;  // NVRTC: standard, math switches, -restrict, -D
  std::vector<std::string> lto;       // nvJitLink -lto -ptx: -fma= -ftz= -prec-div= -prec-sqrt=
  std::vector<std::string> ptxas;     // nvJitLink PTX to cubin: -maxrregcount=
  std::vector<std::string> macros;    // names given by -D
};
// `options` must have passed CheckOptions. An explicit switch wins over --use_fast_math wherever it stands, as in
// NVRTC.
OptionSet SortOptions(const std::vector<std::string>& options);

// What the front end is called with: what is always on, `given`, and where headers lie.
std::vector<std::string> FrontendOptions(std::string_view arch, const std::vector<std::string>& given,
                                         const std::vector<std::string>& include_paths);
// Included before every translation unit: a bare uint32_t is what everyone writes first.
inline constexpr std::string_view kPreInclude = "cstdint";

// The macro name of "NAME" or "NAME=value".
std::string_view MacroName(std::string_view define);

}  // namespace solstice::compile
