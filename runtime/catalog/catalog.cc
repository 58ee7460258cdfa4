#include "runtime/catalog/catalog.h"

#include <algorithm>
#include <filesystem>

#include "runtime/base/strings.h"

namespace solstice::catalog {

using base::Quote;
using base::StrCat;

namespace fs = std::filesystem;

namespace {

constexpr int kMaxDepth = 3;

// Folders below `folder` (itself included) that hold a definition.json, in a stable order. Links are not followed.
void FindFolders(const fs::path& folder, int depth, std::vector<fs::path>& found, std::vector<std::string>& problems) {
  std::error_code error;
  if (fs::exists(fs::symlink_status(folder / "definition.json", error))) {
    found.push_back(folder);
    return;
  }
  if (depth == kMaxDepth) return;
  std::vector<fs::path> children;
  fs::directory_iterator entries(folder, error);
  for (; !error && entries != fs::directory_iterator(); entries.increment(error)) {
    std::error_code type_error;
    bool is_folder = entries->symlink_status(type_error).type() == fs::file_type::directory;
    if (is_folder && entries->path().filename().native()[0] != '.') children.push_back(entries->path());
  }
  if (error) problems.push_back(StrCat(folder.string(), ": ", error.message()));
  std::sort(children.begin(), children.end());
  for (const fs::path& child : children) FindFolders(child, depth + 1, found, problems);
}

}  // namespace

StatusOr<std::unique_ptr<Catalog>> Catalog::Load(const std::vector<std::string>& roots,
                                                 const std::string& reference_kernels) {
  auto catalog = std::make_unique<Catalog>();
  std::map<std::string, std::string> folder_of_name;
  for (const std::string& root : roots) {
    std::error_code error;
    if (!fs::is_directory(root, error)) {
      return base::NotFound(StrCat(root, ": no folder of definitions"), "correct definition_roots");
    }
    std::vector<fs::path> folders;
    FindFolders(root, 0, folders, catalog->problems_);
    for (const fs::path& folder : folders) {
      FolderReport report;
      auto bundle = BundleFromFolder(folder.string(), reference_kernels, report);
      if (!bundle.ok()) {
        catalog->problems_.push_back(StrCat(folder.string(), ": ", base::MessageOf(bundle.status())));
        continue;
      }
      for (const std::string& note : report.notes) catalog->notes_.push_back(StrCat(folder.string(), ": ", note));
      if (!report.left_out.empty()) {
        catalog->problems_.push_back(StrCat(folder.string(), ": ", report.left_out.size(),
                                            " workloads left out, the first: ", report.left_out.front()));
      }
      const std::string& name = bundle->definition().name();
      auto [known, added] = folder_of_name.emplace(name, folder.string());
      if (!added) {
        catalog->problems_.push_back(StrCat(folder.string(), ": ", name, " is already defined in ", known->second));
        continue;
      }
      catalog->by_name_.emplace(name, std::make_shared<const v1::DefinitionBundle>(std::move(*bundle)));
    }
  }
  return catalog;
}

StatusOr<std::shared_ptr<const v1::DefinitionBundle>> Catalog::Find(std::string_view name) const {
  std::string_view bare = name.substr(0, name.find('@'));
  auto found = by_name_.find(bare);
  if (found == by_name_.end()) {
    std::vector<std::string> names;
    for (const auto& [known, bundle] : by_name_) names.push_back(known);
    std::string near = base::Nearest(bare, names);
    return base::NotFound(StrCat("no definition ", Quote(bare)),
                          near.empty() ? "list them with: solstice definitions" : StrCat("did you mean ", near, "?"));
  }
  if (bare.size() != name.size() && found->second->version() != name) {
    return base::NotFound(
        StrCat("no version ", Quote(name), " of this definition; the one here is ", found->second->version()),
        StrCat("use ", found->second->version(), ", or the bare name"));
  }
  return found->second;
}

std::vector<std::shared_ptr<const v1::DefinitionBundle>> Catalog::All() const {
  std::vector<std::shared_ptr<const v1::DefinitionBundle>> all;
  for (const auto& [name, bundle] : by_name_) all.push_back(bundle);
  return all;
}

}  // namespace solstice::catalog
