#include "runtime/compile/options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>

#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"

namespace solstice::compile {
namespace {

using base::InvalidArgument;
using base::Quote;
using base::StrCat;

constexpr size_t kMaxOptionBytes = 256;
constexpr std::string_view kAllowed =
    "allowed are -std=c++17, -std=c++20, --use_fast_math, -ftz=, -prec-div=, -prec-sqrt=, -fmad= (true or false), "
    "-restrict, --extra-device-vectorization, -maxrregcount=N, -lineinfo and -DNAME=value";

bool IsIdentifierStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_'; }
bool IsIdentifierChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// Words that a macro may not replace: keywords, and names the compiler or every kernel depends on.
constexpr std::array<std::string_view, 105> kReservedWords = {
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "char16_t",
    "char32_t",
    "char8_t",
    "class",
    "compl",
    "concept",
    "const",
    "const_cast",
    "consteval",
    "constexpr",
    "constinit",
    "continue",
    "co_await",
    "co_return",
    "co_yield",
    "decltype",
    "default",
    "defined",
    "delete",
    "do",
    "double",
    "dynamic_cast",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "final",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "import",
    "inline",
    "int",
    "long",
    "module",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "override",
    "private",
    "protected",
    "public",
    "register",
    "reinterpret_cast",
    "requires",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "static_assert",
    "static_cast",
    "struct",
    "switch",
    "template",
    "this",
    "thread_local",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "wchar_t",
    "while",
    "xor",
    "xor_eq",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "restrict",
    "_Pragma",
    "std",
};

bool IsReservedWord(std::string_view word) {
  return std::find(kReservedWords.begin(), kReservedWords.end(), word) != kReservedWords.end();
}

// One number or name: "64", "-1", "0x1Fu", "1.5e-3f", "float", "ns::type", "true".
bool IsSafeValue(std::string_view value) {
  if (value.empty()) return true;
  if (value[0] == '-' || value[0] == '+') value.remove_prefix(1);
  if (value.empty()) return false;
  if (std::isdigit(static_cast<unsigned char>(value[0])) || value[0] == '.') {
    bool digit = false;
    for (size_t i = 0; i < value.size(); ++i) {
      char c = value[i];
      digit |= std::isdigit(static_cast<unsigned char>(c)) != 0;
      bool sign =
          (c == '-' || c == '+') && i > 0 && std::string_view("eEpP").find(value[i - 1]) != std::string_view::npos;
      if (!std::isalnum(static_cast<unsigned char>(c)) && c != '.' && !sign) return false;
    }
    return digit;
  }
  if (!IsIdentifierStart(value[0])) return false;
  for (size_t i = 0; i < value.size(); ++i) {
    if (IsIdentifierChar(value[i])) continue;
    bool scope = value.substr(i, 2) == "::" && i + 2 < value.size() && IsIdentifierStart(value[i + 2]);
    if (!scope) return false;
    ++i;
  }
  return true;
}

Status CheckMacro(std::string_view define, std::string_view shown) {
  std::string_view name = MacroName(define);
  constexpr std::string_view kForm =
      "write NAME=value: an identifier, then a number or a name without spaces or quotes";
  if (name.empty() || !IsIdentifierStart(name[0]) || !std::all_of(name.begin(), name.end(), IsIdentifierChar)) {
    return InvalidArgument(StrCat(shown, ": ", Quote(name), " is not a macro name"), kForm);
  }
  if (name.substr(0, 2) == "__" || IsReservedWord(name)) {
    return InvalidArgument(StrCat(shown, ": ", Quote(name), " belongs to the language or the compiler"),
                           "choose another macro name");
  }
  if (name.size() < define.size() && !IsSafeValue(define.substr(name.size() + 1))) {
    return InvalidArgument(StrCat(shown, ": the value ", Quote(define.substr(name.size() + 1)), " is not accepted"),
                           kForm);
  }
  return absl::OkStatus();
}

// What to do instead of options that people bring along from nvcc.
std::string_view Advice(std::string_view bare) {
  struct Entry {
    std::string_view prefix, advice;
  };
  static constexpr Entry kEntries[] = {
      {"O", "leave it out: the optimiser always runs at its highest level"},
      {"optimize", "leave it out: the optimiser always runs at its highest level"},
      {"arch", "leave it out: the service compiles for each device's own target"},
      {"gpu-", "leave it out: the service compiles for each device's own target"},
      {"gencode", "leave it out: the service compiles for each device's own target"},
      {"G", "leave it out: debug code is not judged; line information is always on"},
      {"g", "leave it out: debug code is not judged; line information is always on"},
      {"device-debug", "leave it out: debug code is not judged; line information is always on"},
      {"I", "leave it out: send the header among the sources; CUDA, CCCL and standard headers are always found"},
      {"include", "leave it out: write #include in the source and send the file among the sources"},
      {"pre-include", "leave it out: write #include in the source and send the file among the sources"},
      {"isystem", "leave it out: send the header among the sources"},
      {"std", "write -std=c++17 or -std=c++20"},
      {"expt-relaxed-constexpr", "leave it out: every function is a device function here"},
      {"extended-lambda", "leave it out and drop __device__ from lambdas: they are device code here"},
      {"expt-extended-lambda", "leave it out and drop __device__ from lambdas: they are device code here"},
      {"Xptxas", "leave it out: registers and spills are always reported; for a limit write -maxrregcount=N"},
      {"ptxas-options", "leave it out: registers and spills are always reported; for a limit write -maxrregcount=N"},
      {"U", "leave it out: nothing is defined but what the options and the plan define"},
      {"D", "write -DNAME or -DNAME=value as one option"},
      {"define-macro", "write -DNAME or -DNAME=value as one option"},
      {"default-device", "leave it out: it is always on"},
      {"l", "leave it out: libraries cannot be linked; device headers are available"},
      {"L", "leave it out: libraries cannot be linked; device headers are available"},
      {"rdc", "leave it out: a solution is one translation unit"},
      {"dc", "leave it out: a solution is one translation unit"},
      {"dlto", "leave it out: link-time optimisation is always on"},
  };
  std::string_view found;
  size_t best = 0;
  for (const Entry& entry : kEntries) {
    bool one_letter = entry.prefix.size() == 1;
    bool matches =
        bare == entry.prefix || (bare.substr(0, entry.prefix.size()) == entry.prefix &&
                                 (!one_letter || entry.prefix == "O" || entry.prefix == "I" || entry.prefix == "U" ||
                                  entry.prefix == "D" || entry.prefix == "l" || entry.prefix == "L"));
    if (matches && entry.prefix.size() > best) {
      found = entry.advice;
      best = entry.prefix.size();
    }
  }
  return found;
}

Status Refused(std::string_view option, std::string_view why, std::string_view bare) {
  std::string_view advice = Advice(bare);
  std::string mend(advice);
  if (mend.empty()) {
    std::string near = base::Nearest(bare.substr(0, bare.find('=')),
                                     {"std", "use_fast_math", "ftz", "prec-div", "prec-sqrt", "fmad", "restrict",
                                      "extra-device-vectorization", "maxrregcount", "lineinfo"});
    mend = near.empty() ? StrCat("leave it out; ", kAllowed) : StrCat("did you mean -", near, "? ", kAllowed);
  }
  return InvalidArgument(StrCat("option ", Quote(option), ": ", why), mend);
}

// The normal form of one option and, in `key`, what may be given once only.
StatusOr<std::string> CheckOption(std::string_view option, std::string* key) {
  if (option.empty()) return InvalidArgument("option \"\": an option is empty", "remove it");
  if (option.size() > kMaxOptionBytes) {
    return InvalidArgument(StrCat("option ", Quote(option), ": longer than ", kMaxOptionBytes, " bytes"), "shorten it");
  }
  for (char c : option) {
    if (static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) == 0x7f) {
      return InvalidArgument(StrCat("option ", Quote(option), ": contains a line break or control character"),
                             "give each option as an element of its own");
    }
  }
  if (option[0] != '-') {
    return Refused(option, "does not begin with '-'; files and response files are not accepted", option);
  }
  std::string_view bare = option.substr(option.substr(0, 2) == "--" ? 2 : 1);
  if (option.substr(0, 2) == "-D" && option.size() > 2) {
    SOLSTICE_RETURN_IF_ERROR(CheckMacro(bare.substr(1), StrCat("option ", Quote(option))));
    *key = StrCat("-D", MacroName(bare.substr(1)));
    return std::string(option);
  }
  size_t equals = bare.find('=');
  std::string_view name = bare.substr(0, equals);
  std::string_view value = equals == std::string_view::npos ? std::string_view() : bare.substr(equals + 1);
  bool has_value = equals != std::string_view::npos;
  *key = std::string(name);
  if (name == "std") {
    if (value != "c++17" && value != "c++20") return Refused(option, "this language standard is not offered", bare);
    return StrCat("-std=", value);
  }
  if (!has_value && (name == "use_fast_math" || name == "extra-device-vectorization")) return StrCat("--", name);
  if (!has_value && (name == "restrict" || name == "lineinfo")) return StrCat("-", name);
  if (name == "ftz" || name == "prec-div" || name == "prec-sqrt" || name == "fmad") {
    if (value != "true" && value != "false") {
      return InvalidArgument(StrCat("option ", Quote(option), ": takes true or false"),
                             StrCat("write -", name, "=true or -", name, "=false"));
    }
    return StrCat("-", name, "=", value);
  }
  if (name == "maxrregcount") {
    int count = 0;
    auto result = std::from_chars(value.data(), value.data() + value.size(), count);
    if (value.empty() || result.ec != std::errc() || result.ptr != value.data() + value.size() || count < 1 ||
        count > 255) {
      return InvalidArgument(StrCat("option ", Quote(option), ": takes a whole number from 1 to 255"),
                             "write -maxrregcount=128");
    }
    return StrCat("-maxrregcount=", count);
  }
  return Refused(option, "is not accepted", bare);
}

}  // namespace

