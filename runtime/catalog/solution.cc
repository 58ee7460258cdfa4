#include <algorithm>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"
#include "runtime/catalog/json_field.h"

namespace solstice::catalog {

using base::Quote;
using base::StrCat;
using core::Json;

namespace {

// Text of at most kMaxSourceBytes of sources, escaped at worst, with the rest.
constexpr int64_t kMaxSolutionBytes = 8 << 20;
constexpr size_t kMaxSources = 64;
constexpr size_t kMaxOptions = 64;
constexpr size_t kMaxPlanLines = 1024;
constexpr size_t kMaxLineBytes = 4096;

StatusOr<std::string> OptionalText(const Field& object, std::string_view key, size_t max_bytes) {
  Field field = object.Optional(key);
  if (!field.present()) return std::string();
  return field.String(max_bytes);
}

StatusOr<std::vector<std::string>> OptionalStrings(const Field& object, std::string_view key, size_t max_count) {
  std::vector<std::string> strings;
  Field field = object.Optional(key);
  if (!field.present()) return strings;
  SOLSTICE_RETURN_IF_ERROR(field.NeedArray());
  if (field.json().array().size() > max_count) return field.Error(StrCat("more than ", max_count, " entries"));
  for (size_t i = 0; i < field.json().array().size(); ++i) {
    SOLSTICE_ASSIGN_OR_RETURN(std::string text, field.Element(i).String(kMaxLineBytes));
    strings.push_back(std::move(text));
  }
  return strings;
}

bool IsCuda(std::string_view language) {
  std::string word = base::Lower(language);
  return word == "cuda" || word == "cuda c++" || word == "cuda_cpp" || word == "cuda_c++";
}

Status CheckLanguage(const Field& field) {
  SOLSTICE_ASSIGN_OR_RETURN(std::string language, field.String(128));
  if (IsCuda(language)) return absl::OkStatus();
  return field.Error(StrCat("language ", Quote(language), " is not supported: solutions are CUDA C++"),
                     "write \"language\": \"cuda\" and give device code with a launch plan");
}

Status CheckLanguages(const Field& spec) {
  if (Field language = spec.Optional("language"); language.present()) return CheckLanguage(language);
  Field languages = spec.Optional("languages");
  if (!languages.present()) return spec.Error("needs \"language\"", "write \"language\": \"cuda\"");
  SOLSTICE_RETURN_IF_ERROR(languages.NeedArray());
  if (languages.json().array().empty()) return languages.Error("is empty", "write [\"cuda\"]");
  for (size_t i = 0; i < languages.json().array().size(); ++i) {
    SOLSTICE_RETURN_IF_ERROR(CheckLanguage(languages.Element(i)));
  }
  return absl::OkStatus();
}

// spec.options, and what the public schema calls compile_options. Only their form is checked here; the allowlist is the
// compiler's.
Status ReadOptions(const Field& spec, v1::Solution& solution) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<std::string> options, OptionalStrings(spec, "options", kMaxOptions));
  for (std::string& option : options) solution.add_options(std::move(option));
  Field compile = spec.Optional("compile_options");
  if (!compile.present()) return absl::OkStatus();
  SOLSTICE_RETURN_IF_ERROR(compile.NeedObject());
  for (std::string_view key : {"cflags", "ld_flags"}) {
    Field host = compile.Optional(key);
    if (!host.present() || (host.json().is_array() && host.json().array().empty())) continue;
    return host.Error("there is no host compiler or linker here", "leave it out; device options go in cuda_cflags");
  }
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<std::string> flags, OptionalStrings(compile, "cuda_cflags", kMaxOptions));
  for (std::string& flag : flags) solution.add_options(std::move(flag));
  return absl::OkStatus();
}

Status ReadPlan(const Field& spec, v1::Solution& solution) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<std::string> lines, OptionalStrings(spec, "launch_plan", kMaxPlanLines));
  for (size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].find_first_of("\r\n") != std::string::npos) {
      return spec.Optional("launch_plan").Element(i).Error("holds a line break", "give each line its own string");
    }
    solution.add_launch_plan(std::move(lines[i]));
  }
  return absl::OkStatus();
}

