#include "runtime/ptx/lexer.h"

#include <array>
#include <charconv>
#include <cstring>

namespace solstice::ptx {
namespace {

enum CharacterClass : uint8_t { kWord = 1, kDigit = 2, kHex = 4, kStart = 8, kBlank = 16 };

constexpr std::array<uint8_t, 256> MakeClasses() {
  std::array<uint8_t, 256> classes{};
  for (int c = 'a'; c <= 'z'; ++c) classes[c] = kWord | kStart | (c <= 'f' ? kHex : 0);
  for (int c = 'A'; c <= 'Z'; ++c) classes[c] = kWord | kStart | (c <= 'F' ? kHex : 0);
  for (int c = '0'; c <= '9'; ++c) classes[c] = kWord | kDigit | kHex;
  classes['_'] = classes['$'] = kWord | kStart;
  classes[' '] = classes['\t'] = classes['\r'] = classes['\f'] = classes['\v'] = kBlank;
  return classes;
}
constexpr std::array<uint8_t, 256> kClasses = MakeClasses();

bool Is(char c, uint8_t which) { return (kClasses[static_cast<unsigned char>(c)] & which) != 0; }

int HexValue(char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; }

}  // namespace

void Lexer::Fail(Token* token, std::string_view message) {
  token->kind = Token::Kind::kError;
  token->text = message;
  at_ = end_;
}

// False: an error was put into the token.
bool Lexer::SkipBlanks(Token* token) {
  while (at_ < end_) {
    char c = *at_;
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (Is(c, kBlank)) {
      ++at_;
    } else if (c == '/' && end_ - at_ > 1 && at_[1] == '/') {
      const void* newline = std::memchr(at_, '\n', end_ - at_);
      at_ = newline == nullptr ? end_ : static_cast<const char*>(newline);
    } else if (c == '/' && end_ - at_ > 1 && at_[1] == '*') {
      token->line = line_;
      for (at_ += 2; end_ - at_ > 1 && !(at_[0] == '*' && at_[1] == '/'); ++at_) line_ += *at_ == '\n';
      if (end_ - at_ < 2) {
        Fail(token, "the comment that starts here has no end");
        return false;
      }
      at_ += 2;
    } else {
      return true;
    }
  }
  return true;
}

void Lexer::Next(Token* token) {
  if (token->kind == Token::Kind::kError) return;
  if (!SkipBlanks(token)) return;
  token->line = line_;
  if (at_ == end_) {
    token->kind = Token::Kind::kEnd;
    token->text = {};
    return;
  }
  const char* start = at_;
  char c = *at_;
  char next = end_ - at_ > 1 ? at_[1] : '\0';
  if (Is(c, kStart) || (c == '%' && Is(next, kWord))) {
    for (++at_; at_ < end_ && Is(*at_, kWord);) ++at_;
    token->kind = Token::Kind::kIdentifier;
    token->text = {start, static_cast<size_t>(at_ - start)};
  } else if (c == '.' && Is(next, kWord)) {
    for (++at_; at_ < end_;) {
      if (Is(*at_, kWord)) {
        ++at_;
      } else if (*at_ == ':' && end_ - at_ > 2 && at_[1] == ':' && Is(at_[2], kWord)) {
        at_ += 3;
      } else {
        break;
      }
    }
    token->kind = Token::Kind::kDot;
    token->text = {start + 1, static_cast<size_t>(at_ - start - 1)};
  } else if (Is(c, kDigit)) {
    Number(token);
  } else if (c == '"') {
    const void* quote = std::memchr(at_ + 1, '"', end_ - at_ - 1);
    if (quote == nullptr) return Fail(token, "the string that starts here has no end");
    at_ = static_cast<const char*>(quote) + 1;
    token->kind = Token::Kind::kString;
    token->text = {start + 1, static_cast<size_t>(at_ - start - 2)};
    for (char in_string : token->text) line_ += in_string == '\n';
  } else {
    Punctuation(token);
  }
}

void Lexer::Punctuation(Token* token) {
  char c = *at_;
  if (c <= ' ' || c >= 127) return Fail(token, "a byte that PTX does not know");
  char next = end_ - at_ > 1 ? at_[1] : '\0';
  bool two = (next == '=' && (c == '<' || c == '>' || c == '=' || c == '!')) ||
             (next == c && (c == '<' || c == '>' || c == '&' || c == '|'));
  token->kind = Token::Kind::kPunctuation;
  token->punctuation = two ? Pair(c, next) : c;
  token->text = {at_, static_cast<size_t>(two ? 2 : 1)};
  at_ += two ? 2 : 1;
}

// 0f3F800000 and 0d3FF0000000000000: the bits of a float and of a double.
void Lexer::FloatBits(Token* token, int digits) {
  const char* start = at_;
  at_ += 2;
  uint64_t bits = 0;
  int seen = 0;
  for (; at_ < end_ && Is(*at_, kHex); ++at_, ++seen) {
    if (seen < digits) bits = bits << 4 | HexValue(*at_);
  }
  if (seen != digits) return Fail(token, "a floating-point constant needs 8 (0f) or 16 (0d) hexadecimal digits");
  token->kind = Token::Kind::kFloat;
  token->float_bytes = digits / 2;
  token->bits = bits;
  token->text = {start, static_cast<size_t>(at_ - start)};
}

// At a '.' or exponent behind digits, which start at token->text.
void Lexer::Decimal(Token* token) {
  const char* start = token->text.data();
  double value = 0;
  auto result = std::from_chars(start, end_, value, std::chars_format::general);
  if (result.ec == std::errc::result_out_of_range) return Fail(token, "a floating-point constant is out of range");
  if (result.ec != std::errc()) return Fail(token, "a malformed floating-point constant");
  at_ = result.ptr;
  token->kind = Token::Kind::kFloat;
  token->float_bytes = 8;
  std::memcpy(&token->bits, &value, sizeof value);
  token->text = {start, static_cast<size_t>(at_ - start)};
}

void Lexer::Number(Token* token) {
  const char* start = at_;
  char mark = end_ - at_ > 1 && *at_ == '0' ? static_cast<char>(at_[1] | 0x20) : '\0';
  if (mark == 'f') return FloatBits(token, 8);
  if (mark == 'd') return FloatBits(token, 16);
  unsigned base = 10;
  if (mark == 'x' || mark == 'b') {
    base = mark == 'x' ? 16 : 2;
    at_ += 2;
  }
  const char* digits = at_;
  while (at_ < end_ && (base == 16 ? Is(*at_, kHex) : Is(*at_, kDigit))) ++at_;
  token->text = {start, static_cast<size_t>(at_ - start)};
  if (base == 10 && at_ < end_) {
    bool point = *at_ == '.' && !(end_ - at_ > 1 && Is(at_[1], kStart));
    bool exponent =
        (*at_ == 'e' || *at_ == 'E') && end_ - at_ > 1 && (Is(at_[1], kDigit) || at_[1] == '-' || at_[1] == '+');
    if (point || exponent) return Decimal(token);
  }
  if (base == 10 && *digits == '0' && at_ - digits > 1) base = 8;
  if (at_ == digits) return Fail(token, "a number without digits");
  uint64_t value = 0;
  for (const char* digit = digits; digit < at_; ++digit) {
    unsigned v = HexValue(*digit);
    if (v >= base) return Fail(token, "a digit that the number's base does not have");
    if (__builtin_mul_overflow(value, uint64_t{base}, &value) || __builtin_add_overflow(value, uint64_t{v}, &value)) {
      return Fail(token, "an integer of more than 64 bits");
    }
  }
  token->is_unsigned = value >> 63 != 0;
  if (at_ < end_ && (*at_ == 'U' || *at_ == 'u')) {
    token->is_unsigned = true;
    ++at_;
  }
  if (at_ < end_ && Is(*at_, kWord)) return Fail(token, "a number runs into a word");
  token->kind = Token::Kind::kInteger;
  token->bits = value;
}

}  // namespace solstice::ptx
