// PTX text cut into tokens, one at a time, without copying. Internal to the parser.
#pragma once

#include <cstdint>
#include <string_view>

namespace solstice::ptx {

struct Token {
  enum class Kind : uint8_t {
    kEnd,
    kError,       // text: what is wrong
    kIdentifier,  // text: "add", "%r1", "$L__BB0_1", "_"
    kDot,         // text without the dot: "global", "shared::cluster"
    kInteger,     // bits, is_unsigned
    kFloat,       // bits, float_bytes
    kString,      // text without the quotes
    kPunctuation  // punctuation: a character, or two as Pair(a, b)
  };
  Kind kind = Kind::kEnd;
  bool is_unsigned = false;
  uint8_t float_bytes = 0;
  int punctuation = 0;
  int line = 1;
  std::string_view text;
  uint64_t bits = 0;
};

constexpr int Pair(char first, char second) { return first << 8 | second; }

// Reads `text`, which must outlive the lexer and its tokens. Not thread safe.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : at_(text.data()), end_(text.data() + text.size()) {}

  // The next token. After kEnd or kError the same again.
  void Next(Token* token);

 private:
  bool SkipBlanks(Token* token);
  void Number(Token* token);
  void FloatBits(Token* token, int digits);
  void Decimal(Token* token);
  void Punctuation(Token* token);
  void Fail(Token* token, std::string_view message);

  const char* at_;
  const char* end_;
  int line_ = 1;
};

}  // namespace solstice::ptx
