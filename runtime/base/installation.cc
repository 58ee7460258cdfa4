#include "runtime/base/installation.h"

#include <cstdlib>
#include <filesystem>
#include <vector>

namespace solstice::base {

std::string FindShared(const std::string& program_directory, const std::string& name) {
  std::vector<std::filesystem::path> places;
  if (const char* home = std::getenv("SOLSTICE_HOME")) places.emplace_back(home);
  std::filesystem::path directory(program_directory);
  places.push_back(directory.parent_path() / "share" / "solstice");
  for (int up = 0; up < 5 && directory.has_relative_path(); ++up) {
    places.push_back(directory);
    directory = directory.parent_path();
  }
  for (const std::filesystem::path& place : places) {
    std::error_code error;
    if (std::filesystem::is_directory(place / name, error)) return (place / name).string();
  }
  return "";
}

}  // namespace solstice::base
