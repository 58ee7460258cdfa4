// The syntax tree of a formula. Internal to this folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/expr/formula.h"

namespace solstice::expr {

inline constexpr size_t kMaxFormulaBytes = 4096;
inline constexpr int kMaxNesting = 64;

enum class Op : uint8_t {
  kNone,
  kAdd,
  kSubtract,
  kMultiply,
  kDivide,
  kFloorDivide,
  kModulo,
  kPower,
  kNegate,
  kPlus,
  kEqual,
  kNotEqual,
  kLess,
  kLessEqual,
  kGreater,
  kGreaterEqual,
};

// Chains of operators of one precedence are one node, so that the depth of the tree is bounded by the nesting that the
// parser counts and not by the length of the text.
struct Node {
  enum class Kind : uint8_t {
    kLiteral,     // literal
    kName,        // text
    kChain,       // children[0] ops[0] children[1] ops[1] ..., from the left
    kUnary,       // ops[0] children[0]
    kPower,       // children[0] ** children[1]
    kComparison,  // children[0] ops[0] children[1] ops[1] ... all hold
    kAnd,
    kOr,           // children
    kNot,          // children[0]
    kConditional,  // children: value, condition, otherwise
    kCall,         // text(children), raw_arguments
    kKernel,       // text: the uninterpreted first argument of a function that is not built in
  };
  Kind kind = Kind::kLiteral;
  int column = 1;
  Value literal = int64_t{0};
  std::string text;
  std::vector<std::unique_ptr<Node>> children;
  std::vector<Op> ops;
  std::vector<int> op_columns;
  std::vector<std::string> raw_arguments;
};

// Built-in functions with the number of arguments they take.
struct Builtin {
  std::string_view name;
  int minimum;
  int maximum;
};
const Builtin* FindBuiltin(std::string_view name);
std::vector<std::string> BuiltinNames();

// Operators and functions on values; errors without a column.
StatusOr<Value> Apply(Op op, const Value& a, const Value& b);
StatusOr<Value> Negate(const Value& a);
bool Compare(Op op, const Value& a, const Value& b);
StatusOr<Value> CallBuiltin(std::string_view name, const std::vector<Value>& arguments);

}  // namespace solstice::expr