Status ReadSources(const Field& sources, v1::Solution& solution) {
  SOLSTICE_RETURN_IF_ERROR(sources.NeedArray());
  size_t count = sources.json().array().size();
  if (count == 0) return sources.Error("needs at least one source");
  if (count > kMaxSources) return sources.Error(StrCat("more than ", kMaxSources, " sources"));
  std::set<std::string> paths;
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    Field source = sources.Element(i);
    SOLSTICE_ASSIGN_OR_RETURN(Field path_field, source.Member("path"));
    SOLSTICE_ASSIGN_OR_RETURN(std::string path, path_field.String());
    std::string why_not = WhyNotRelativePath(path);
    if (why_not.empty() && path.find('"') != std::string::npos) why_not = "holds a quote";
    if (!why_not.empty())
      return path_field.Error(StrCat("the path ", why_not), "use a plain name such as \"kernel.cu\"");
    path = NormalPath(path);
    if (!paths.insert(path).second) return path_field.Error(StrCat(Quote(path), " stands here twice"));
    SOLSTICE_ASSIGN_OR_RETURN(Field content_field, source.Member("content"));
    if (!content_field.json().is_string()) return content_field.WrongType("a string");
    const std::string& content = content_field.json().string();
    total += content.size();
    if (total > static_cast<size_t>(kMaxSourceBytes)) {
      return sources.Error(StrCat("the sources are larger than ", kMaxSourceBytes, " bytes together"));
    }
    v1::SourceFile& file = *solution.add_sources();
    file.set_path(path);
    file.set_content(content);
  }
  return absl::OkStatus();
}

// "kernel.cu::run": the file is the translation unit, and comes first.
Status ApplyEntryPoint(const Field& spec, v1::Solution& solution) {
  Field field = spec.Optional("entry_point");
  if (!field.present()) return absl::OkStatus();
  SOLSTICE_ASSIGN_OR_RETURN(std::string entry, field.String());
  size_t colons = entry.find("::");
  if (colons == std::string::npos || entry.find('.') > colons) return absl::OkStatus();  // a bare kernel name
  std::string path = NormalPath(std::string_view(entry).substr(0, colons));
  for (int i = 0; i < solution.sources_size(); ++i) {
    if (solution.sources(i).path() != path) continue;
    auto* sources = solution.mutable_sources();
    std::rotate(sources->begin(), sources->begin() + i, sources->begin() + i + 1);
    return absl::OkStatus();
  }
  return field.Error(StrCat("no source is called ", Quote(path)), "name one of \"sources\"");
}

}  // namespace

StatusOr<v1::Solution> ParseSolution(std::string_view text, std::string_view file) {
  if (text.size() > static_cast<size_t>(kMaxSolutionBytes)) {
    return base::InvalidArgument(StrCat(file, ": ", text.size(), " bytes, the limit is ", kMaxSolutionBytes));
  }
  SOLSTICE_ASSIGN_OR_RETURN(Json json, core::ParseJson(text, file));
  Field root(json, file);
  SOLSTICE_RETURN_IF_ERROR(root.NeedObject());
  v1::Solution solution;
  SOLSTICE_ASSIGN_OR_RETURN(Field name, root.Member("name"));
  SOLSTICE_ASSIGN_OR_RETURN(*solution.mutable_name(), name.String(256));
  SOLSTICE_ASSIGN_OR_RETURN(*solution.mutable_definition(), OptionalText(root, "definition", 256));
  if (const std::string& definition = solution.definition(); !definition.empty()) {
    std::string_view bare = std::string_view(definition).substr(0, definition.find('@'));
    std::string_view digest =
        bare.size() == definition.size() ? "" : std::string_view(definition).substr(bare.size() + 1);
    bool hex = digest.find_first_not_of("0123456789abcdef") == std::string_view::npos;
    if (!IsValidName(bare) || (bare.size() != definition.size() && (digest.size() != 12 || !hex))) {
      return root.Optional("definition")
          .Error(StrCat(Quote(definition), " is no name of a definition"), "write its name, or name@<12 hex digits>");
    }
  }
  SOLSTICE_ASSIGN_OR_RETURN(*solution.mutable_author(), OptionalText(root, "author", 256));
  SOLSTICE_ASSIGN_OR_RETURN(*solution.mutable_description(), OptionalText(root, "description", 64 << 10));
  SOLSTICE_ASSIGN_OR_RETURN(Field spec, root.Member("spec"));
  SOLSTICE_RETURN_IF_ERROR(spec.NeedObject());
  SOLSTICE_RETURN_IF_ERROR(CheckLanguages(spec));
  SOLSTICE_RETURN_IF_ERROR(ReadOptions(spec, solution));
  SOLSTICE_RETURN_IF_ERROR(ReadPlan(spec, solution));
  SOLSTICE_ASSIGN_OR_RETURN(Field sources, root.Member("sources"));
  SOLSTICE_RETURN_IF_ERROR(ReadSources(sources, solution));
  SOLSTICE_RETURN_IF_ERROR(ApplyEntryPoint(spec, solution));
  return solution;
}

}  // namespace solstice::catalog
