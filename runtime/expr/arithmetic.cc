// Operators and built-in functions on values: exact 64-bit integers, IEEE doubles, Python's rules.
#include <bit>
#include <cfloat>
#include <cmath>
#include <limits>

#include "runtime/base/strings.h"
#include "runtime/expr/node.h"

namespace solstice::expr {
namespace {

using base::InvalidArgument;
using base::StrCat;

bool IsFloat(const Value& value) { return std::holds_alternative<double>(value); }

int64_t Integer(const Value& value) {
  return std::holds_alternative<bool>(value) ? int64_t{std::get<bool>(value)} : std::get<int64_t>(value);
}

Status Overflow() {
  return InvalidArgument("integer overflow", "integers are exact 64 bit; / and floats have more range");
}
Status DivisionByZero() { return InvalidArgument("division by zero"); }

StatusOr<Value> Power(int64_t base, int64_t exponent) {
  int64_t result = 1;
  while (true) {
    if ((exponent & 1) != 0 && __builtin_mul_overflow(result, base, &result)) return Overflow();
    exponent >>= 1;
    if (exponent == 0) return Value(result);
    if (__builtin_mul_overflow(base, base, &base)) return Overflow();
  }
}

// Rounds towards minus infinity, as Python does.
void FloorDivide(int64_t a, int64_t b, int64_t* quotient, int64_t* remainder) {
  *quotient = a / b;
  *remainder = a % b;
  if (*remainder != 0 && (*remainder < 0) != (b < 0)) {
    --*quotient;
    *remainder += b;
  }
}

// Correctly rounded where both are exact doubles; beyond that through a wider division.
double Quotient(int64_t a, int64_t b) {
  auto exact = [](int64_t v) { return v >= -(int64_t{1} << 53) && v <= int64_t{1} << 53; };
  if (exact(a) && exact(b)) return static_cast<double>(a) / static_cast<double>(b);
  return static_cast<double>(static_cast<long double>(a) / static_cast<long double>(b));
}

StatusOr<Value> ApplyIntegers(Op op, int64_t a, int64_t b) {
  int64_t result = 0, remainder = 0;
  switch (op) {
    case Op::kAdd:
      if (__builtin_add_overflow(a, b, &result)) return Overflow();
      return Value(result);
    case Op::kSubtract:
      if (__builtin_sub_overflow(a, b, &result)) return Overflow();
      return Value(result);
    case Op::kMultiply:
      if (__builtin_mul_overflow(a, b, &result)) return Overflow();
      return Value(result);
    case Op::kDivide:
      if (b == 0) return DivisionByZero();
      return Value(Quotient(a, b));
    case Op::kFloorDivide:
    case Op::kModulo:
      if (b == 0) return DivisionByZero();
      if (b == -1) {  // a % -1 traps for the smallest integer
        if (op == Op::kModulo) return Value(int64_t{0});
        return Negate(Value(a));
      }
      FloorDivide(a, b, &result, &remainder);
      return Value(op == Op::kModulo ? remainder : result);
    case Op::kPower:
      if (b >= 0) return Power(a, b);
      if (a == 0) return DivisionByZero();
      return Value(std::pow(static_cast<double>(a), static_cast<double>(b)));
    default:
      return base::Internal("not an operator of two integers");
  }
}

StatusOr<Value> ApplyFloats(Op op, double a, double b) {
  switch (op) {
    case Op::kAdd:
      return Value(a + b);
    case Op::kSubtract:
      return Value(a - b);
    case Op::kMultiply:
      return Value(a * b);
    case Op::kDivide:
      if (b == 0) return DivisionByZero();
      return Value(a / b);
    case Op::kFloorDivide:
    case Op::kModulo: {
      if (b == 0) return DivisionByZero();
      double remainder = std::fmod(a, b);
      double quotient = (a - remainder) / b;
      if (remainder != 0 && (remainder < 0) != (b < 0)) {
        remainder += b;
        quotient -= 1;
      }
      if (op == Op::kModulo) return Value(remainder == 0 ? std::copysign(0.0, b) : remainder);
      double floor = std::floor(quotient);
      return Value(quotient - floor > 0.5 ? floor + 1 : floor);
    }
    case Op::kPower: {
      if (a == 0 && b < 0) return DivisionByZero();
      double result = std::pow(a, b);
      if (std::isnan(result) && !std::isnan(a) && !std::isnan(b)) {
        return InvalidArgument("a negative number to a fractional power is not real");
      }
      return Value(result);
    }
    default:
      return base::Internal("not an operator of two numbers");
  }
}

StatusOr<Value> ToInteger(double value) {
  // 2^63 itself does not fit.
  if (!(value >= -0x1p63 && value < 0x1p63)) {
    return InvalidArgument(StrCat(ToText(Value(value)), " does not fit in a 64-bit integer"));
  }
  return Value(static_cast<int64_t>(value));
}

StatusOr<Value> CeilDiv(int64_t a, int64_t b) {
  if (b == 0) return DivisionByZero();
  if (b == -1) return Negate(Value(a));
  int64_t quotient = a / b;
  if (a % b != 0 && (a < 0) == (b < 0)) ++quotient;
  return Value(quotient);
}

StatusOr<Value> NextPow2(int64_t n) {
  if (n <= 1) return Value(int64_t{1});
  if (n > int64_t{1} << 62) return Overflow();
  return Value(static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))));
}

