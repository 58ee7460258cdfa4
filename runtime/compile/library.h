// Shared libraries opened at run time, for the backends below. Libraries stay open for the life of the process.
#pragma once

#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace solstice::compile {

class Library {
 public:
  Library(std::string path, void* handle) : path_(std::move(path)), handle_(handle) {}
  // FAILED_PRECONDITION if the library has no such symbol.
  template <typename Function>
  Status Find(const std::string& name, Function* function) const {
    SOLSTICE_ASSIGN_OR_RETURN(void* symbol, Symbol(name));
    *function = reinterpret_cast<Function>(symbol);
    return absl::OkStatus();
  }
  StatusOr<void*> Symbol(const std::string& name) const;
  // First 12 hex digits of the linker's build id, which tells builds of one version apart; "" if there is none.
  std::string build_id() const;

 private:
  std::string path_;
  void* handle_;
};

// RTLD_NOW | RTLD_LOCAL. FAILED_PRECONDITION with the loader's words.
StatusOr<Library> OpenLibrary(const std::string& path);
// "13.0+65be0db342ad"
std::string VersionText(int major, int minor, std::string_view build_id);

}  // namespace solstice::compile
