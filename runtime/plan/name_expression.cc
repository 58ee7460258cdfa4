#include "runtime/plan/name_expression.h"

#include <algorithm>
#include <vector>

#include "runtime/base/strings.h"
#include "runtime/plan/plan.h"

namespace solstice::plan {
namespace {

using base::Quote;
using base::StrCat;

constexpr size_t kMaxNameBytes = 1024;
constexpr int kMaxNesting = 16;
constexpr char kGrammarMend[] =
    "a kernel's name is identifiers joined by ::, with template arguments that are integers, true, false or types: "
    "ops::kernel<float, 4, true>";

// Words of built-in types that may stand beside each other, and cv-qualifiers.
constexpr std::string_view kTypeWords[] = {"const", "volatile", "unsigned", "signed", "long", "short",
                                           "int",   "char",     "double",   "float",  "bool", "void"};

bool IsTypeWord(std::string_view word) {
  return std::find(std::begin(kTypeWords), std::end(kTypeWords), word) != std::end(kTypeWords);
}
bool IsWordStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsDigit(char c) { return c >= '0' && c <= '9'; }

class NameParser {
 public:
  NameParser(std::string_view text, const ArgumentReplacer* replace) : text_(text), replace_(replace) {}

  StatusOr<std::string> Run() {
    SOLSTICE_RETURN_IF_ERROR(CheckCharacters());
    Skip();
    if (Peek() == '&') ++at_;
    std::string out;
    SOLSTICE_RETURN_IF_ERROR(Name(0, &out));
    Skip();
    if (at_ < text_.size()) return Unexpected("the end");
    if (out.size() > kMaxNameBytes)
      return base::InvalidArgument(StrCat("the kernel's name has more than ", kMaxNameBytes, " bytes"));
    return out;
  }

 private:
  Status CheckCharacters() const {
    if (text_.size() > 4 * kMaxNameBytes) {
      return base::InvalidArgument(StrCat("the kernel's name has ", text_.size(), " bytes, more than ", kMaxNameBytes));
    }
    for (char c : text_) {
      if (c == '\n' || c == '\r')
        return base::InvalidArgument("a kernel's name may not hold a line break", kGrammarMend);
      unsigned char byte = static_cast<unsigned char>(c);
      if ((byte < 0x20 && c != '\t') || byte >= 0x7F) {
        return base::InvalidArgument(StrCat("a kernel's name may not hold the byte ", Quote(std::string_view(&c, 1))),
                                     kGrammarMend);
      }
    }
    return absl::OkStatus();
  }

  char Peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  void Skip() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
  }
  bool Accept(std::string_view symbol) {
    Skip();
    if (text_.substr(at_, symbol.size()) != symbol) return false;
    at_ += symbol.size();
    return true;
  }
  Status Unexpected(std::string_view expected) const {
    std::string found = at_ < text_.size() ? Quote(text_.substr(at_, 1)) : "the end";
    return base::InvalidArgument(StrCat("kernel name ", Quote(text_), ": character ", at_ + 1, ": found ", found,
                                        " where ", expected, " is expected"),
                                 kGrammarMend);
  }
  std::string_view Word() {
    Skip();
    size_t begin = at_;
    if (!IsWordStart(Peek())) return {};
    while (IsWordStart(Peek()) || IsDigit(Peek())) ++at_;
    return text_.substr(begin, at_ - begin);
  }

  // ["::"] word [<arguments>] ("::" word [<arguments>])*
  Status Name(int depth, std::string* out) {
    if (Accept("::")) out->append("::");
    while (true) {
      std::string_view word = Word();
      if (word.empty()) return Unexpected("an identifier");
      out->append(word);
      if (Accept("<")) SOLSTICE_RETURN_IF_ERROR(Arguments(depth, out));
      if (!Accept("::")) return absl::OkStatus();
      out->append("::");
    }
  }

  Status Arguments(int depth, std::string* out) {
    if (depth >= kMaxNesting)
      return base::InvalidArgument(StrCat("template arguments nested more than ", kMaxNesting, " deep"));
    out->push_back('<');
    if (!Accept(">")) {
      while (true) {
        SOLSTICE_RETURN_IF_ERROR(Argument(depth + 1, out));
        if (Accept(">")) break;
        if (!Accept(",")) return Unexpected("\",\" or \">\"");
        out->append(", ");
      }
    }
    out->push_back('>');
    return absl::OkStatus();
  }

  // Where the argument that starts here ends, if it is read as a formula: at a comma or > outside parentheses.
  size_t FormulaEnd() const {
    int round = 0;
    for (size_t i = at_; i < text_.size(); ++i) {
      char c = text_[i];
      if (c == '(') ++round;
      if (c == ')' && round-- == 0) return i;
      if (round == 0 && (c == ',' || c == '>' || c == '<')) return i;
    }
    return text_.size();
  }