std::string_view MacroName(std::string_view define) { return define.substr(0, define.find('=')); }

Status CheckDefine(std::string_view define) {
  if (define.size() > kMaxOptionBytes) {
    return InvalidArgument(StrCat("define ", Quote(define), ": longer than ", kMaxOptionBytes, " bytes"), "shorten it");
  }
  return CheckMacro(define, StrCat("define ", Quote(define)));
}

StatusOr<std::vector<std::string>> CheckOptions(const std::vector<std::string>& options) {
  if (options.size() > static_cast<size_t>(kMaxOptions)) {
    return InvalidArgument(StrCat("options: ", options.size(), " given, at most ", kMaxOptions, " are accepted"),
                           "leave some out");
  }
  std::vector<std::string> normal, keys;
  for (const std::string& option : options) {
    std::string key;
    SOLSTICE_ASSIGN_OR_RETURN(std::string form, CheckOption(option, &key));
    if (form == "-lineinfo") continue;  // always on
    auto known = std::find(keys.begin(), keys.end(), key);
    if (known == keys.end()) {
      keys.push_back(key);
      normal.push_back(form);
    } else if (normal[known - keys.begin()] != form) {
      return InvalidArgument(StrCat("option ", Quote(option), ": contradicts ", Quote(normal[known - keys.begin()])),
                             "give only one of them");
    }
  }
  return normal;
}

