#include "runtime/compile/nvjitlink/nvjitlink_linker.h"

#define NVJITLINK_NO_INLINE
#include <nvJitLink.h>

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/compile/library.h"

namespace solstice::compile {
namespace {

using base::StrCat;

// The library exports each function under a name that ends in its own version.
struct Api {
  nvJitLinkResult (*create)(nvJitLinkHandle*, uint32_t, const char* const*);
  nvJitLinkResult (*destroy)(nvJitLinkHandle*);
  nvJitLinkResult (*add)(nvJitLinkHandle, nvJitLinkInputType, const void*, size_t, const char*);
  nvJitLinkResult (*complete)(nvJitLinkHandle);
  nvJitLinkResult (*cubin_size)(nvJitLinkHandle, size_t*);
  nvJitLinkResult (*cubin)(nvJitLinkHandle, void*);
  nvJitLinkResult (*ptx_size)(nvJitLinkHandle, size_t*);
  nvJitLinkResult (*ptx)(nvJitLinkHandle, char*);
  nvJitLinkResult (*error_size)(nvJitLinkHandle, size_t*);
  nvJitLinkResult (*error)(nvJitLinkHandle, char*);
  nvJitLinkResult (*info_size)(nvJitLinkHandle, size_t*);
  nvJitLinkResult (*info)(nvJitLinkHandle, char*);
};

class NvJitLinkLinker : public Linker {
 public:
  NvJitLinkLinker(const Api& api, std::string version) : api_(api), version_(std::move(version)) {}
  std::string version() const override { return version_; }
  StatusOr<Output> Link(const std::string& input, bool input_is_ptx, const std::string& name,
                        const std::vector<std::string>& options) override;

 private:
  using SizeFunction = nvJitLinkResult (*)(nvJitLinkHandle, size_t*);
  using TextFunction = nvJitLinkResult (*)(nvJitLinkHandle, char*);

  std::string Text(nvJitLinkHandle handle, SizeFunction size_of, TextFunction text_of) const;

  Api api_;
  std::string version_;
};

std::string NvJitLinkLinker::Text(nvJitLinkHandle handle, SizeFunction size_of, TextFunction text_of) const {
  size_t size = 0;
  if (size_of(handle, &size) != NVJITLINK_SUCCESS || size == 0) return "";
  std::string text(size + 1, '\0');  // the size has been seen without the terminator
  if (text_of(handle, text.data()) != NVJITLINK_SUCCESS) return "";
  text.resize(std::min(text.find('\0'), text.size()));
  if (!text.empty() && text.back() != '\n') text += '\n';
  return text;
}

StatusOr<Linker::Output> NvJitLinkLinker::Link(const std::string& input, bool input_is_ptx, const std::string& name,
                                               const std::vector<std::string>& options) {
  std::vector<const char*> list;
  for (const std::string& option : options) list.push_back(option.c_str());
  nvJitLinkHandle handle = nullptr;
  nvJitLinkResult created = api_.create(&handle, static_cast<uint32_t>(list.size()), list.data());
  if (created != NVJITLINK_SUCCESS) {
    return base::Internal(
        StrCat("nvJitLink: create: code ", static_cast<int>(created), " for options ", base::Join(options, " ")));
  }
  struct Destroyer {
    const Api& api;
    nvJitLinkHandle handle;
    ~Destroyer() { api.destroy(&handle); }
  } destroyer{api_, handle};

  Output output;
  // Complete returns success even after a failed add.
  nvJitLinkResult added = api_.add(handle, input_is_ptx ? NVJITLINK_INPUT_PTX : NVJITLINK_INPUT_LTOIR, input.data(),
                                   input.size(), name.c_str());
  nvJitLinkResult completed = added == NVJITLINK_SUCCESS ? api_.complete(handle) : added;
  output.log = Text(handle, api_.error_size, api_.error) + Text(handle, api_.info_size, api_.info);
  if (completed != NVJITLINK_SUCCESS) {
    bool named = output.log.find("error") != std::string::npos || output.log.find("fatal") != std::string::npos;
    output.exhausted = !named;
    if (output.log.empty()) output.log = StrCat("nvJitLink: code ", static_cast<int>(completed), "\n");
    return output;
  }
  bool to_ptx = std::find(options.begin(), options.end(), "-ptx") != options.end();
  size_t size = 0;
  nvJitLinkResult sized = to_ptx ? api_.ptx_size(handle, &size) : api_.cubin_size(handle, &size);
  if (sized != NVJITLINK_SUCCESS)
    return base::Internal(StrCat("nvJitLink: image size: code ", static_cast<int>(sized)));
  output.image.resize(size);
  nvJitLinkResult fetched = to_ptx ? api_.ptx(handle, output.image.data()) : api_.cubin(handle, output.image.data());
  if (fetched != NVJITLINK_SUCCESS) return base::Internal(StrCat("nvJitLink: image: code ", static_cast<int>(fetched)));
  if (to_ptx) output.image.resize(std::min(output.image.find('\0'), output.image.size()));
  output.ok = true;
  return output;
}

}  // namespace

StatusOr<std::unique_ptr<Linker>> OpenNvJitLink(const std::string& library_path) {
  SOLSTICE_ASSIGN_OR_RETURN(Library library, OpenLibrary(library_path));
  nvJitLinkResult (*version)(unsigned*, unsigned*) = nullptr;
  SOLSTICE_RETURN_IF_ERROR(library.Find("nvJitLinkVersion", &version));
  unsigned major = 0, minor = 0;
  if (version(&major, &minor) != NVJITLINK_SUCCESS)
    return base::FailedPrecondition(StrCat(library_path, ": nvJitLinkVersion failed"));
  std::string end = StrCat("_", major, "_", minor);
  Api api{};
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkCreate" + end, &api.create));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkDestroy" + end, &api.destroy));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkAddData" + end, &api.add));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkComplete" + end, &api.complete));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkGetLinkedCubinSize" + end, &api.cubin_size));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkGetLinkedCubin" + end, &api.cubin));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkGetLinkedPtxSize" + end, &api.ptx_size));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkGetLinkedPtx" + end, &api.ptx));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkGetErrorLogSize" + end, &api.error_size));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkGetErrorLog" + end, &api.error));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkGetInfoLogSize" + end, &api.info_size));
  SOLSTICE_RETURN_IF_ERROR(library.Find("__nvJitLinkGetInfoLog" + end, &api.info));
  return std::unique_ptr<Linker>(
      new NvJitLinkLinker(api, VersionText(static_cast<int>(major), static_cast<int>(minor), library.build_id())));
}

}  // namespace solstice::compile
