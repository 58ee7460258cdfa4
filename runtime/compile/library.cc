#include "runtime/compile/library.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include <cstring>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"

namespace solstice::compile {
namespace {

struct BuildIdSearch {
  ElfW(Addr) base;
  std::string id;
};

int FindBuildId(dl_phdr_info* info, size_t, void* data) {
  auto* search = static_cast<BuildIdSearch*>(data);
  if (info->dlpi_addr != search->base) return 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const char* at = reinterpret_cast<const char*>(info->dlpi_addr + header.p_vaddr);
    const char* end = at + header.p_memsz;
    while (end - at >= static_cast<ptrdiff_t>(sizeof(ElfW(Nhdr)))) {
      ElfW(Nhdr) note;
      std::memcpy(&note, at, sizeof note);
      const char* name = at + sizeof note;
      const char* content = name + ((note.n_namesz + 3) & ~3u);
      if (content > end || end - content < static_cast<ptrdiff_t>(note.n_descsz)) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(name, "GNU", 4) == 0) {
        search->id.assign(content, note.n_descsz);
        return 1;
      }
      at = content + ((note.n_descsz + 3) & ~3u);
    }
  }
  return 1;
}

}  // namespace

StatusOr<void*> Library::Symbol(const std::string& name) const {
  void* symbol = dlsym(handle_, name.c_str());
  if (symbol == nullptr) {
    return base::FailedPrecondition(base::StrCat(path_, ": no symbol ", name),
                                    "install the libraries of CUDA 12.4 or later");
  }
  return symbol;
}

std::string Library::build_id() const {
  link_map* map = nullptr;
  if (dlinfo(handle_, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr) return "";
  BuildIdSearch search{map->l_addr, {}};
  dl_iterate_phdr(FindBuildId, &search);
  return base::Hex(search.id).substr(0, 12);
}

StatusOr<Library> OpenLibrary(const std::string& path) {
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* words = dlerror();
    return base::FailedPrecondition(
        base::StrCat("cannot open ", path, ": ", words == nullptr ? "unknown error" : words),
        "check the toolkit that SOLSTICE_CUDA_HOME names");
  }
  return Library(path, handle);
}

std::string VersionText(int major, int minor, std::string_view build_id) {
  return base::StrCat(major, ".", minor, build_id.empty() ? "" : "+", build_id);
}

}  // namespace solstice::compile
