// Checks that the request alone decides, and the key of a program.
#include <cstring>
#include <set>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"

namespace solstice::compile {
namespace {

using base::InvalidArgument;
using base::Quote;
using base::StrCat;

constexpr size_t kMaxPathBytes = 255;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

Status CheckPath(std::string_view path) {
  constexpr std::string_view kMend =
      "use a relative path with forward slashes, letters, digits and . _ + -, such as \"kernel.cu\" or "
      "\"include/tile.cuh\"";
  auto wrong = [&](std::string_view why) { return InvalidArgument(StrCat("source ", Quote(path), ": ", why), kMend); };
  if (path.empty()) return wrong("the path is empty");
  if (path.size() > kMaxPathBytes) return wrong(StrCat("the path is longer than ", kMaxPathBytes, " bytes"));
  if (path[0] == '/') return wrong("the path is absolute");
  for (char c : path) {
    bool plain =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || strchr("/._+-", c) != nullptr;
    if (!plain || c == 0) return wrong("the path holds a character that is not accepted");
  }
  for (std::string_view part : base::Split(path, '/')) {
    if (part.empty() || part == "." || part == "..") return wrong("the path holds an empty part, \".\" or \"..\"");
  }
  if (path[0] == '-') return wrong("the path begins with '-'");
  return absl::OkStatus();
}

Status CheckText(std::string_view path, std::string_view text) {
  auto wrong = [&](std::string_view why, std::string_view mend) {
    return InvalidArgument(StrCat("source ", Quote(path), ": ", why), mend);
  };
  constexpr std::string_view kSave = "save the file as UTF-8";
  std::string_view start = text.substr(0, 2);
  if (start == "\xFF\xFE" || start == "\xFE\xFF") return wrong("begins with a UTF-16 byte order mark", kSave);
  if (text.substr(0, 3) == kByteOrderMark) text.remove_prefix(3);
  size_t nul = text.find('\0');
  if (nul != std::string_view::npos) {
    return wrong(StrCat("holds a NUL byte at offset ", nul, ", where the compiler would stop reading"), kSave);
  }
  size_t end = text.find('\xFF');
  if (end != std::string_view::npos) {
    return wrong(StrCat("holds a byte 0xFF at offset ", end, ", where the compiler would stop reading"), kSave);
  }
  if (!base::IsValidUtf8(text)) return wrong("is not valid UTF-8", kSave);
  return absl::OkStatus();
}

}  // namespace

Status CheckSources(const google::protobuf::RepeatedPtrField<v1::SourceFile>& sources) {
  if (sources.empty()) return InvalidArgument("sources: there is none", "send at least one CUDA source file");
  if (sources.size() > kMaxSources) {
    return InvalidArgument(StrCat("sources: ", sources.size(), " files, at most ", kMaxSources, " are accepted"),
                           "put files together");
  }
  int64_t total = 0;
  std::set<std::string> paths;
  for (const v1::SourceFile& source : sources) {
    SOLSTICE_RETURN_IF_ERROR(CheckPath(source.path()));
    if (!paths.insert(source.path()).second) {
      return InvalidArgument(StrCat("source ", Quote(source.path()), ": the path is given twice"),
                             "give each file its own path");
    }
    total += static_cast<int64_t>(source.content().size());
    if (total > kMaxSourceBytes) {
      return InvalidArgument(StrCat("sources: more than ", kMaxSourceBytes, " bytes together"), "send less text");
    }
    SOLSTICE_RETURN_IF_ERROR(CheckText(source.path(), source.content()));
  }
  return absl::OkStatus();
}

Status CheckArch(std::string_view arch) {
  for (std::string_view known : {"sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_103f"}) {
    if (arch == known) return absl::OkStatus();
  }
  return InvalidArgument(StrCat("arch ", Quote(arch), ": not a target of this service"),
                         "write sm_90a, sm_100a, sm_100f, sm_103a or sm_103f");
}

std::string ProgramKey(const v1::internal::ProgramSource& source, const v1::Toolchain& toolchain) {
  // Each field with its length, each list with its count: no two inputs share a text.
  std::string text = StrCat("format=", kProgramFormat, ";");
  auto add = [&](std::string_view field) { text += StrCat(field.size(), ":", field, ";"); };
  auto add_list = [&](const auto& list) {
    text += StrCat(list.size(), "[");
    for (const auto& item : list) add(item);
    text += "]";
  };
  text += StrCat(source.sources_size(), "[");
  for (const v1::SourceFile& file : source.sources()) {
    add(file.path());
    add(base::Hex(base::Sha256(file.content())));
  }
  text += StrCat("]main=", source.main_source(), ";");
  add_list(source.options());
  add_list(source.defines());
  add_list(source.name_expressions());
  add(source.arch());
  text += source.keep_all_entries() ? "all;" : "named;";
  add(toolchain.nvrtc());
  add(toolchain.nvjitlink());
  add(toolchain.headers_digest());
  return base::Digest("solstice.program", text);
}

}  // namespace solstice::compile
