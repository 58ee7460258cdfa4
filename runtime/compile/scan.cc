#include "runtime/compile/scan.h"

#include <cctype>
#include <optional>

#include "runtime/base/strings.h"

namespace solstice::compile {
namespace {

bool IsIdentifierStart(char c) { return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0; }
bool IsIdentifierChar(char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || (c & 0x80) != 0; }

struct Token {
  enum Kind { kEnd, kIdentifier, kNumber, kLiteral, kPunctuation, kDirective };
  Kind kind = kEnd;
  std::string_view text;  // kPunctuation: one character, or "<<<" and "::"
  int line = 1;
};

// kDirective covers the whole logical line; its text begins after '#'.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}

  Token Next() {
    SkipBlanks();
    Token token;
    token.line = line_;
    if (at_ >= text_.size()) return token;
    size_t start = at_;
    char c = text_[at_];
    if (c == '#' && line_start_) return Directive();
    line_start_ = false;
    if (IsIdentifierStart(c)) {
      while (at_ < text_.size() && IsIdentifierChar(text_[at_])) ++at_;
      token.kind = Token::kIdentifier;
      token.text = text_.substr(start, at_ - start);
      if (at_ < text_.size() && text_[at_] == '"' && IsRawPrefix(token.text)) {
        SkipRawString();
        token.kind = Token::kLiteral;
      }
      return token;
    }
    if (std::isdigit(static_cast<unsigned char>(c))) {
      // 1'000 holds a quote that begins no character literal; 1e+5 a sign.
      while (at_ < text_.size()) {
        char d = text_[at_];
        bool sign = (d == '+' || d == '-') && std::string_view("eEpP").find(text_[at_ - 1]) != std::string_view::npos;
        bool quote = d == '\'' && at_ + 1 < text_.size() && std::isalnum(static_cast<unsigned char>(text_[at_ + 1]));
        if (!IsIdentifierChar(d) && d != '.' && !sign && !quote) break;
        ++at_;
      }
      token.kind = Token::kNumber;
    } else if (c == '"' || c == '\'') {
      SkipQuoted(c);
      token.kind = Token::kLiteral;
    } else {
      std::string_view rest = text_.substr(at_);
      at_ += rest.substr(0, 3) == "<<<" ? 3 : rest.substr(0, 2) == "::" ? 2 : 1;
      token.kind = Token::kPunctuation;
    }
    token.text = text_.substr(start, at_ - start);
    return token;
  }

  size_t OffsetOf(std::string_view part) const { return static_cast<size_t>(part.data() - text_.data()); }

 private:
  static bool IsRawPrefix(std::string_view word) {
    return word == "R" || word == "u8R" || word == "uR" || word == "UR" || word == "LR";
  }

  // Length of a backslash-newline at `at`; 0 if there is none.
  size_t Splice(size_t at) const {
    if (text_.substr(at, 2) == "\\\n") return 2;
    return text_.substr(at, 3) == "\\\r\n" ? 3 : 0;
  }

  void SkipBlanks() {
    while (at_ < text_.size()) {
      char c = text_[at_];
      if (size_t splice = Splice(at_)) {
        at_ += splice;
        ++line_;
      } else if (c == '\n') {
        ++line_;
        line_start_ = true;
        ++at_;
      } else if (std::isspace(static_cast<unsigned char>(c))) {
        ++at_;
      } else if (!SkipComment()) {
        return;
      }
    }
  }

  bool SkipComment() {
    std::string_view start = text_.substr(at_, 2);
    if (start == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') {
        if (size_t splice = Splice(at_)) {
          at_ += splice;
          ++line_;
        } else {
          ++at_;
        }
      }
      return true;
    }
    if (start != "/*") return false;
    size_t end = text_.find("*/", at_ + 2);
    end = end == std::string_view::npos ? text_.size() : end + 2;
    for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
    return true;
  }

  void SkipQuoted(char quote) {
    ++at_;
    while (at_ < text_.size() && text_[at_] != quote && text_[at_] != '\n') {
      if (size_t splice = Splice(at_)) {
        at_ += splice;
        ++line_;
      } else {
        at_ += text_[at_] == '\\' ? 2 : 1;
      }
    }
    if (at_ > text_.size()) at_ = text_.size();
    if (at_ < text_.size() && text_[at_] == quote) ++at_;
  }

  // At the quote after R: "delimiter( ... )delimiter".
  void SkipRawString() {
    size_t open = text_.find('(', at_);
    if (open == std::string_view::npos || open - at_ > 17) {
      SkipQuoted('"');
      return;
    }
    std::string close = base::StrCat(")", text_.substr(at_ + 1, open - at_ - 1), "\"");
    size_t end = text_.find(close, open);
    end = end == std::string_view::npos ? text_.size() : end + close.size();
    for (; at_ < end; ++at_) line_ += text_[at_] == '\n';
  }

