// Tokens of formulas. Internal to this folder.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace solstice::expr {

enum class TokenKind : uint8_t { kInteger, kFloat, kName, kOperator, kEnd };

struct Token {
  TokenKind kind = TokenKind::kEnd;
  std::string_view text;  // points into the formula's text
  int column = 1;         // of its first byte, from 1
  uint64_t integer = 0;   // at most 2^63: only a unary minus may use 2^63 itself
  double number = 0;
};

// The tokens of `text`, a kEnd token last. INVALID_ARGUMENT "column 7: ...".
StatusOr<std::vector<Token>> Tokenise(std::string_view text);

// INVALID_ARGUMENT "column <column>: <what>".
Status ErrorAt(int column, std::string_view what, std::string_view mend = {});

}  // namespace solstice::expr
