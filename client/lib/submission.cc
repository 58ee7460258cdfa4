#include "client/lib/submission.h"

#include <sys/stat.h>

#include <charconv>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"

namespace solstice::client {
namespace {

// A solution.json holds escaped text, so it may be larger than its sources.
constexpr int64_t kMaxSolutionJsonBytes = 8 << 20;

bool EndsWith(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

StatusOr<v1::Solution> ReadSolution(const std::string& path) {
  const std::string name = path.substr(path.rfind('/') + 1);
  if (EndsWith(path, ".json")) {
    SOLSTICE_ASSIGN_OR_RETURN(std::string text, base::ReadFile(path, kMaxSolutionJsonBytes));
    return catalog::ParseSolution(text, path);
  }
  if (!EndsWith(path, ".cu")) {
    return base::InvalidArgument(base::StrCat(path, ": neither a .cu file nor a solution .json"),
                                 "give a CUDA source file or a solution.json (docs/formats/solution.md)");
  }
  auto text = base::ReadFile(path, catalog::kMaxSourceBytes);
  if (absl::IsResourceExhausted(text.status())) {
    return base::InvalidArgument(base::MessageOf(text.status()), "shorten the source; 1 MiB is the most");
  }
  if (!text.ok()) return text.status();
  v1::Solution solution;
  solution.set_name(name.substr(0, name.size() - 3));
  auto* source = solution.add_sources();
  source->set_path(name);
  source->set_content(*text);
  return solution;
}

Status SetDefinition(const std::string& definition, const std::string& reference_kernels, v1::Solution* solution,
                     v1::DefinitionFiles* files, bool* has_files) {
  *has_files = false;
  if (definition.empty()) return absl::OkStatus();
  struct stat info;
  const bool is_folder = ::stat(definition.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  if (!is_folder) {
    if (definition.find('/') != std::string::npos) {
      return base::NotFound(base::StrCat("definition folder ", definition, ": no such folder"));
    }
    solution->set_definition(definition);
    return absl::OkStatus();
  }
  SOLSTICE_ASSIGN_OR_RETURN(*files, catalog::ReadFolder(definition, reference_kernels));
  *has_files = true;
  return absl::OkStatus();
}

Status SetDevice(const std::string& device, v1::EvaluationOptions* options) {
  if (device.empty()) return absl::OkStatus();
  if (device == "emulator") {
    options->set_device_kind(v1::EMULATOR);
    return absl::OkStatus();
  }
  if (device.rfind("cuda", 0) == 0) {
    options->set_device_kind(v1::CUDA);
    if (device.size() == 4) return absl::OkStatus();
    int ordinal = -1;
    auto result = std::from_chars(device.data() + 5, device.data() + device.size(), ordinal);
    if (device[4] == ':' && device.size() > 5 && result.ec == std::errc() &&
        result.ptr == device.data() + device.size() && ordinal >= 0) {
      options->set_device_ordinal(ordinal);
      options->set_has_device_ordinal(true);
      return absl::OkStatus();
    }
  }
  return base::InvalidArgument(base::StrCat("--device ", base::Quote(device), ": unknown"),
                               "use emulator, cuda or cuda:N");
}

}  // namespace solstice::client
