// Where the CUDA toolkit lies, and what its headers hash to.
#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "runtime/base/crypto.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"

namespace solstice::compile {
namespace {

namespace fs = std::filesystem;
using base::StrCat;

constexpr int64_t kMaxHeaderBytes = 64 << 20;
constexpr int kMaxFiles = 200000;

// The newest "<stem>.so.<number>" or "<stem>.so.<number>.<number>" of a folder; "" if there is none.
std::string NewestLibrary(const std::string& folder, std::string_view stem) {
  std::error_code error;
  std::string best;
  std::pair<int, int> best_version{-1, -1};
  for (const fs::directory_entry& entry : fs::directory_iterator(folder, error)) {
    std::string name = entry.path().filename().string();
    std::string prefix = StrCat(stem, ".so.");
    if (name.rfind(prefix, 0) != 0) continue;
    std::vector<std::string_view> parts = base::Split(std::string_view(name).substr(prefix.size()), '.');
    int numbers[2] = {0, 0};
    bool plain = parts.size() <= 2;
    for (size_t i = 0; plain && i < parts.size(); ++i) {
      auto result = std::from_chars(parts[i].data(), parts[i].data() + parts[i].size(), numbers[i]);
      plain = !parts[i].empty() && result.ec == std::errc() && result.ptr == parts[i].data() + parts[i].size();
    }
    std::pair<int, int> version{numbers[0], numbers[1]};
    if (plain && version > best_version) {
      best_version = version;
      best = entry.path().string();
    }
  }
  return best;
}

// Fills `toolkit`; else says what is missing.
std::string Inspect(const std::string& root, Toolkit* toolkit) {
  std::error_code error;
  if (!fs::is_directory(root, error)) return "no such folder";
  toolkit->root = root;
  toolkit->include = root + "/include";
  for (const char* header : {"cuda.h", "cuda_fp16.h", "nv/target", "cccl/cuda/std/cstdint"}) {
    bool in_cccl = fs::exists(toolkit->include + "/cccl/" + header, error);
    if (!fs::exists(toolkit->include + "/" + header, error) && !in_cccl) return StrCat("no include/", header);
  }
  for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib"}) {
    std::string path = StrCat(root, "/", folder);
    toolkit->nvrtc = NewestLibrary(path, "libnvrtc");
    toolkit->nvrtc_builtins = NewestLibrary(path, "libnvrtc-builtins");
    toolkit->nvjitlink = NewestLibrary(path, "libnvJitLink");
    if (!toolkit->nvrtc.empty() && !toolkit->nvrtc_builtins.empty() && !toolkit->nvjitlink.empty()) return "";
  }
  return "no libnvrtc, libnvrtc-builtins and libnvJitLink together in lib64 or lib";
}

struct HeaderFile {
  std::string relative, path;
};

Status ListHeaders(const std::string& folder, std::vector<HeaderFile>* files) {
  std::error_code error;
  fs::recursive_directory_iterator at(folder, fs::directory_options::follow_directory_symlink, error), end;
  if (error) return base::NotFound(StrCat("headers: ", folder, ": ", error.message()));
  for (; at != end; at.increment(error)) {
    if (error) return base::Internal(StrCat("headers: ", folder, ": ", error.message()));
    if (at.depth() > 32)
      return base::FailedPrecondition(StrCat("headers: ", folder, ": folders lie too deep (a link to itself?)"));
    if (!at->is_regular_file(error)) continue;
    if (files->size() >= kMaxFiles)
      return base::ResourceExhausted(StrCat("headers: ", folder, ": more than ", kMaxFiles, " files"));
    files->push_back({fs::path(at->path()).lexically_relative(folder).string(), at->path().string()});
  }
  if (error) return base::Internal(StrCat("headers: ", folder, ": ", error.message()));
  return absl::OkStatus();
}

}  // namespace

StatusOr<Toolkit> FindToolkit() {
  std::vector<std::string> roots;
  const char* home = std::getenv("SOLSTICE_CUDA_HOME");
  if (home != nullptr && *home != 0) {
    // Named explicitly: a wrong one is an error, not a reason to look elsewhere.
    roots = {home};
  } else {
    StatusOr<std::string> program = base::ProgramDirectory();
    if (program.ok()) {
      // Only from <source>/build/<preset>/bin: a bundle's grandparent may be a folder that anyone writes to.
      fs::path build = fs::path(*program).parent_path().parent_path();
      if (build.filename() == "build") roots.push_back((build.parent_path() / ".toolkit").string());
    }
    for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
      const char* value = std::getenv(name);
      if (value != nullptr && *value != 0) roots.push_back(value);
    }
    roots.push_back("/usr/local/cuda");
  }
  std::string tried;
  for (const std::string& named : roots) {
    // Jails take only plain absolute paths.
    std::error_code error;
    std::string root = std::filesystem::canonical(named, error).string();
    if (error) root = named;
    Toolkit toolkit;
    std::string missing = Inspect(root, &toolkit);
    if (missing.empty()) return toolkit;
    tried += StrCat(tried.empty() ? "" : "; ", root, ": ", missing);
  }
  return base::NotFound(
      StrCat("no CUDA toolkit (", tried, ")"),
      "install CUDA 13 or its NVRTC, nvJitLink and header packages, and name the folder in SOLSTICE_CUDA_HOME");
}

StatusOr<std::string> HeaderTreeDigest(const std::vector<std::string>& folders) {
  std::string text;
  std::vector<std::string> done;
  for (const std::string& folder : folders) {
    bool covered = std::any_of(done.begin(), done.end(),
                               [&](const auto& d) { return folder.rfind(d + "/", 0) == 0 || folder == d; });
    text += covered ? "within\n" : "folder\n";
    if (covered) continue;
    done.push_back(folder);
    std::vector<HeaderFile> files;
    SOLSTICE_RETURN_IF_ERROR(ListHeaders(folder, &files));
    std::sort(files.begin(), files.end(), [](const auto& a, const auto& b) { return a.relative < b.relative; });
    for (const HeaderFile& file : files) {
      SOLSTICE_ASSIGN_OR_RETURN(std::string content, base::ReadFile(file.path, kMaxHeaderBytes));
      text += StrCat(file.relative.size(), ":", file.relative, " ", content.size(), " ",
                     base::Hex(base::Sha256(content)), "\n");
    }
  }
  return base::Digest("solstice.headers", text);
}

}  // namespace solstice::compile
