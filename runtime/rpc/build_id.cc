#include "runtime/rpc/build_id.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "runtime/base/crypto.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/base/unique_fd.h"

namespace solstice::rpc {
namespace {

constexpr int64_t kMaxProgramBytes = int64_t{1} << 30;
constexpr uint64_t kMaxNoteBytes = 64 << 10;

bool ReadAt(int fd, uint64_t offset, void* into, size_t bytes) {
  return ::pread(fd, into, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
}

// The build id among the notes of one segment; empty if it is not there.
std::string FindInNotes(const std::string& notes) {
  size_t at = 0;
  while (notes.size() - at >= sizeof(Elf64_Nhdr)) {
    Elf64_Nhdr header;
    std::memcpy(&header, notes.data() + at, sizeof header);
    at += sizeof header;
    const uint64_t name = (uint64_t{header.n_namesz} + 3) / 4 * 4, content = (uint64_t{header.n_descsz} + 3) / 4 * 4;
    if (name + content > notes.size() - at) return "";
    if (header.n_type == NT_GNU_BUILD_ID && header.n_namesz == 4 &&
        notes.compare(at, 4, std::string("GNU\0", 4)) == 0) {
      return base::Hex(std::string_view(notes).substr(at + name, header.n_descsz));
    }
    at += name + content;
  }
  return "";
}

}  // namespace

StatusOr<std::string> BuildIdOf(const std::string& program) {
  base::UniqueFd fd(::open(program.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return base::FromErrno(errno, program);
  Elf64_Ehdr header;
  if (!ReadAt(fd.get(), 0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 ||
      header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_phentsize != sizeof(Elf64_Phdr)) {
    return base::InvalidArgument(base::StrCat(program, ": not a 64-bit ELF program"));
  }
  std::vector<Elf64_Phdr> segments(header.e_phnum);
  if (!ReadAt(fd.get(), header.e_phoff, segments.data(), segments.size() * sizeof(Elf64_Phdr))) {
    return base::InvalidArgument(base::StrCat(program, ": damaged ELF program"));
  }
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE || segment.p_filesz > kMaxNoteBytes) continue;
    std::string notes(segment.p_filesz, '\0');
    if (!ReadAt(fd.get(), segment.p_offset, notes.data(), notes.size())) continue;
    std::string id = FindInNotes(notes);
    if (!id.empty()) return id;
  }
  SOLSTICE_ASSIGN_OR_RETURN(std::string content, base::ReadFile(program, kMaxProgramBytes));
  return base::Hex(base::Sha256(content)).substr(0, 40);
}

StatusOr<std::string> InstallationBuildId(const std::string& directory) {
  std::string text;
  for (const char* name : {"solsticed", "solstice-worker"}) {
    StatusOr<std::string> id = BuildIdOf(base::StrCat(directory, "/", name));
    if (!id.ok() && id.status().code() != absl::StatusCode::kNotFound) return id.status();
    text = base::StrCat(text, name, "=", id.ok() ? *id : "", "\n");
  }
  return base::Hex(base::Sha256(text)).substr(0, 20);
}

}  // namespace solstice::rpc