  Token Directive() {
    Token token;
    token.kind = Token::kDirective;
    token.line = line_;
    size_t start = ++at_;
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (size_t splice = Splice(at_)) {
        at_ += splice;
        ++line_;
      } else if (text_.substr(at_, 2) == "/*") {
        SkipComment();
      } else if (text_.substr(at_, 2) == "//") {
        break;
      } else {
        ++at_;
      }
    }
    token.text = text_.substr(start, at_ - start);
    return token;
  }

  std::string_view text_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_start_ = true;
};

using Truth = std::optional<bool>;  // nullopt: not known without preprocessing

Truth Not(Truth value) { return value ? Truth(!*value) : value; }
Truth And(Truth a, Truth b) {
  if ((a && !*a) || (b && !*b)) return false;
  return a && b ? Truth(true) : std::nullopt;
}
Truth Or(Truth a, Truth b) { return Not(And(Not(a), Not(b))); }

// Macros that NVRTC always defines, whatever the source says.
Truth IsDefined(std::string_view name) {
  if (name == "__CUDACC_RTC__" || name == "__CUDACC__" || name == "__CUDA_ARCH__" || name == "__cplusplus") return true;
  return std::nullopt;
}

// Evaluates an #if expression as far as it is certain.
class Condition {
 public:
  explicit Condition(std::string_view text) : lexer_(text) { token_ = lexer_.Next(); }
  Truth Value() {
    Truth value = OrExpression(0);
    return token_.kind == Token::kEnd ? value : std::nullopt;
  }

 private:
  bool Take(std::string_view text) {
    if (token_.text != text || token_.kind == Token::kEnd) return false;
    token_ = lexer_.Next();
    return true;
  }
  bool TakeTwice(std::string_view text) { return Take(text) && Take(text); }

  Truth OrExpression(int depth) {
    Truth value = AndExpression(depth);
    while (token_.text == "|" && TakeTwice("|")) value = Or(value, AndExpression(depth));
    return value;
  }
  Truth AndExpression(int depth) {
    Truth value = Unary(depth);
    while (token_.text == "&" && TakeTwice("&")) value = And(value, Unary(depth));
    return value;
  }
  Truth Unary(int depth) {
    if (depth > 64) return std::nullopt;
    if (Take("!")) return Not(Unary(depth + 1));
    if (Take("(")) {
      Truth value = OrExpression(depth + 1);
      return Take(")") ? value : std::nullopt;
    }
    if (Take("defined")) {
      bool parenthesis = Take("(");
      Truth value = IsDefined(token_.text);
      token_ = lexer_.Next();
      if (parenthesis && !Take(")")) return std::nullopt;
      return value;
    }
    Truth value;
    if (token_.kind == Token::kNumber && (token_.text == "0" || token_.text == "1")) value = token_.text == "1";
    token_ = lexer_.Next();
    return value;
  }

  Lexer lexer_;
  Token token_;
};

// The stack of #if groups.
class Branches {
 public:
  void Directive(std::string_view name, std::string_view rest) {
    if (name == "if" || name == "ifdef" || name == "ifndef") {
      Truth value = name == "if" ? Condition(rest).Value() : IsDefined(base::Trim(rest));
      if (name == "ifndef") value = Not(value);
      groups_.push_back({value, value});
    } else if (!groups_.empty() && (name == "elif" || name == "else")) {
      Group& group = groups_.back();
      Truth value = name == "else" ? Truth(true) : Condition(rest).Value();
      group.active = And(Not(group.taken), value);
      group.taken = Or(group.taken, value);
    } else if (!groups_.empty() && name == "endif") {
      groups_.pop_back();
    }
  }
  bool CertainlyInactive() const {
    for (const Group& group : groups_) {
      if (group.active && !*group.active) return true;
    }
    return false;
  }

 private:
  struct Group {
    Truth active, taken;
  };
  std::vector<Group> groups_;
};

// Follows declarations loosely, well enough to name kernels in messages.
class KernelFinder {
 public:
  explicit KernelFinder(std::vector<SourceScan::KernelName>* kernels) : kernels_(kernels) {}

  void See(const Token& token) {
    if (token.text == "namespace") {
      pending_.clear();
      in_namespace_ = true;
    } else if (token.text == "template") {
      template_ = true;
    } else if (token.text == "__global__") {
      state_ = kSeekName;
      name_ = {};
    } else if (token.text == "{") {
      scopes_.push_back(in_namespace_ ? pending_ : std::string());
      EndDeclaration();
    } else if (token.text == "}" || token.text == ";") {
      if (token.text == "}" && !scopes_.empty()) scopes_.pop_back();
      EndDeclaration();
    } else if (in_namespace_) {
      if (token.kind == Token::kIdentifier || token.text == "::") pending_.append(token.text);
    } else if (state_ != kIdle) {
      SeekName(token);
    }
  }

