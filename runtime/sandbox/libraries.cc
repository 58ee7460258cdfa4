// SharedLibraries: reads the dynamic sections of ELF files as the dynamic loader would, without running it.
#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/base/unique_fd.h"
#include "runtime/sandbox/spawner.h"

namespace solstice::sandbox {
namespace {

using base::StrCat;

constexpr uint64_t kMaxDynamicEntries = 4096;
constexpr size_t kMaxLibraries = 256;
// Where a loader without a cache looks, which is what it has in a jail.
constexpr const char* kDefaultFolders[] = {"/lib/x86_64-linux-gnu",
                                           "/usr/lib/x86_64-linux-gnu",
                                           "/lib/aarch64-linux-gnu",
                                           "/usr/lib/aarch64-linux-gnu",
                                           "/lib64",
                                           "/usr/lib64",
                                           "/lib",
                                           "/usr/lib"};

struct DynamicInfo {
  std::string interpreter;
  std::vector<std::string> needed;
  std::vector<std::string> run_path;
};

// Reads pieces: a compiler library has a hundred megabytes, its dynamic section a few hundred bytes.
class ElfFile {
 public:
  static StatusOr<ElfFile> Open(const std::string& path) {
    base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat info;
    if (!fd.valid() || ::fstat(fd.get(), &info) != 0) return base::FromErrno(errno, path);
    if (!S_ISREG(info.st_mode)) return base::InvalidArgument(StrCat(path, ": not a regular file"));
    return ElfFile(std::move(fd), static_cast<uint64_t>(info.st_size));
  }
  uint64_t size() const { return size_; }
  template <typename T>
  bool ReadAt(uint64_t offset, T* value) const {
    if (offset > size_ || size_ - offset < sizeof(T)) return false;
    return ::pread(fd_.get(), value, sizeof(T), static_cast<off_t>(offset)) == static_cast<ssize_t>(sizeof(T));
  }
  // The NUL-terminated text at `offset`, "" if there is none of at most 4 KiB.
  std::string TextAt(uint64_t offset) const {
    char text[4096];
    if (offset >= size_) return "";
    ssize_t count = ::pread(fd_.get(), text, sizeof text, static_cast<off_t>(offset));
    const void* end = count > 0 ? std::memchr(text, 0, static_cast<size_t>(count)) : nullptr;
    return end == nullptr ? "" : text;
  }

 private:
  ElfFile(base::UniqueFd fd, uint64_t size) : fd_(std::move(fd)), size_(size) {}
  base::UniqueFd fd_;
  uint64_t size_;
};

StatusOr<DynamicInfo> ReadDynamicInfo(const std::string& path) {
  SOLSTICE_ASSIGN_OR_RETURN(ElfFile file, ElfFile::Open(path));
  Status malformed = base::InvalidArgument(StrCat(path, ": not an ELF file that this machine can load"));
  Elf64_Ehdr header;
  if (!file.ReadAt(0, &header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return malformed;
  }
  DynamicInfo info;
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  for (size_t i = 0; i < segments.size(); ++i) {
    if (!file.ReadAt(header.e_phoff + i * sizeof(Elf64_Phdr), &segments[i])) return malformed;
  }
  auto file_offset = [&](uint64_t address) -> uint64_t {
    for (const Elf64_Phdr& segment : segments) {
      if (segment.p_type == PT_LOAD && address >= segment.p_vaddr && address - segment.p_vaddr < segment.p_filesz) {
        return segment.p_offset + (address - segment.p_vaddr);
      }
    }
    return UINT64_MAX;
  };
  std::vector<Elf64_Dyn> entries;
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type == PT_INTERP) info.interpreter = file.TextAt(segment.p_offset);
    if (segment.p_type != PT_DYNAMIC) continue;
    for (uint64_t at = 0; at + sizeof(Elf64_Dyn) <= segment.p_filesz && entries.size() < kMaxDynamicEntries;
         at += sizeof(Elf64_Dyn)) {
      Elf64_Dyn entry;
      if (!file.ReadAt(segment.p_offset + at, &entry)) return malformed;
      if (entry.d_tag == DT_NULL) break;
      entries.push_back(entry);
    }
  }
  uint64_t strings = UINT64_MAX;
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_tag == DT_STRTAB) strings = file_offset(entry.d_un.d_ptr);
  }
  if (strings >= file.size()) {
    if (entries.empty()) return info;  // static
    return malformed;
  }
  for (const Elf64_Dyn& entry : entries) {
    if (entry.d_un.d_val > file.size()) continue;
    std::string text = file.TextAt(strings + entry.d_un.d_val);
    if (entry.d_tag == DT_NEEDED) info.needed.push_back(text);
    if (entry.d_tag != DT_RUNPATH && entry.d_tag != DT_RPATH) continue;
    for (std::string_view folder : base::Split(text, ':')) info.run_path.emplace_back(folder);
  }
  return info;
}

std::string Expanded(std::string folder, const std::string& library) {
  std::string origin = library.substr(0, library.rfind('/'));
  for (const char* name : {"$ORIGIN", "${ORIGIN}"}) {
    if (size_t at = folder.find(name); at != std::string::npos) folder.replace(at, std::strlen(name), origin);
  }
  return folder;
}

StatusOr<std::string> FindLibrary(const std::string& name, const std::string& needed_by,
                                  const std::vector<std::string>& run_path) {
  if (name.find('/') != std::string::npos) return name;
  std::vector<std::string> folders;
  for (const std::string& folder : run_path) folders.push_back(Expanded(folder, needed_by));
  folders.insert(folders.end(), std::begin(kDefaultFolders), std::end(kDefaultFolders));
  for (const std::string& folder : folders) {
    std::string path = StrCat(folder, "/", name);
    if (!folder.empty() && folder[0] == '/' && ::access(path.c_str(), R_OK) == 0) return path;
  }
  return base::NotFound(StrCat(needed_by, " needs ", name, ", which is in none of the loader's standard folders"),
                        "install the package that brings it, or link the program statically");
}

}  // namespace

StatusOr<std::vector<std::string>> SharedLibraries(const std::string& program) {
  std::vector<std::string> found;
  std::set<std::string> names;
  std::deque<std::string> open = {program};
  while (!open.empty()) {
    std::string path = open.front();
    open.pop_front();
    SOLSTICE_ASSIGN_OR_RETURN(DynamicInfo info, ReadDynamicInfo(path));
    if (!info.interpreter.empty() && path == program) {
      found.push_back(info.interpreter);
      names.insert(info.interpreter.substr(info.interpreter.rfind('/') + 1));
    }
    for (const std::string& name : info.needed) {
      if (!names.insert(name).second) continue;
      if (names.size() > kMaxLibraries) return base::ResourceExhausted(StrCat(program, ": needs too many libraries"));
      SOLSTICE_ASSIGN_OR_RETURN(std::string library, FindLibrary(name, path, info.run_path));
      found.push_back(library);
      open.push_back(library);
    }
  }
  return found;
}

}  // namespace solstice::sandbox
