#include "runtime/compile/precompiled.h"

#include <algorithm>
#include <deque>
#include <filesystem>
#include <set>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/compile/preamble.h"
#include "runtime/compile/scan.h"

namespace solstice::compile {
namespace {

using base::StrCat;

constexpr int64_t kMaxHeaderBytes = 8 << 20;
constexpr size_t kMaxContents = 64 << 20;
constexpr std::string_view kStop = "#pragma nv_hdrstop\n";

// Names that headers may put together from pieces (a ## b), so that no text holds them.
bool IsReserved(std::string_view name) {
  static constexpr std::string_view kPrefixes[] = {"_", "CCCL", "CUB", "CUDA", "CURAND", "LIBCUDACXX", "NV", "THRUST"};
  return std::any_of(std::begin(kPrefixes), std::end(kPrefixes),
                     [&](std::string_view prefix) { return name.substr(0, prefix.size()) == prefix; });
}

// Whether a source may give the macro another value, of which the compiler warns in other words then.
bool Redefines(std::string_view text, std::string_view name) {
  for (std::string_view line : base::Split(text, '\n')) {
    bool directive = line.find("define") != std::string_view::npos || line.find("undef") != std::string_view::npos;
    if (directive && line.find(name) != std::string_view::npos) return true;
  }
  return false;
}

// Whether a header may include a file of this name, or ask for one.
bool Names(std::string_view headers, std::string_view path) {
  return headers.find(StrCat("\"", path, "\"")) != std::string_view::npos ||
         headers.find(StrCat("<", path, ">")) != std::string_view::npos;
}

std::string FindHeader(const std::string& folder, std::string_view name, bool angled,
                       const std::vector<std::string>& include_paths) {
  std::vector<std::string> folders;
  if (!angled && !folder.empty()) folders.push_back(folder);
  folders.insert(folders.end(), include_paths.begin(), include_paths.end());
  for (const std::string& candidate : folders) {
    std::error_code error;
    std::filesystem::path path = std::filesystem::path(StrCat(candidate, "/", name)).lexically_normal();
    if (std::filesystem::is_regular_file(path, error)) return path.string();
  }
  return "";
}

}  // namespace

// Follows what the headers include more widely than the preprocessor will: both branches of most conditions.
Status PrecompiledHeaders::ReadHeaders(const CompilerConfig& config) {
  std::deque<std::string> queue;
  std::set<std::string> seen;
  auto reach = [&](const std::string& folder, std::string_view name, bool angled) {
    std::string path = FindHeader(folder, name, angled, config.include_paths);
    if (!path.empty() && seen.insert(path).second) queue.push_back(path);
  };
  reach("", kPreInclude, true);
  for (const SourceScan::Include& include : Scan(text_).includes) reach("", include.name, include.angled);
  for (; !queue.empty(); queue.pop_front()) {
    const std::string& path = queue.front();
    SOLSTICE_ASSIGN_OR_RETURN(std::string content, base::ReadFile(path, kMaxHeaderBytes));
    if (contents_.size() + content.size() > kMaxContents) return base::FailedPrecondition("headers: too many");
    SourceScan scan = Scan(content);
    computed_include_ = computed_include_ || scan.computed_include;
    std::string folder = std::filesystem::path(path).parent_path().string();
    for (const SourceScan::Include& include : scan.includes) reach(folder, include.name, include.angled);
    for (std::string_view word : Identifiers(content)) words_.emplace(word);
    contents_ += content;
  }
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<PrecompiledHeaders>> PrecompiledHeaders::Make(Frontend& frontend, const CompilerConfig& config,
                                                                       const v1::internal::ProgramSource& headers,
                                                                       const std::string& path) {
  // Its own text, options and all: nothing but what SharedHeaders leaves is ever given to the compiler here.
  v1::internal::ProgramSource shared = SharedHeaders(headers);
  bool exact = headers.sources_size() == 1 && shared.SerializeAsString() == headers.SerializeAsString();
  if (!exact) return base::InvalidArgument("precompiled headers: the request holds more than #include lines");
  SOLSTICE_RETURN_IF_ERROR(CheckArch(headers.arch()));
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<std::string> checked,
                            CheckOptions({headers.options().begin(), headers.options().end()}));

  std::unique_ptr<PrecompiledHeaders> made(new PrecompiledHeaders);
  made->path_ = path;
  made->text_ = headers.sources(0).content();
  made->shared_ = headers.SerializeAsString();
  made->options_ = FrontendOptions(headers.arch(), SortOptions(checked).frontend, config.include_paths);
  // Templates are left for the end of the source, where they would be instantiated without a precompiled header.
  made->options_.insert(made->options_.end(), {"-instantiate-templates-in-pch=false", "-pch-messages=false"});
  SOLSTICE_RETURN_IF_ERROR(made->ReadHeaders(config));

  Frontend::Input input;
  input.name = headers.sources(0).path();
  input.text = StrCat(made->text_, kStop);
  input.options = made->options_;
  input.options.push_back(StrCat("-create-pch=", path));
  SOLSTICE_ASSIGN_OR_RETURN(Frontend::Output output, frontend.Compile(input));
  // What the compiler says of headers belongs in each submission's log, so nothing can be shared then.
  if (!output.ok || !output.precompiled || !base::Trim(output.log).empty()) {
    return base::FailedPrecondition(StrCat("precompiled headers: not made: ", base::Utf8Prefix(output.log, 500)));
  }
  made->options_.push_back(StrCat("-use-pch=", path));
  return made;
}

bool PrecompiledHeaders::MayFollow(std::string_view define, const v1::internal::ProgramSource& source) const {
  std::string name(MacroName(define));
  if (computed_include_ || IsReserved(name) || words_.count(name) > 0) return false;
  return std::none_of(source.sources().begin(), source.sources().end(),
                      [&](const v1::SourceFile& file) { return Redefines(file.content(), name); });
}

bool PrecompiledHeaders::Apply(const v1::internal::ProgramSource& source, const OptionSet& options,
                               Frontend::Input* input) const {
  if (SharedHeaders(source).SerializeAsString() != shared_) return false;
  if (computed_include_ && source.sources_size() > 1) return false;
  std::vector<std::string> paths;
  for (const v1::SourceFile& file : source.sources()) {
    // A header that includes this name would get the submission's file.
    if (Names(contents_, file.path())) return false;
    paths.push_back(file.path());
  }
  Preamble preamble = FindPreamble(input->text, input->name, paths);
  if (preamble.text != text_) return false;

  std::vector<std::string> defines(source.defines().begin(), source.defines().end());
  for (const std::string& option : options.frontend) {
    if (option.rfind("-D", 0) == 0) defines.push_back(option.substr(2));
  }
  std::string text = StrCat(text_, kStop);
  for (const std::string& define : defines) {
    if (!MayFollow(define, source)) return false;
    std::string name(MacroName(define));
    text += StrCat("#define ", name, " ", name.size() == define.size() ? "1" : define.substr(name.size() + 1), "\n");
  }
  text +=
      StrCat("#line ", preamble.line, " \"", input->name, "\"\n", std::string_view(input->text).substr(preamble.end));
  input->text = std::move(text);
  input->options = options_;
  return true;
}

bool PrecompiledHeaders::IsBlamed(std::string_view log) const {
  return log.find("precompiled header") != std::string_view::npos || log.find("PCH") != std::string_view::npos ||
         log.find(path_) != std::string_view::npos;
}

}  // namespace solstice::compile
