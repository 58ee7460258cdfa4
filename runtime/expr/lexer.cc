#include "runtime/expr/lexer.h"

#include <cctype>
#include <charconv>
#include <string>

#include "runtime/base/strings.h"

namespace solstice::expr {
namespace {

using base::StrCat;

constexpr uint64_t kMinMagnitude = uint64_t{1} << 63;

bool IsDigit(char c) { return c >= '0' && c <= '9'; }
bool IsNameStart(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool IsNamePart(char c) { return IsNameStart(c) || IsDigit(c); }

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  StatusOr<std::vector<Token>> Run() {
    std::vector<Token> tokens;
    while (true) {
      while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t')) ++at_;
      Token token;
      token.column = static_cast<int>(at_) + 1;
      if (at_ == text_.size()) {
        tokens.push_back(token);
        return tokens;
      }
      char c = text_[at_];
      if (IsNameStart(c)) {
        size_t end = at_;
        while (end < text_.size() && IsNamePart(text_[end])) ++end;
        token.kind = TokenKind::kName;
        token.text = text_.substr(at_, end - at_);
        at_ = end;
      } else if (IsDigit(c) || (c == '.' && at_ + 1 < text_.size() && IsDigit(text_[at_ + 1]))) {
        SOLSTICE_RETURN_IF_ERROR(Number(&token));
      } else {
        SOLSTICE_RETURN_IF_ERROR(Operator(&token));
      }
      tokens.push_back(token);
    }
  }

 private:
  Status Number(Token* token) {
    size_t end = at_;
    bool hex = text_[at_] == '0' && at_ + 1 < text_.size() && (text_[at_ + 1] == 'x' || text_[at_ + 1] == 'X');
    bool is_float = false;
    if (hex) {
      end += 2;
      while (end < text_.size() && std::isxdigit(static_cast<unsigned char>(text_[end]))) ++end;
    } else {
      while (end < text_.size() && IsDigit(text_[end])) ++end;
      if (end < text_.size() && text_[end] == '.') {
        is_float = true;
        ++end;
        while (end < text_.size() && IsDigit(text_[end])) ++end;
      }
      size_t exponent = end;
      if (exponent < text_.size() && (text_[exponent] == 'e' || text_[exponent] == 'E')) {
        ++exponent;
        if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
        if (exponent < text_.size() && IsDigit(text_[exponent])) {
          is_float = true;
          end = exponent;
          while (end < text_.size() && IsDigit(text_[end])) ++end;
        }
      }
    }
    token->text = text_.substr(at_, end - at_);
    if (end < text_.size() && (IsNamePart(text_[end]) || text_[end] == '.')) {
      return ErrorAt(static_cast<int>(end) + 1,
                     StrCat("unexpected ", base::Quote(text_.substr(end, 1)), " after the number ", token->text),
                     "write a product with *: 3 * x; numbers have no suffixes and no digit separators");
    }
    const char* first = token->text.data();
    const char* last = first + token->text.size();
    if (is_float) {
      token->kind = TokenKind::kFloat;
      auto result = std::from_chars(first, last, token->number);
      if (result.ec == std::errc::result_out_of_range) {
        return ErrorAt(token->column,
                       StrCat("the number ", base::Quote(token->text, 40), " does not fit in a 64-bit float"));
      }
      at_ = end;
      return absl::OkStatus();
    }
    token->kind = TokenKind::kInteger;
    if (!hex && token->text.size() > 1 && token->text[0] == '0') {
      return ErrorAt(token->column, StrCat("the integer ", base::Quote(token->text, 40), " starts with a zero"),
                     "write it without leading zeros; hexadecimal starts with 0x");
    }
    auto result = std::from_chars(hex ? first + 2 : first, last, token->integer, hex ? 16 : 10);
    if (hex && token->text.size() == 2) return ErrorAt(token->column, "0x without digits");
    if (result.ec != std::errc() || token->integer > kMinMagnitude) {
      return ErrorAt(token->column, StrCat("the integer ", base::Quote(token->text, 40), " does not fit in 64 bits"));
    }
    at_ = end;
    return absl::OkStatus();
  }

  Status Operator(Token* token) {
    // :: and >> occur in kernel names only; the parser refuses them elsewhere.
    static constexpr std::string_view kOperators[] = {"**", "//", "==", "!=", "<=", ">=", "::", ">>", "+",
                                                      "-",  "*",  "/",  "%",  "<",  ">",  "(",  ")",  ","};
    // What people write by habit, and what to write here.
    static constexpr std::pair<std::string_view, std::string_view> kHints[] = {
        {"<<", "write x * 2**n"},
        {"&&", "write and"},
        {"||", "write or"},
        {"^", "a power is x ** y"},
        {"?", "write a if condition else b"},
        {"!", "write not"},
        {"=", "equality is =="},
        {"&", "there are no bit operators; use // and %"},
        {"|", "there are no bit operators"},
        {"~", "there are no bit operators"}};
    std::string_view rest = text_.substr(at_);
    if (rest.substr(0, 2) != "<<") {
      for (std::string_view op : kOperators) {
        if (rest.substr(0, op.size()) != op) continue;
        token->kind = TokenKind::kOperator;
        token->text = rest.substr(0, op.size());
        at_ += op.size();
        return absl::OkStatus();
      }
    }
    for (const auto& [text, mend] : kHints) {
      if (rest.substr(0, text.size()) == text) {
        return ErrorAt(token->column, StrCat(base::Quote(text), " is not an operator of formulas"), mend);
      }
    }
    size_t length = 1;
    while (length < rest.size() && length < 4 && (static_cast<unsigned char>(rest[length]) & 0xC0) == 0x80) ++length;
    return ErrorAt(token->column, StrCat("unexpected character ", base::Quote(rest.substr(0, length))));
  }

  std::string_view text_;
  size_t at_ = 0;
};

}  // namespace

Status ErrorAt(int column, std::string_view what, std::string_view mend) {
  return base::InvalidArgument(StrCat("column ", column, ": ", what), mend);
}

StatusOr<std::vector<Token>> Tokenise(std::string_view text) { return Lexer(text).Run(); }

}  // namespace solstice::expr
