#include "runtime/compile/preamble.h"

#include <algorithm>
#include <cctype>

#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/options.h"
#include "runtime/compile/scan.h"

namespace solstice::compile {
namespace {

using base::StrCat;

// More lines than any real source begins with.
constexpr int kMaxIncludes = 64;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool IsCostly(std::string_view name) {
  static constexpr std::string_view kFolders[] = {"cooperative_groups/", "cuda/", "cub/"};
  if (name == "cooperative_groups.h" || name == "curand_kernel.h") return true;
  return std::any_of(std::begin(kFolders), std::end(kFolders),
                     [&](std::string_view folder) { return name.substr(0, folder.size()) == folder; });
}

// Only names below an include path: nothing absolute, nothing that climbs.
bool IsPlainName(std::string_view name) {
  if (name.empty() || name[0] == '/' || name.find("..") != std::string_view::npos) return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
           std::string_view("/._+-").find(c) != std::string_view::npos;
  });
}

class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  size_t at() const { return at_; }
  int line() const { return line_; }

  // To the next thing that is neither blank, line end nor comment. False at a comment without an end.
  bool SkipToText() {
    while (at_ < text_.size()) {
      std::string_view two = text_.substr(at_, 2);
      if (text_[at_] == ' ' || text_[at_] == '\t') {
        ++at_;
      } else if (text_[at_] == '\n' || two == "\r\n") {
        NextLine();
      } else if (two == "//") {
        size_t end = text_.find('\n', at_);
        if (end == std::string_view::npos) end = text_.size();
        if (text_.substr(at_, end - at_).find('\\') != std::string_view::npos) return false;  // it may go on
        at_ = end;
      } else if (two == "/*") {
        size_t end = text_.find("*/", at_ + 2);
        if (end == std::string_view::npos) return false;
        line_ += static_cast<int>(std::count(text_.begin() + at_, text_.begin() + end, '\n'));
        at_ = end + 2;
      } else {
        return true;
      }
    }
    return true;
  }

  // One "#include <name>" up to and over its line end: its delimiter, name and the other delimiter.
  bool TakeInclude(std::string_view* written) {
    if (text_.substr(at_, 1) != "#") return false;
    ++at_;
    SkipBlanks();
    constexpr std::string_view kWord = "include";
    if (text_.substr(at_, kWord.size()) != kWord) return false;
    at_ += kWord.size();
    SkipBlanks();
    if (at_ >= text_.size() || (text_[at_] != '<' && text_[at_] != '"')) return false;
    size_t end = text_.find(text_[at_] == '<' ? '>' : '"', at_ + 1);
    if (end == std::string_view::npos) return false;
    *written = text_.substr(at_, end + 1 - at_);
    at_ = end + 1;
    return TakeLineEnd();
  }

 private:
  void NextLine() {
    at_ = text_.find('\n', at_) + 1;
    ++line_;
  }
  void SkipBlanks() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  // A comment may stand before it if it ends on the line.
  bool TakeLineEnd() {
    size_t end = text_.find('\n', at_);
    if (end == std::string_view::npos) return false;
    std::string_view rest = base::Trim(text_.substr(at_, end - at_));
    bool comment = rest.substr(0, 2) == "//" && rest.find('\\') == std::string_view::npos;
    if (!rest.empty() && !comment) return false;
    NextLine();
    return true;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
};

}  // namespace

Preamble FindPreamble(std::string_view text, std::string_view from, const std::vector<std::string>& paths) {
  auto submitted = [&](std::string_view name) { return std::find(paths.begin(), paths.end(), name) != paths.end(); };
  Preamble preamble;
  std::string lines;
  Reader reader(text);
  std::string_view written;
  for (int i = 0; i < kMaxIncludes && reader.SkipToText() && reader.TakeInclude(&written); ++i) {
    std::string_view name = written.substr(1, written.size() - 2);
    if (!IsPlainName(name) || submitted(name) || submitted(ResolvePath(from, name))) break;
    lines += StrCat("#include ", written, "\n");
    if (!IsCostly(name)) continue;
    preamble.text = lines;
    preamble.end = reader.at();
    preamble.line = reader.line();
  }
  return preamble;
}

v1::internal::ProgramSource SharedHeaders(const v1::internal::ProgramSource& source) {
  v1::internal::ProgramSource headers;
  if (source.main_source() < 0 || source.main_source() >= source.sources_size()) return headers;
  const v1::SourceFile& main = source.sources(source.main_source());
  std::vector<std::string> paths;
  for (const v1::SourceFile& file : source.sources()) paths.push_back(file.path());
  std::string_view text = main.content();
  if (text.substr(0, kByteOrderMark.size()) == kByteOrderMark) text.remove_prefix(kByteOrderMark.size());
  Preamble preamble = FindPreamble(text, main.path(), paths);
  if (preamble.text.empty()) return headers;
  v1::SourceFile* file = headers.add_sources();
  file->set_path("headers.cu");
  file->set_content(preamble.text);
  for (const std::string& option : source.options()) {
    bool elsewhere = option.rfind("-D", 0) == 0 || option.rfind("-maxrregcount=", 0) == 0;
    if (!elsewhere) headers.add_options(option);
  }
  headers.set_arch(source.arch());
  return headers;
}

}  // namespace solstice::compile