 private:
  enum State { kIdle, kSeekName, kSkipGroup };

  void SeekName(const Token& token) {
    if (state_ == kSkipGroup) {
      depth_ += token.text == "(" ? 1 : token.text == ")" ? -1 : 0;
      if (depth_ == 0) state_ = kSeekName;
      name_ = {};
    } else if (token.text == "(") {
      bool attribute = name_.substr(0, 2) == "__" && name_.size() > 4 && name_.substr(name_.size() - 2) == "__";
      if (attribute || name_ == "alignas" || name_.empty()) {
        state_ = kSkipGroup;
        depth_ = 1;
      } else {
        Found(token.line);
      }
    } else if (token.kind == Token::kIdentifier) {
      name_ = token.text;
    }
  }

  void Found(int line) {
    std::string qualified;
    for (const std::string& scope : scopes_) {
      if (!scope.empty()) qualified += scope + "::";
    }
    kernels_->push_back({line, qualified + std::string(name_), template_});
    state_ = kIdle;
  }

  void EndDeclaration() {
    in_namespace_ = template_ = false;
    pending_.clear();
    state_ = kIdle;
  }

  std::vector<SourceScan::KernelName>* kernels_;
  std::vector<std::string> scopes_;
  std::string pending_;
  std::string_view name_;
  State state_ = kIdle;
  int depth_ = 0;
  bool in_namespace_ = false, template_ = false;
};

void SeeInclude(const Lexer& lexer, std::string_view rest, int line, SourceScan* scan) {
  std::string_view trimmed = base::Trim(rest);
  if (trimmed.empty() || (trimmed[0] != '<' && trimmed[0] != '"')) {
    scan->computed_include = true;
    return;
  }
  size_t end = trimmed.find(trimmed[0] == '<' ? '>' : '"', 1);
  if (end == std::string_view::npos) return;
  SourceScan::Include include;
  include.line = line;
  include.angled = trimmed[0] == '<';
  include.name = std::string(trimmed.substr(1, end - 1));
  include.offset = lexer.OffsetOf(trimmed) + 1;
  scan->includes.push_back(std::move(include));
}

}  // namespace

SourceScan Scan(std::string_view text) {
  SourceScan scan;
  Lexer lexer(text);
  Branches branches;
  KernelFinder kernels(&scan.kernels);
  for (Token token = lexer.Next(); token.kind != Token::kEnd; token = lexer.Next()) {
    if (token.kind == Token::kDirective) {
      std::string_view body = token.text;
      while (!body.empty() && (body[0] == ' ' || body[0] == '\t')) body.remove_prefix(1);
      size_t end = 0;
      while (end < body.size() && IsIdentifierChar(body[end])) ++end;
      std::string_view name = body.substr(0, end);
      branches.Directive(name, body.substr(end));
      if (name == "include" && !branches.CertainlyInactive()) SeeInclude(lexer, body.substr(end), token.line, &scan);
      continue;
    }
    if (branches.CertainlyInactive()) continue;
    if (token.text == "<<<") scan.launches.push_back(token.line);
    if (token.kind != Token::kLiteral) kernels.See(token);
  }
  return scan;
}

std::vector<std::string_view> Identifiers(std::string_view text) {
  std::vector<std::string_view> found;
  Lexer lexer(text);
  for (Token token = lexer.Next(); token.kind != Token::kEnd; token = lexer.Next()) {
    if (token.kind == Token::kIdentifier) found.push_back(token.text);
    if (token.kind != Token::kDirective) continue;
    // Comments at its end and strings count as well.
    for (size_t at = 0; at < token.text.size();) {
      size_t start = at;
      while (at < token.text.size() && IsIdentifierChar(token.text[at])) ++at;
      if (at > start) found.push_back(token.text.substr(start, at - start));
      if (at == start) ++at;
    }
  }
  return found;
}

std::string ResolvePath(std::string_view from, std::string_view name) {
  std::vector<std::string> parts;
  if (size_t slash = from.rfind('/'); slash != std::string_view::npos) {
    for (std::string_view part : base::Split(from.substr(0, slash), '/')) parts.emplace_back(part);
  }
  for (std::string_view part : base::Split(name, '/')) {
    if (part.empty() || part == ".") continue;
    if (part != "..") {
      parts.emplace_back(part);
    } else if (parts.empty()) {
      return "";
    } else {
      parts.pop_back();
    }
  }
  return name.substr(0, 1) == "/" ? "" : base::Join(parts, "/");
}

}  // namespace solstice::compile
