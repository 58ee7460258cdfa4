#include "runtime/expr/formula.h"

#include <cmath>

#include "runtime/base/strings.h"
#include "runtime/expr/lexer.h"
#include "runtime/expr/node.h"

namespace solstice::expr {
namespace {

using base::Quote;
using base::StrCat;

StatusOr<Value> WithColumn(StatusOr<Value> result, int column) {
  if (result.ok()) return result;
  return base::Annotate(result.status(), StrCat("column ", column));
}

StatusOr<Value> Evaluate(const Node& node, const Scope& scope);

StatusOr<Value> EvaluateName(const Node& node, const Scope& scope) {
  StatusOr<Value> value = scope.Lookup(node.text);
  if (value.ok()) return value;
  if (!absl::IsNotFound(value.status())) return WithColumn(value, node.column);
  std::vector<std::string> names = scope.Names();
  names.insert(names.end(), {"True", "False"});
  std::string nearest = base::Nearest(node.text, names);
  return ErrorAt(node.column, StrCat("unknown name ", Quote(node.text)),
                 nearest.empty() ? "" : StrCat("did you mean ", Quote(nearest), "?"));
}

StatusOr<Value> EvaluateChain(const Node& node, const Scope& scope) {
  SOLSTICE_ASSIGN_OR_RETURN(Value value, Evaluate(*node.children[0], scope));
  for (size_t i = 0; i < node.ops.size(); ++i) {
    SOLSTICE_ASSIGN_OR_RETURN(Value right, Evaluate(*node.children[i + 1], scope));
    StatusOr<Value> result = Apply(node.ops[i], value, right);
    if (!result.ok()) return WithColumn(result, node.op_columns[i]);
    value = *result;
  }
  return value;
}

// a < b <= c: each operand once, stopping at the first that does not hold.
StatusOr<Value> EvaluateComparison(const Node& node, const Scope& scope) {
  SOLSTICE_ASSIGN_OR_RETURN(Value left, Evaluate(*node.children[0], scope));
  for (size_t i = 0; i < node.ops.size(); ++i) {
    SOLSTICE_ASSIGN_OR_RETURN(Value right, Evaluate(*node.children[i + 1], scope));
    if (!Compare(node.ops[i], left, right)) return Value(false);
    left = right;
  }
  return Value(true);
}

StatusOr<Value> EvaluateLogical(const Node& node, const Scope& scope) {
  Value value = false;
  for (const auto& child : node.children) {
    SOLSTICE_ASSIGN_OR_RETURN(value, Evaluate(*child, scope));
    if (IsTrue(value) == (node.kind == Node::Kind::kOr)) break;
  }
  return value;
}

StatusOr<Value> EvaluateCall(const Node& node, const Scope& scope) {
  std::vector<Value> arguments;
  for (const auto& child : node.children) {
    SOLSTICE_ASSIGN_OR_RETURN(Value argument, Evaluate(*child, scope));
    arguments.push_back(argument);
  }
  if (IsBuiltinFunction(node.text)) return WithColumn(CallBuiltin(node.text, arguments), node.column);
  StatusOr<Value> result = scope.Call(node.text, node.raw_arguments, arguments);
  if (result.ok()) return result;
  if (!absl::IsNotFound(result.status())) return WithColumn(result, node.column);
  std::string nearest = base::Nearest(node.text, BuiltinNames());
  return ErrorAt(node.column, StrCat("unknown function ", Quote(node.text)),
                 nearest.empty() ? StrCat("there are ", base::Join(BuiltinNames(), ", "))
                                 : StrCat("did you mean ", Quote(nearest), "?"));
}

StatusOr<Value> Evaluate(const Node& node, const Scope& scope) {
  switch (node.kind) {
    case Node::Kind::kLiteral:
      return node.literal;
    case Node::Kind::kName:
      return EvaluateName(node, scope);
    case Node::Kind::kChain:
      return EvaluateChain(node, scope);
    case Node::Kind::kUnary: {
      SOLSTICE_ASSIGN_OR_RETURN(Value operand, Evaluate(*node.children[0], scope));
      if (node.ops[0] == Op::kNegate) return WithColumn(Negate(operand), node.column);
      if (std::holds_alternative<double>(operand)) return operand;
      return WithColumn(Apply(Op::kAdd, operand, Value(int64_t{0})), node.column);
    }
    case Node::Kind::kPower: {
      SOLSTICE_ASSIGN_OR_RETURN(Value base, Evaluate(*node.children[0], scope));
      SOLSTICE_ASSIGN_OR_RETURN(Value exponent, Evaluate(*node.children[1], scope));
      return WithColumn(Apply(Op::kPower, base, exponent), node.column);
    }
    case Node::Kind::kComparison:
      return EvaluateComparison(node, scope);
    case Node::Kind::kAnd:
    case Node::Kind::kOr:
      return EvaluateLogical(node, scope);
    case Node::Kind::kNot: {
      SOLSTICE_ASSIGN_OR_RETURN(Value operand, Evaluate(*node.children[0], scope));
      return Value(!IsTrue(operand));
    }
    case Node::Kind::kConditional: {
      SOLSTICE_ASSIGN_OR_RETURN(Value condition, Evaluate(*node.children[1], scope));
      return Evaluate(*node.children[IsTrue(condition) ? 0 : 2], scope);
    }
    case Node::Kind::kCall:
      return EvaluateCall(node, scope);
    case Node::Kind::kKernel: {
      StatusOr<Value> value = scope.Lookup(node.text);
      return value.ok() ? *value : Value(int64_t{0});
    }
  }
  return base::Internal("formula node of no kind");
}

}  // namespace

StatusOr<Value> Scope::Call(std::string_view function, const std::vector<std::string>& raw_arguments,
                            const std::vector<Value>& arguments) const {
  return base::NotFound(StrCat("no function ", Quote(function)));
}

StatusOr<Value> ListScope::Lookup(std::string_view name) const {
  for (auto it = values_.rbegin(); it != values_.rend(); ++it) {
    if (it->first == name) return it->second;
  }
  return base::NotFound(StrCat("no name ", Quote(name)));
}

std::vector<std::string> ListScope::Names() const {
  std::vector<std::string> names;
  for (const auto& entry : values_) names.push_back(entry.first);
  return names;
}

bool IsIdentifier(std::string_view text) {
  auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (text.empty() || !letter(text[0])) return false;
  for (char c : text) {
    if (!letter(c) && !(c >= '0' && c <= '9')) return false;
  }
  return true;
}

StatusOr<Value> Formula::Evaluate(const Scope& scope) const {
  if (root_ == nullptr) return base::Internal("evaluated a formula that was not parsed");
  return expr::Evaluate(*root_, scope);
}

StatusOr<int64_t> Formula::EvaluateInteger(const Scope& scope) const {
  SOLSTICE_ASSIGN_OR_RETURN(Value value, Evaluate(scope));
  if (const int64_t* integer = std::get_if<int64_t>(&value)) return *integer;
  if (const bool* flag = std::get_if<bool>(&value)) return int64_t{*flag};
  double number = std::get<double>(value);
  if (!std::isfinite(number))
    return ErrorAt(root_->column, StrCat("the result is ", ToText(value), ", not an integer"));
  return ErrorAt(root_->column, StrCat("the result is the float ", ToText(value), ", not an integer"),
                 "use // instead of /, or floor() or ceil()");
}

}  // namespace solstice::expr
