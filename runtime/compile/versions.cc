#include "runtime/compile/versions.h"

#include <charconv>
#include <filesystem>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"

namespace solstice::compile {
namespace {

using base::StrCat;

constexpr int64_t kMaxHeaderBytes = 8 << 20;

// "13.0" of "13.0.88" or "13.0+65be".
std::string_view Release(std::string_view version) {
  size_t dot = version.find('.');
  if (dot == std::string_view::npos) return version;
  size_t end = version.find_first_not_of("0123456789", dot + 1);
  return version.substr(0, end);
}

}  // namespace

StatusOr<std::string> HeaderVersion(const std::vector<std::string>& include_paths) {
  for (const std::string& path : include_paths) {
    std::string file = path + "/cuda.h";
    std::error_code error;
    if (!std::filesystem::exists(file, error)) continue;
    SOLSTICE_ASSIGN_OR_RETURN(std::string text, base::ReadFile(file, kMaxHeaderBytes));
    constexpr std::string_view kDefine = "#define CUDA_VERSION ";
    size_t at = text.find(kDefine);
    int number = 0;
    if (at != std::string::npos) std::from_chars(text.data() + at + kDefine.size(), text.data() + text.size(), number);
    if (number <= 0) return base::NotFound(StrCat(file, ": defines no CUDA_VERSION"));
    return StrCat(number / 1000, ".", number % 1000 / 10);
  }
  return base::NotFound("no cuda.h on the include path", "check the toolkit that SOLSTICE_CUDA_HOME names");
}

Status CheckVersions(std::string_view nvrtc, std::string_view nvjitlink,
                     const std::vector<std::string>& include_paths) {
  StatusOr<std::string> headers = HeaderVersion(include_paths);
  std::string_view shown = headers.ok() ? std::string_view(*headers) : "not found";
  if (headers.ok() && Release(nvrtc) == Release(nvjitlink) && Release(nvrtc) == *headers) return absl::OkStatus();
  return base::FailedPrecondition(
      StrCat("the CUDA toolkit is mixed: NVRTC ", nvrtc, ", nvJitLink ", nvjitlink, ", headers ", shown),
      "install NVRTC, nvJitLink and headers of one CUDA release");
}

}  // namespace solstice::compile