OptionSet SortOptions(const std::vector<std::string>& options) {
  auto has = [&](std::string_view option) {
    return std::find(options.begin(), options.end(), option) != options.end();
  };
  bool fast = has("--use_fast_math");
  auto flag = [&](std::string_view name, bool value) {
    if (has(StrCat("-", name, "=true"))) value = true;
    if (has(StrCat("-", name, "=false"))) value = false;
    return value ? "1" : "0";
  };
  OptionSet set;
  set.lto = {StrCat("-fma=", flag("fmad", true)), StrCat("-ftz=", flag("ftz", fast)),
             StrCat("-prec-div=", flag("prec-div", !fast)), StrCat("-prec-sqrt=", flag("prec-sqrt", !fast))};
  bool standard = false;
  for (const std::string& option : options) {
    if (option.rfind("-maxrregcount=", 0) == 0) {
      set.ptxas.push_back(option);
    } else {
      set.frontend.push_back(option);
    }
    standard |= option.rfind("-std=", 0) == 0;
    if (option.rfind("-D", 0) == 0) set.macros.emplace_back(MacroName(std::string_view(option).substr(2)));
  }
  if (!standard) set.frontend.insert(set.frontend.begin(), "-std=c++17");
  return set;
}

std::vector<std::string> FrontendOptions(std::string_view arch, const std::vector<std::string>& given,
                                         const std::vector<std::string>& include_paths) {
  std::vector<std::string> list = {
      "-dlto", "-lineinfo", "-default-device", "--frandom-seed=1", "--modify-stack-limit=false", "--no-cache"};
  list.push_back(StrCat("-arch=", arch));
  list.push_back(StrCat("--pre-include=", kPreInclude));
  list.insert(list.end(), given.begin(), given.end());
  for (const std::string& path : include_paths) list.push_back(StrCat("-I", path));
  return list;
}

}  // namespace solstice::compile
