// The trusted kernels' text, as a program to compile.
#include "runtime/bulk/bulk.h"
#include "runtime/bulk/kernels/names.h"

namespace solstice::bulk {
namespace {

struct EmbeddedFile {
  const char* path;
  const char* content;
};

// The translation unit first, then what it includes.
constexpr EmbeddedFile kFiles[] = {
#include "kernel_text.inc"
};

}  // namespace

v1::internal::ProgramSource KernelSource(const std::string& arch) {
  v1::internal::ProgramSource source;
  for (const EmbeddedFile& file : kFiles) {
    v1::SourceFile* added = source.add_sources();
    added->set_path(file.path);
    added->set_content(file.content);
  }
  source.set_main_source(0);
  source.add_options("-std=c++20");
  source.add_options("-fmad=false");  // the host fuses nothing either
  for (const char* entry : kEntries) source.add_name_expressions(entry);
  source.set_arch(arch);
  return source;
}

}  // namespace solstice::bulk
