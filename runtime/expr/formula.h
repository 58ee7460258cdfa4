// Formulas over named values: axis expressions of definitions, and every number in a launch plan.
//
// Python's operators and precedence: + - * / // % ** (right), unary + -, comparisons (chained), and or not, x if c else
// y, parentheses; integers are exact 64 bit (overflow is an error), `/` is float, // and % floor. Literals: decimal and
// 0x integers, floats, True, False. Functions: ceil_div round_up next_pow2 min max abs floor ceil log2 exp2 sqrt, and
// those a Scope adds (occupancy). Text at most 4096 bytes, nesting at most 64.
//
// min, max, and, or give back an operand as Python does; log2, exp2, sqrt and / give floats; floor and ceil integers.
// A float operation may overflow to an infinity; EvaluateInteger refuses it.
//
// Errors are INVALID_ARGUMENT: "column 7: division by zero", with a mend where there is one ("did you mean"). Columns
// count bytes of the formula from 1; callers put file and line before them.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "runtime/base/status.h"

namespace solstice::expr {

using Value = std::variant<bool, int64_t, double>;

// Where names get their values. Not thread-safe while being filled.
class Scope {
 public:
  virtual ~Scope() = default;
  // NOT_FOUND if there is no such name.
  virtual StatusOr<Value> Lookup(std::string_view name) const = 0;
  // Functions that are not built in; NOT_FOUND if there is none. `raw_arguments` are the arguments as written. The
  // first may name a kernel ("k", "ops::k<float, N>"), which is not evaluated: its value is that of a variable of this
  // name, or 0, and it does not count among Formula::names().
  virtual StatusOr<Value> Call(std::string_view function, const std::vector<std::string>& raw_arguments,
                               const std::vector<Value>& arguments) const;
  // For "did you mean".
  virtual std::vector<std::string> Names() const { return {}; }
};

// A Scope over a list, later entries hiding earlier ones.
class ListScope : public Scope {
 public:
  void Add(std::string name, Value value) { values_.emplace_back(std::move(name), value); }
  StatusOr<Value> Lookup(std::string_view name) const override;
  std::vector<std::string> Names() const override;

 private:
  std::vector<std::pair<std::string, Value>> values_;
};

// "7", "2.5", "True".
std::string ToText(const Value& value);
// As Python's bool().
bool IsTrue(const Value& value);
double ToDouble(const Value& value);
// [A-Za-z_][A-Za-z0-9_]*
bool IsIdentifier(std::string_view text);
// and or not if else True False, and the names of built-in functions: no variable can have such a name.
bool IsReservedName(std::string_view name);
bool IsBuiltinFunction(std::string_view name);

struct Node;

// A parsed formula: immutable, cheap to copy, safe to share between threads.
class Formula {
 public:
  // INVALID_ARGUMENT with the column for a syntax error.
  static StatusOr<Formula> Parse(std::string_view text);

  StatusOr<Value> Evaluate(const Scope& scope) const;
  // As Evaluate, and the result must be an integer (bool counts; 2.0 does not: the error says to use // or floor()).
  StatusOr<int64_t> EvaluateInteger(const Scope& scope) const;
  // Names it refers to, in order of appearance, without duplicates (function names left out).
  const std::vector<std::string>& names() const { return *names_; }
  // Functions it calls.
  const std::vector<std::string>& functions() const { return *functions_; }
  const std::string& text() const { return *text_; }

 private:
  std::shared_ptr<const Node> root_;
  std::shared_ptr<const std::vector<std::string>> names_, functions_;
  std::shared_ptr<const std::string> text_;
};

}  // namespace solstice::expr