StatusOr<Value> IntegerFunction(std::string_view name, const std::vector<Value>& arguments) {
  for (const Value& argument : arguments) {
    if (IsFloat(argument)) {
      return InvalidArgument(StrCat(name, "() takes integers, not ", ToText(argument)), "use // or floor()");
    }
  }
  if (name == "next_pow2") return NextPow2(Integer(arguments[0]));
  int64_t a = Integer(arguments[0]), b = Integer(arguments[1]);
  if (name == "ceil_div") return CeilDiv(a, b);
  if (b <= 0) return InvalidArgument(StrCat("round_up() to a multiple of ", b), "the multiple must be positive");
  SOLSTICE_ASSIGN_OR_RETURN(Value count, CeilDiv(a, b));
  return ApplyIntegers(Op::kMultiply, std::get<int64_t>(count), b);
}

StatusOr<Value> FloatFunction(std::string_view name, double x) {
  if (name == "exp2") return Value(std::exp2(x));
  if (name == "log2") {
    if (!(x > 0)) return InvalidArgument(StrCat("log2() of ", ToText(Value(x))), "its argument must be positive");
    return Value(std::log2(x));
  }
  if (!(x >= 0)) return InvalidArgument(StrCat("sqrt() of ", ToText(Value(x))), "its argument must not be negative");
  return Value(std::sqrt(x));
}

constexpr int kMany = 1 << 20;
constexpr Builtin kBuiltins[] = {{"ceil_div", 2, 2}, {"round_up", 2, 2}, {"next_pow2", 1, 1}, {"min", 1, kMany},
                                 {"max", 1, kMany},  {"abs", 1, 1},      {"floor", 1, 1},     {"ceil", 1, 1},
                                 {"log2", 1, 1},     {"exp2", 1, 1},     {"sqrt", 1, 1}};

}  // namespace

const Builtin* FindBuiltin(std::string_view name) {
  for (const Builtin& builtin : kBuiltins) {
    if (builtin.name == name) return &builtin;
  }
  return nullptr;
}

std::vector<std::string> BuiltinNames() {
  std::vector<std::string> names;
  for (const Builtin& builtin : kBuiltins) names.emplace_back(builtin.name);
  return names;
}

bool IsBuiltinFunction(std::string_view name) { return FindBuiltin(name) != nullptr; }

std::string ToText(const Value& value) {
  if (const bool* flag = std::get_if<bool>(&value)) return *flag ? "True" : "False";
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return StrCat(*integer);
  return StrCat(std::get<double>(value));
}

bool IsTrue(const Value& value) { return IsFloat(value) ? std::get<double>(value) != 0 : Integer(value) != 0; }

double ToDouble(const Value& value) {
  return IsFloat(value) ? std::get<double>(value) : static_cast<double>(Integer(value));
}

StatusOr<Value> Apply(Op op, const Value& a, const Value& b) {
  if (!IsFloat(a) && !IsFloat(b)) return ApplyIntegers(op, Integer(a), Integer(b));
  return ApplyFloats(op, ToDouble(a), ToDouble(b));
}

StatusOr<Value> Negate(const Value& a) {
  if (IsFloat(a)) return Value(-std::get<double>(a));
  int64_t result = 0;
  if (__builtin_sub_overflow(int64_t{0}, Integer(a), &result)) return Overflow();
  return Value(result);
}

bool Compare(Op op, const Value& a, const Value& b) {
  // A long double holds every int64 and every double, so mixed comparisons are exact, as Python's.
  static_assert(std::numeric_limits<long double>::digits >= 64);
  auto wide = [](const Value& v) {
    return IsFloat(v) ? static_cast<long double>(std::get<double>(v)) : static_cast<long double>(Integer(v));
  };
  long double x = wide(a), y = wide(b);
  switch (op) {
    case Op::kEqual:
      return x == y;
    case Op::kNotEqual:
      return x != y;
    case Op::kLess:
      return x < y;
    case Op::kLessEqual:
      return x <= y;
    case Op::kGreater:
      return x > y;
    default:
      return x >= y;
  }
}

StatusOr<Value> CallBuiltin(std::string_view name, const std::vector<Value>& arguments) {
  if (name == "min" || name == "max") {
    Op better = name == "min" ? Op::kLess : Op::kGreater;
    Value best = arguments[0];
    for (const Value& argument : arguments) {
      if (Compare(better, argument, best)) best = argument;
    }
    return best;
  }
  if (name == "ceil_div" || name == "round_up" || name == "next_pow2") return IntegerFunction(name, arguments);
  const Value& x = arguments[0];
  if (name == "abs") {
    if (IsFloat(x)) return Value(std::fabs(std::get<double>(x)));
    return Integer(x) < 0 ? Negate(x) : StatusOr<Value>(Value(Integer(x)));
  }
  if (name == "floor" || name == "ceil") {
    if (!IsFloat(x)) return Value(Integer(x));
    return ToInteger(name == "floor" ? std::floor(std::get<double>(x)) : std::ceil(std::get<double>(x)));
  }
  return FloatFunction(name, ToDouble(x));
}

}  // namespace solstice::expr