  Status Argument(int depth, std::string* out) {
    Skip();
    if (replace_ != nullptr) {
      size_t end = FormulaEnd();
      std::string_view piece = base::Trim(text_.substr(at_, end - at_));
      bool ends_here = end < text_.size() && text_[end] != '<' && text_[end] != ')';
      if (ends_here && !piece.empty()) {
        StatusOr<expr::Formula> formula = expr::Formula::Parse(piece);
        if (formula.ok()) {
          SOLSTICE_ASSIGN_OR_RETURN(std::string replacement, (*replace_)(*formula));
          if (!replacement.empty()) {
            out->append(replacement);
            at_ = end;
            return absl::OkStatus();
          }
        } else if (piece.find_first_of("()+/%") != std::string_view::npos) {
          // No type looks like this, so the formula's error is the helpful one.
          return base::Annotate(formula.status(), StrCat("template argument ", Quote(piece)));
        }
      }
    }
    return IsDigit(Peek()) || Peek() == '-' ? Integer(out) : Type(depth, out);
  }

  // [-] decimal or hexadecimal, with C++ suffixes.
  Status Integer(std::string* out) {
    size_t begin = at_;
    if (Peek() == '-') ++at_;
    size_t digits = at_;
    while (IsDigit(Peek()) || IsWordStart(Peek())) ++at_;
    std::string_view body = text_.substr(digits, at_ - digits);
    bool hex = body.substr(0, 2) == "0x" || body.substr(0, 2) == "0X";
    std::string_view number = hex ? body.substr(2) : body;
    while (!number.empty() && std::string_view("uUlL").find(number.back()) != std::string_view::npos)
      number.remove_suffix(1);
    auto digit = [hex](char c) { return IsDigit(c) || (hex && ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))); };
    if (number.empty() || !std::all_of(number.begin(), number.end(), digit)) {
      at_ = begin;
      return Unexpected("an integer");
    }
    out->append(text_.substr(begin, at_ - begin));
    return absl::OkStatus();
  }

  // Qualifiers and one name, or the words of a built-in type, then * & && and const.
  Status Type(int depth, std::string* out) {
    size_t begin = out->size();
    bool named = false, built_in = false;
    while (true) {
      Skip();
      size_t before = at_;
      std::string_view word = Word();
      if (word.empty() && text_.substr(at_, 2) != "::") break;
      if (out->size() > begin) out->push_back(' ');
      if (IsTypeWord(word)) {
        bool qualifier = word == "const" || word == "volatile";
        if (named && !qualifier) return Unexpected("\",\" or \">\"");
        built_in |= !qualifier;
        out->append(word);
        continue;
      }
      at_ = before;
      if (named || built_in) return Unexpected("\",\" or \">\"");
      SOLSTICE_RETURN_IF_ERROR(Name(depth, out));
      named = true;
    }
    if (!named && !built_in) return Unexpected("a type, an integer, true or false");
    while (true) {
      Skip();
      if (Peek() == '*' || Peek() == '&') {
        out->push_back(Peek());
        ++at_;
        continue;
      }
      size_t before = at_;
      std::string_view word = Word();
      if (word.empty()) return absl::OkStatus();
      if (word != "const" && word != "volatile") {
        at_ = before;
        return Unexpected("\",\" or \">\"");
      }
      out->append(" ").append(word);
    }
  }

  std::string_view text_;
  const ArgumentReplacer* replace_;
  size_t at_ = 0;
};

}  // namespace

StatusOr<std::string> InstantiateNameExpression(std::string_view text, const ArgumentReplacer& replace) {
  return NameParser(text, &replace).Run();
}

StatusOr<std::string> SpecialiseNameExpression(std::string_view text, const expr::Scope& scope) {
  return InstantiateNameExpression(text, [&scope](const expr::Formula& formula) -> StatusOr<std::string> {
    if (expr::IsIdentifier(formula.text()) && absl::IsNotFound(scope.Lookup(formula.text()).status())) {
      return std::string();
    }
    StatusOr<expr::Value> value = formula.Evaluate(scope);
    if (!value.ok()) return base::Annotate(value.status(), StrCat("template argument ", Quote(formula.text())));
    if (const bool* flag = std::get_if<bool>(&*value)) return std::string(*flag ? "true" : "false");
    if (const int64_t* integer = std::get_if<int64_t>(&*value)) return StrCat(*integer);
    return base::InvalidArgument(
        StrCat("template argument ", Quote(formula.text()), " is the float ", expr::ToText(*value)),
        "template arguments are integers, booleans and types: use // instead of /, or floor()");
  });
}

StatusOr<std::string> NormaliseNameExpression(std::string_view text) { return NameParser(text, nullptr).Run(); }

}  // namespace solstice::plan
