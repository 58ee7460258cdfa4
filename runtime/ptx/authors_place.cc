#include "runtime/ptx/module.h"

namespace solstice::ptx {
namespace {

bool IsLibraryFile(const Module& module, int file) {
  auto path = module.files.find(file);
  return path == module.files.end() || path->second.find("/include/") != std::string::npos;
}

}  // namespace

const Location* AuthorsPlace(const Module& module, const Instruction& instruction) {
  if (instruction.location < 0) return nullptr;
  for (int at = instruction.location; at >= 0; at = module.locations[at].inlined_at) {
    const Location& location = module.locations[at];
    if (location.line > 0 && !IsLibraryFile(module, location.file)) return &location;
  }
  return &module.locations[instruction.location];
}

}  // namespace solstice::ptx
