#include "client/lib/installation.h"

#include <sys/stat.h>

#include <cstdlib>

#include "runtime/base/file.h"

namespace solstice::client {
namespace {
bool IsFolder(const std::string& path) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
}
}  // namespace

std::string FindShared(const std::string& name) {
  const char* home = std::getenv("SOLSTICE_HOME");
  if (home != nullptr && IsFolder(std::string(home) + "/" + name)) return std::string(home) + "/" + name;
  auto program = base::ProgramDirectory();
  if (!program.ok()) return {};
  std::string bundled = program->substr(0, program->rfind('/')) + "/share/solstice/" + name;
  if (IsFolder(bundled)) return bundled;
  for (std::string folder = *program; !folder.empty(); folder = folder.substr(0, folder.rfind('/'))) {
    if (IsFolder(folder + "/" + name)) return folder + "/" + name;
  }
  return {};
}

std::string ReferenceKernels() { return FindShared("reference_kernels"); }

}  // namespace solstice::client
