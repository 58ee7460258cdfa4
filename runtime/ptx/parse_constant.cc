// Constant expressions: literals, and C's operators over 64-bit integers.
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/ptx/parser.h"

namespace solstice::ptx {
namespace {

// 0: not a binary operator.
int PrecedenceOf(int operation) {
  switch (operation) {
    case Pair('|', '|'):
      return 1;
    case Pair('&', '&'):
      return 2;
    case '|':
      return 3;
    case '^':
      return 4;
    case '&':
      return 5;
    case Pair('=', '='):
    case Pair('!', '='):
      return 6;
    case '<':
    case '>':
    case Pair('<', '='):
    case Pair('>', '='):
      return 7;
    case Pair('<', '<'):
    case Pair('>', '>'):
      return 8;
    case '+':
    case '-':
      return 9;
    case '*':
    case '/':
    case '%':
      return 10;
    default:
      return 0;
  }
}

constexpr uint64_t kWarpSize = 32;

template <typename T>
bool Compare(int operation, T a, T b) {
  switch (operation) {
    case Pair('=', '='):
      return a == b;
    case Pair('!', '='):
      return a != b;
    case '<':
      return a < b;
    case '>':
      return a > b;
    case Pair('<', '='):
      return a <= b;
    default:
      return a >= b;
  }
}

uint64_t Shift(int operation, uint64_t value, uint64_t by, bool is_unsigned) {
  if (operation == Pair('<', '<')) return by > 63 ? 0 : value << by;
  if (is_unsigned) return by > 63 ? 0 : value >> by;
  return static_cast<uint64_t>(static_cast<int64_t>(value) >> (by > 63 ? 63 : by));
}

}  // namespace

bool Parser::ParseConstant(Constant* value, int depth) { return ParseBinary(value, 1, depth); }

bool Parser::ParseBinary(Constant* value, int precedence, int depth) {
  if (depth > Limits::kExpressionDepth) return Fail("a constant expression is nested too deep");
  if (!ParseUnary(value, depth + 1)) return false;
  while (token_.kind == Token::Kind::kPunctuation) {
    int operation = token_.punctuation;
    int own = PrecedenceOf(operation);
    if (own < precedence || own == 0) return true;
    if (value->is_float) return Fail("arithmetic on floating-point constants is not supported");
    Advance();
    Constant right;
    if (!ParseBinary(&right, own + 1, depth + 1)) return false;
    if (right.is_float) return Fail("arithmetic on floating-point constants is not supported");
    if (!Combine(operation, value, right)) return false;
  }
  return true;
}

bool Parser::Combine(int operation, Constant* left, const Constant& right) {
  bool is_unsigned = left->is_unsigned || right.is_unsigned;
  uint64_t a = left->bits, b = right.bits;
  auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
  bool boolean = false;
  switch (operation) {
    case '+':
      a += b;
      break;
    case '-':
      a -= b;
      break;
    case '*':
      a *= b;
      break;
    case '/':
    case '%':
      if (b == 0) return Fail("division by zero in a constant expression");
      if (is_unsigned) {
        a = operation == '/' ? a / b : a % b;
      } else if (sb == -1) {
        a = operation == '/' ? 0 - a : 0;
      } else {
        a = static_cast<uint64_t>(operation == '/' ? sa / sb : sa % sb);
      }
      break;
    case '&':
      a &= b;
      break;
    case '|':
      a |= b;
      break;
    case '^':
      a ^= b;
      break;
    case Pair('<', '<'):
    case Pair('>', '>'):
      is_unsigned = left->is_unsigned;
      a = Shift(operation, a, b, is_unsigned);
      break;
    case Pair('&', '&'):
      boolean = true;
      a = a != 0 && b != 0;
      break;
    case Pair('|', '|'):
      boolean = true;
      a = a != 0 || b != 0;
      break;
    default:
      boolean = true;
      a = is_unsigned ? Compare(operation, a, b) : Compare(operation, sa, sb);
  }
  left->bits = a;
  left->is_unsigned = is_unsigned && !boolean;
  return true;
}

bool Parser::ParseUnary(Constant* value, int depth) {
  if (depth > Limits::kExpressionDepth) return Fail("a constant expression is nested too deep");
  if (token_.kind == Token::Kind::kInteger || token_.kind == Token::Kind::kFloat) {
    *value = {token_.bits, token_.is_unsigned, token_.kind == Token::Kind::kFloat, token_.float_bytes};
    if (!value->is_float) value->float_bytes = 0;
    Advance();
    return true;
  }
  if (IsIdentifier() && token_.text == "WARP_SZ") {
    *value = {kWarpSize, false, false, 0};
    Advance();
    return true;
  }
  if (Accept('(')) {
    if (IsDot("s64") || IsDot("u64")) {  // a cast
      bool is_unsigned = token_.text == "u64";
      Advance();
      if (!Expect(')', "after the type of a cast") || !ParseUnary(value, depth + 1)) return false;
      if (value->is_float) return Fail("a cast of a floating-point constant is not supported");
      value->is_unsigned = is_unsigned;
      return true;
    }
    return ParseBinary(value, 1, depth + 1) && Expect(')', "in a constant expression");
  }
  if (IsPunctuation('-') || IsPunctuation('+') || IsPunctuation('~') || IsPunctuation('!')) {
    int operation = token_.punctuation;
    Advance();
    if (!ParseUnary(value, depth + 1)) return false;
    if (operation == '+') return true;
    if (value->is_float) {
      if (operation != '-') return Fail("only '-' applies to a floating-point constant");
      value->bits ^= uint64_t{1} << (value->float_bytes * 8 - 1);
      return true;
    }
    uint64_t bits = value->bits;
    value->bits = operation == '-' ? 0 - bits : operation == '~' ? ~bits : bits == 0;
    return true;
  }
  return Fail(base::StrCat("expected a constant, found ", Found()));
}

}  // namespace solstice::ptx
