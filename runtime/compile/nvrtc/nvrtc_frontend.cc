#include "runtime/compile/nvrtc/nvrtc_frontend.h"

#include <dlfcn.h>
#include <nvrtc.h>

#include <filesystem>

#include "runtime/base/strings.h"
#include "runtime/compile/library.h"

namespace solstice::compile {
namespace {

using base::StrCat;

struct Api {
  decltype(&::nvrtcVersion) version;
  decltype(&::nvrtcGetErrorString) error_string;
  // The header has a C++ overload of nothing below, so decltype is exact.
  decltype(&::nvrtcCreateProgram) create;
  decltype(&::nvrtcDestroyProgram) destroy;
  decltype(&::nvrtcCompileProgram) compile;
  decltype(&::nvrtcAddNameExpression) add_name;
  decltype(&::nvrtcGetLoweredName) lowered_name;
  decltype(&::nvrtcGetProgramLogSize) log_size;
  decltype(&::nvrtcGetProgramLog) log;
  decltype(&::nvrtcGetLTOIRSize) lto_size;
  decltype(&::nvrtcGetLTOIR) lto;
  decltype(&::nvrtcGetPCHCreateStatus) pch_status;  // nullptr before CUDA 12.8
};

class NvrtcFrontend : public Frontend {
 public:
  NvrtcFrontend(const Api& api, std::string version) : api_(api), version_(std::move(version)) {}
  std::string version() const override { return version_; }
  StatusOr<Output> Compile(const Input& input) override;

 private:
  Status Failed(std::string_view what, nvrtcResult result) const {
    return base::Internal(StrCat("NVRTC: ", what, ": ", api_.error_string(result)));
  }
  StatusOr<std::string> Log(nvrtcProgram program) const;
  Status Collect(nvrtcProgram program, const Input& input, Output* output) const;

  Api api_;
  std::string version_;
};

StatusOr<std::string> NvrtcFrontend::Log(nvrtcProgram program) const {
  size_t size = 0;
  nvrtcResult result = api_.log_size(program, &size);
  if (result != NVRTC_SUCCESS) return Failed("log size", result);
  std::string log(size, '\0');
  if (size > 0) result = api_.log(program, log.data());
  if (result != NVRTC_SUCCESS) return Failed("log", result);
  while (!log.empty() && log.back() == '\0') log.pop_back();
  return log;
}

Status NvrtcFrontend::Collect(nvrtcProgram program, const Input& input, Output* output) const {
  size_t size = 0;
  nvrtcResult result = api_.lto_size(program, &size);
  if (result != NVRTC_SUCCESS) return Failed("LTO-IR size", result);
  output->lto_ir.resize(size);
  result = api_.lto(program, output->lto_ir.data());
  if (result != NVRTC_SUCCESS) return Failed("LTO-IR", result);
  for (const std::string& expression : input.name_expressions) {
    const char* lowered = nullptr;
    result = api_.lowered_name(program, expression.c_str(), &lowered);
    output->lowered_names.emplace_back(result == NVRTC_SUCCESS && lowered != nullptr ? lowered : "");
  }
  return absl::OkStatus();
}

StatusOr<Frontend::Output> NvrtcFrontend::Compile(const Input& input) {
  std::vector<const char*> names, contents, options;
  for (const auto& header : input.headers) {
    names.push_back(header.first.c_str());
    contents.push_back(header.second.c_str());
  }
  for (const std::string& option : input.options) options.push_back(option.c_str());

  Output output;
  nvrtcProgram program = nullptr;
  nvrtcResult result = api_.create(&program, input.text.c_str(), input.name.c_str(), static_cast<int>(names.size()),
                                   contents.data(), names.data());
  if (result == NVRTC_ERROR_OUT_OF_MEMORY) {
    output.exhausted = true;
    output.log = api_.error_string(result);
    return output;
  }
  if (result != NVRTC_SUCCESS) return Failed("create program", result);
  struct Destroyer {
    const Api& api;
    nvrtcProgram program;
    ~Destroyer() { api.destroy(&program); }
  } destroyer{api_, program};

  for (const std::string& expression : input.name_expressions) {
    result = api_.add_name(program, expression.c_str());
    if (result != NVRTC_SUCCESS) return Failed(StrCat("name expression ", base::Quote(expression)), result);
  }
  result = api_.compile(program, static_cast<int>(options.size()), options.data());
  SOLSTICE_ASSIGN_OR_RETURN(output.log, Log(program));
  switch (result) {
    case NVRTC_SUCCESS:
      output.ok = true;
      output.precompiled = api_.pch_status != nullptr && api_.pch_status(program) == NVRTC_SUCCESS;
      SOLSTICE_RETURN_IF_ERROR(Collect(program, input, &output));
      return output;
    case NVRTC_ERROR_COMPILATION:
      return output;
    case NVRTC_ERROR_OUT_OF_MEMORY:
    case NVRTC_ERROR_INTERNAL_ERROR:
      output.exhausted = true;
      if (output.log.empty()) output.log = api_.error_string(result);
      return output;
    default:
      // Options are ours, and builtins that cannot be opened are a broken installation.
      return Failed(base::Trim(output.log), result);
  }
}

}  // namespace

StatusOr<std::unique_ptr<Frontend>> OpenNvrtc(const std::string& library_path) {
  // NVRTC opens its builtins by name at the first compile; opened beside it beforehand, the loader finds those.
  std::error_code error;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(library_path).parent_path(), error)) {
    std::string name = entry.path().filename().string();
    if (name.rfind("libnvrtc-builtins.so.", 0) == 0)
      SOLSTICE_RETURN_IF_ERROR(OpenLibrary(entry.path().string()).status());
  }
  SOLSTICE_ASSIGN_OR_RETURN(Library library, OpenLibrary(library_path));
  Api api{};
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcVersion", &api.version));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcGetErrorString", &api.error_string));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcCreateProgram", &api.create));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcDestroyProgram", &api.destroy));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcCompileProgram", &api.compile));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcAddNameExpression", &api.add_name));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcGetLoweredName", &api.lowered_name));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcGetProgramLogSize", &api.log_size));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcGetProgramLog", &api.log));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcGetLTOIRSize", &api.lto_size));
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvrtcGetLTOIR", &api.lto));
  api.pch_status = nullptr;
  library.Find("nvrtcGetPCHCreateStatus", &api.pch_status).IgnoreError();
  int major = 0, minor = 0;
  nvrtcResult result = api.version(&major, &minor);
  if (result != NVRTC_SUCCESS)
    return base::FailedPrecondition(StrCat(library_path, ": nvrtcVersion: ", api.error_string(result)));
  return std::unique_ptr<Frontend>(new NvrtcFrontend(api, VersionText(major, minor, library.build_id())));
}

}  // namespace solstice::compile
