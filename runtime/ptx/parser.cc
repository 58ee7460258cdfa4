#include "runtime/ptx/parser.h"

#include <utility>

#include "runtime/base/strings.h"

namespace solstice::ptx {

using base::StrCat;

Type MakeType(std::string_view name) {
  static const std::unordered_map<std::string_view, int> kBytes = {
      {"pred", 0},    {"b8", 1},    {"b16", 2},    {"b32", 4},    {"b64", 8},        {"b128", 16},  {"u8", 1},
      {"u16", 2},     {"u32", 4},   {"u64", 8},    {"s8", 1},     {"s16", 2},        {"s32", 4},    {"s64", 8},
      {"f16", 2},     {"f16x2", 4}, {"bf16", 2},   {"bf16x2", 4}, {"tf32", 4},       {"f32", 4},    {"f64", 8},
      {"e4m3", 1},    {"e5m2", 1},  {"e4m3x2", 2}, {"e5m2x2", 2}, {"e2m1x2", 1},     {"e3m2x2", 2}, {"e2m3x2", 2},
      {"ue8m0x2", 2}, {"u16x2", 4}, {"s16x2", 4},  {"texref", 8}, {"samplerref", 8}, {"surfref", 8}};
  auto found = kBytes.find(name);
  return Type{std::string(name), found == kBytes.end() ? 0 : found->second};
}

void Parser::Advance() {
  if (has_ahead_) {
    token_ = ahead_;
    has_ahead_ = false;
  } else {
    lexer_.Next(&token_);
  }
}

const Token& Parser::Peek() {
  if (!has_ahead_) {
    ahead_ = token_.kind == Token::Kind::kError ? token_ : Token();
    lexer_.Next(&ahead_);
    has_ahead_ = true;
  }
  return ahead_;
}

bool Parser::Accept(int c) {
  if (!IsPunctuation(c)) return false;
  Advance();
  return true;
}

std::string Parser::Found() const {
  switch (token_.kind) {
    case Token::Kind::kEnd:
      return "the end of the text";
    case Token::Kind::kDot:
      return StrCat("\".", base::Quote(token_.text, 40).substr(1));
    default:
      return base::Quote(token_.text, 40);
  }
}

// The first failure stays: what follows it is a consequence. A lexical error is its own message.
bool Parser::FailAt(int line, std::string_view message) {
  if (!error_.ok()) return false;
  if (token_.kind == Token::Kind::kError) {
    error_ = base::InvalidArgument(StrCat("ptx:", token_.line, ": ", token_.text));
  } else {
    error_ = base::InvalidArgument(StrCat("ptx:", line, ": ", message));
  }
  return false;
}

bool Parser::Expect(int c, std::string_view where) {
  if (Accept(c)) return true;
  return Fail(StrCat("expected '", static_cast<char>(c), "' ", where, ", found ", Found()));
}

bool Parser::ExpectIdentifier(std::string_view* name, std::string_view what) {
  if (!IsIdentifier()) return Fail(StrCat("expected ", what, ", found ", Found()));
  *name = token_.text;
  Advance();
  return true;
}

bool Parser::ExpectInt(int64_t* value, int64_t low, int64_t high, std::string_view what) {
  if (token_.kind != Token::Kind::kInteger) return Fail(StrCat("expected ", what, ", found ", Found()));
  if (token_.bits > static_cast<uint64_t>(INT64_MAX) || static_cast<int64_t>(token_.bits) < low ||
      static_cast<int64_t>(token_.bits) > high) {
    return Fail(StrCat(what, " must be from ", low, " to ", high, ", found ", token_.bits));
  }
  *value = static_cast<int64_t>(token_.bits);
  Advance();
  return true;
}

bool Parser::Count(size_t* counter, size_t limit, size_t more, std::string_view what) {
  if (more > limit - *counter) return Fail(StrCat("the module has more than ", limit, " ", what));
  *counter += more;
  return true;
}

StatusOr<Module> Parser::Run() {
  Advance();
  while (token_.kind != Token::Kind::kEnd) {
    if (!ParseStatement()) return error_;
  }
  if (!seen_version_) Fail("there is no .version directive: this is not PTX");
  if (error_.ok()) Resolve();
  if (!error_.ok()) return error_;
  return std::move(module_);
}

StatusOr<Module> Parse(std::string_view text) {
  if (text.size() > Limits::kTextBytes) {
    return base::InvalidArgument(
        StrCat("ptx:1: the text has ", text.size(), " bytes; the most is ", Limits::kTextBytes));
  }
  // nvJitLink counts the terminating NUL into the size that it reports.
  while (!text.empty() && text.back() == '\0') text.remove_suffix(1);
  return Parser(text).Run();
}

const Function* Module::FindFunction(std::string_view name) const {
  auto alias = aliases.find(name);
  auto found = function_index.find(alias == aliases.end() ? name : std::string_view(alias->second));
  return found == function_index.end() ? nullptr : &functions[found->second];
}

const Variable* Module::FindVariable(std::string_view name) const {
  auto found = variable_index.find(name);
  return found == variable_index.end() ? nullptr : &variables[found->second];
}

}  // namespace solstice::ptx
