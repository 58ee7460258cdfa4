// Statements at module scope.
#include <algorithm>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/ptx/parser.h"

namespace solstice::ptx {
namespace {

using base::StrCat;

constexpr int64_t kMaxFileIndex = (1 << 16) - 1;
constexpr int64_t kMaxSourceLine = INT32_MAX;

uint64_t PackPosition(const Location& location) {
  return static_cast<uint64_t>(location.file) << 48 | static_cast<uint64_t>(location.line) << 16 |
         static_cast<uint64_t>(std::min(location.column, 0xFFFF));
}

}  // namespace

bool Parser::ParseStatement() {
  if (Accept(';')) return true;
  if (token_.kind != Token::Kind::kDot) return Fail(StrCat("expected a directive, found ", Found()));
  if (IsDot("version") || IsDot("target") || IsDot("address_size")) return ParseHeader();
  if (!seen_version_) return Fail("the text does not begin with .version: this is not PTX");
  if (IsDot("file")) return ParseFile();
  if (IsDot("loc")) return ParseLocation();
  if (IsDot("section")) return SkipSection();
  if (IsDot("alias")) return ParseAlias();
  if (IsDot("pragma")) return ParsePragma();
  bool is_extern = false;
  while (IsDot("visible") || IsDot("weak") || IsDot("extern") || IsDot("common")) {
    is_extern |= IsDot("extern");
    Advance();
  }
  if (IsDot("entry") || IsDot("func")) {
    bool is_entry = IsDot("entry");
    Advance();
    return ParseFunction(is_entry);
  }
  return ParseModuleVariable(is_extern);
}

bool Parser::ParseHeader() {
  std::string_view directive = token_.text;
  Advance();
  if (directive == "version") {
    if (token_.kind != Token::Kind::kFloat) return Fail(StrCat("expected a PTX version, found ", Found()));
    module_.version = token_.text;
    seen_version_ = true;
    Advance();
    return true;
  }
  if (directive == "address_size") {
    int64_t size = 0;
    if (!ExpectInt(&size, 0, INT32_MAX, "the address size")) return false;
    if (size != 64) return Fail("only .address_size 64 is supported");
    module_.address_size = 64;
    return true;
  }
  std::string_view target;
  if (!ExpectIdentifier(&target, "a target")) return false;
  module_.target = target;
  while (Accept(',')) {  // debug, texmode_independent
    if (!ExpectIdentifier(&target, "a target option")) return false;
  }
  return true;
}

// .file 1 "path" [, timestamp, size]
bool Parser::ParseFile() {
  Advance();
  int64_t index = 0, ignored = 0;
  if (!ExpectInt(&index, 0, kMaxFileIndex, "the file's index")) return false;
  if (token_.kind != Token::Kind::kString) return Fail(StrCat("expected a file's name, found ", Found()));
  module_.files[static_cast<int>(index)] = token_.text;
  Advance();
  while (Accept(',')) {
    if (!ExpectInt(&ignored, 0, INT64_MAX, "a number")) return false;
  }
  return true;
}

// .loc file line column [, function_name label [+ n]] [, inlined_at file line column]
bool Parser::ParseLocation() {
  Advance();
  auto position = [this](Location* location) {
    int64_t file = 0, line = 0, column = 0;
    if (!ExpectInt(&file, 0, kMaxFileIndex, "the file of a .loc")) return false;
    if (!ExpectInt(&line, 0, kMaxSourceLine, "the line of a .loc")) return false;
    if (!ExpectInt(&column, 0, kMaxSourceLine, "the column of a .loc")) return false;
    *location = Location{static_cast<int>(file), static_cast<int>(line), static_cast<int>(column), -1};
    return true;
  };
  Location location;
  if (!position(&location)) return false;
  while (Accept(',')) {
    std::string_view word;
    if (!ExpectIdentifier(&word, "function_name or inlined_at")) return false;
    if (word == "function_name") {
      std::string_view label;
      int64_t offset = 0;
      if (!ExpectIdentifier(&label, "a label") || !ParseOffset(&offset)) return false;
    } else if (word == "inlined_at") {
      Location outer;
      if (!position(&outer)) return false;
      auto known = location_of_.find(PackPosition(outer));
      if (known != location_of_.end()) {
        location.inlined_at = known->second;
      } else {
        location.inlined_at = static_cast<int>(module_.locations.size());
        module_.locations.push_back(outer);
      }
    } else {
      return Fail(StrCat("a .loc does not know ", base::Quote(word)));
    }
  }
  if (module_.locations.size() >= Limits::kInstructions) return Fail("the module has too many .loc directives");
  location_ = static_cast<int>(module_.locations.size());
  module_.locations.push_back(location);
  location_of_[PackPosition(location)] = location_;
  return true;
}

// Debug information, of no use here.
bool Parser::SkipSection() {
  int line = token_.line;
  Advance();
  if (token_.kind == Token::Kind::kDot || IsIdentifier()) Advance();
  if (!Expect('{', "after .section")) return false;
  for (int open = 1; open > 0; Advance()) {
    if (token_.kind == Token::Kind::kEnd || token_.kind == Token::Kind::kError) {
      return FailAt(line, "the .section that starts here has no end");
    }
    open += IsPunctuation('{') ? 1 : IsPunctuation('}') ? -1 : 0;
  }
  return true;
}

bool Parser::ParseAlias() {
  Advance();
  std::string_view name, target;
  int line = token_.line;
  if (!ExpectIdentifier(&name, "an alias") || !Expect(',', "in .alias")) return false;
  if (!ExpectIdentifier(&target, "the aliased function") || !Expect(';', "after .alias")) return false;
  if (!Count(&declarations_, Limits::kDeclarations, 1, "declarations")) return false;
  wanted_.try_emplace(target, line);
  module_.aliases[std::string(name)] = target;
  return true;
}

bool Parser::ParsePragma() {
  Advance();
  do {
    if (token_.kind != Token::Kind::kString) return Fail(StrCat("expected a pragma in quotes, found ", Found()));
    Advance();
  } while (Accept(','));
  return Expect(';', "after .pragma");
}

bool Parser::ParseModuleVariable(bool is_extern) {
  if (!IsDot("global") && !IsDot("const") && !IsDot("shared")) {
    return Fail(StrCat("unknown directive at module scope: ", Found()));
  }
  Declaration declaration;
  declaration.is_extern = is_extern;
  if (!ParseDeclaration(&declaration)) return false;
  do {
    Variable variable;
    std::string_view name;
    int line = token_.line;
    if (module_.variables.size() >= Limits::kModuleVariables) return Fail("the module has too many variables");
    if (!ParseVariable(declaration, &variable, &name) || !AddModuleVariable(std::move(variable), line)) return false;
  } while (Accept(','));
  return Expect(';', "after a variable");
}

// An .extern declaration may be repeated and may be followed, or preceded, by the definition.
bool Parser::AddModuleVariable(Variable variable, int line) {
  if (variable.count == 0 && !variable.is_extern && variable.space != Space::kShared) {
    return FailAt(line, StrCat("the array ", base::Quote(variable.name), " has no size"));
  }
  if (module_.function_index.count(variable.name) != 0) {
    return FailAt(line, StrCat(base::Quote(variable.name), " is a function already"));
  }
  auto [at, added] = module_.variable_index.try_emplace(variable.name, static_cast<int>(module_.variables.size()));
  if (added) {
    module_.variables.push_back(std::move(variable));
    return true;
  }
  Variable& known = module_.variables[at->second];
  if (known.space != variable.space || (!known.is_extern && !variable.is_extern)) {
    return FailAt(line, StrCat("the variable ", base::Quote(variable.name), " is declared twice"));
  }
  if (known.is_extern) known = std::move(variable);
  return true;
}

// Every name that an instruction, an initialiser or an alias uses must exist now.
bool Parser::Resolve() {
  const std::pair<const std::string_view, int>* worst = nullptr;
  for (const auto& use : wanted_) {
    bool known = module_.variable_index.find(use.first) != module_.variable_index.end() ||
                 module_.FindFunction(use.first) != nullptr;
    if (!known && (worst == nullptr || use.second < worst->second)) worst = &use;
  }
  if (worst == nullptr) return true;
  return FailAt(worst->second, StrCat(base::Quote(worst->first), " is not declared"));
}

}  // namespace solstice::ptx
