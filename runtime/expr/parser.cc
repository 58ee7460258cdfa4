// Recursive descent over Python's precedence: conditional, or, and, not, comparison, sum, product, sign, power,
// primary.
#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/expr/formula.h"
#include "runtime/expr/lexer.h"
#include "runtime/expr/node.h"

namespace solstice::expr {
namespace {

using base::Quote;
using base::StrCat;
using NodePtr = std::unique_ptr<Node>;

constexpr std::string_view kKeywords[] = {"and", "or", "not", "if", "else", "True", "False"};

bool IsKeyword(std::string_view text) {
  return std::find(std::begin(kKeywords), std::end(kKeywords), text) != std::end(kKeywords);
}

class Parser {
 public:
  Parser(std::string_view text, std::vector<Token> tokens, std::vector<std::string>* names,
         std::vector<std::string>* functions)
      : text_(text), tokens_(std::move(tokens)), names_(names), functions_(functions) {}

  StatusOr<NodePtr> Run() {
    if (Peek().kind == TokenKind::kEnd) return ErrorAt(1, "the formula is empty");
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr root, Conditional());
    if (Peek().kind != TokenKind::kEnd) return Unexpected("an operator or the end");
    return root;
  }

 private:
  // Counts nesting for as long as it lives.
  class Nested {
   public:
    explicit Nested(int* depth) : depth_(depth) { ++*depth_; }
    ~Nested() { --*depth_; }

   private:
    int* depth_;
  };

  const Token& Peek() const { return tokens_[at_]; }
  bool Is(std::string_view text) const { return Peek().kind != TokenKind::kEnd && Peek().text == text; }
  bool Accept(std::string_view text) {
    if (!Is(text)) return false;
    ++at_;
    return true;
  }

  Status Unexpected(std::string_view expected) const {
    if (Peek().kind == TokenKind::kEnd) {
      return ErrorAt(Peek().column, StrCat("the formula ends where ", expected, " is expected"));
    }
    std::string_view mend;
    if (Is(">>")) mend = "there are no bit operators; write x // 2**n";
    if (Is("::")) mend = "names in formulas have no namespaces";
    return ErrorAt(Peek().column, StrCat("unexpected ", Quote(Peek().text, 40), " where ", expected, " is expected"),
                   mend);
  }

  Status TooDeep() const {
    return ErrorAt(Peek().column, StrCat("nested more than ", kMaxNesting, " deep"), "name parts of it with let");
  }

  NodePtr Make(Node::Kind kind, int column) const {
    auto node = std::make_unique<Node>();
    node->kind = kind;
    node->column = column;
    return node;
  }

  StatusOr<NodePtr> Conditional() {
    Nested nested(&depth_);
    if (depth_ > kMaxNesting) return TooDeep();
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr value, Logical(false));
    if (!Is("if")) return value;
    NodePtr node = Make(Node::Kind::kConditional, Peek().column);
    ++at_;
    node->children.push_back(std::move(value));
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr condition, Logical(false));
    node->children.push_back(std::move(condition));
    if (!Accept("else")) return Unexpected("else");
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr otherwise, Conditional());
    node->children.push_back(std::move(otherwise));
    return node;
  }

  // `or` chains of `and` chains.
  StatusOr<NodePtr> Logical(bool conjunction) {
    std::string_view word = conjunction ? "and" : "or";
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr first, conjunction ? Not() : Logical(true));
    if (!Is(word)) return first;
    NodePtr node = Make(conjunction ? Node::Kind::kAnd : Node::Kind::kOr, Peek().column);
    node->children.push_back(std::move(first));
    while (Accept(word)) {
      SOLSTICE_ASSIGN_OR_RETURN(NodePtr next, conjunction ? Not() : Logical(true));
      node->children.push_back(std::move(next));
    }
    return node;
  }

  StatusOr<NodePtr> Not() {
    if (!Is("not")) return Comparison();
    Nested nested(&depth_);
    if (depth_ > kMaxNesting) return TooDeep();
    NodePtr node = Make(Node::Kind::kNot, Peek().column);
    ++at_;
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr operand, Not());
    node->children.push_back(std::move(operand));
    return node;
  }

  using Rule = StatusOr<NodePtr> (Parser::*)();
  // operand (op operand)*
  StatusOr<NodePtr> Chain(Node::Kind kind, std::initializer_list<std::pair<std::string_view, Op>> operators,
                          Rule operand) {
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr first, (this->*operand)());
    NodePtr node;
    while (Peek().kind == TokenKind::kOperator) {
      Op op = Op::kNone;
      for (const auto& [text, candidate] : operators) {
        if (Peek().text == text) op = candidate;
      }
      if (op == Op::kNone) break;
      if (node == nullptr) {
        node = Make(kind, first->column);
        node->children.push_back(std::move(first));
      }
      node->ops.push_back(op);
      node->op_columns.push_back(Peek().column);
      ++at_;
      SOLSTICE_ASSIGN_OR_RETURN(NodePtr next, (this->*operand)());
      node->children.push_back(std::move(next));
    }
    return node == nullptr ? std::move(first) : std::move(node);
  }

  StatusOr<NodePtr> Comparison() {
    return Chain(Node::Kind::kComparison,
                 {{"==", Op::kEqual},
                  {"!=", Op::kNotEqual},
                  {"<", Op::kLess},
                  {"<=", Op::kLessEqual},
                  {">", Op::kGreater},
                  {">=", Op::kGreaterEqual}},
                 &Parser::Sum);
  }
  StatusOr<NodePtr> Sum() {
    return Chain(Node::Kind::kChain, {{"+", Op::kAdd}, {"-", Op::kSubtract}}, &Parser::Product);
  }
  StatusOr<NodePtr> Product() {
    return Chain(Node::Kind::kChain,
                 {{"*", Op::kMultiply}, {"/", Op::kDivide}, {"//", Op::kFloorDivide}, {"%", Op::kModulo}},
                 &Parser::Sign);
  }

  StatusOr<NodePtr> Sign() {
    if (Peek().kind != TokenKind::kOperator || (!Is("-") && !Is("+"))) return Power();
    Nested nested(&depth_);
    if (depth_ > kMaxNesting) return TooDeep();
    bool minus = Is("-");
    NodePtr node = Make(Node::Kind::kUnary, Peek().column);
    ++at_;
    if (minus && Peek().kind == TokenKind::kInteger && Peek().integer == uint64_t{1} << 63 &&
        tokens_[at_ + 1].text != "**") {
      node->kind = Node::Kind::kLiteral;
      node->literal = INT64_MIN;
      ++at_;
      return node;
    }
    node->ops.push_back(minus ? Op::kNegate : Op::kPlus);
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr operand, Sign());
    node->children.push_back(std::move(operand));
    return node;
  }

  // Right-associative, and stronger than a sign on its left but not on its right: -2**-1 is -(2**(-1)).
  StatusOr<NodePtr> Power() {
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr operand, Primary());
    if (!Is("**")) return operand;
    Nested nested(&depth_);
    if (depth_ > kMaxNesting) return TooDeep();
    NodePtr node = Make(Node::Kind::kPower, Peek().column);
    ++at_;
    node->children.push_back(std::move(operand));
    SOLSTICE_ASSIGN_OR_RETURN(NodePtr exponent, Sign());
    node->children.push_back(std::move(exponent));
    return node;
  }

  StatusOr<NodePtr> Primary() {
    const Token& token = Peek();
    if (token.kind == TokenKind::kInteger) {
      if (token.integer > static_cast<uint64_t>(INT64_MAX)) {
        return ErrorAt(token.column, StrCat("the integer ", Quote(token.text, 40), " does not fit in 64 bits"));
      }
      NodePtr node = Make(Node::Kind::kLiteral, token.column);
      node->literal = static_cast<int64_t>(token.integer);
      ++at_;
      return node;
    }
    if (token.kind == TokenKind::kFloat) {
      NodePtr node = Make(Node::Kind::kLiteral, token.column);
      node->literal = token.number;
      ++at_;
      return node;
    }
    if (Accept("(")) {
      SOLSTICE_ASSIGN_OR_RETURN(NodePtr inner, Conditional());
      if (!Accept(")")) {
        return Is(",") ? ErrorAt(Peek().column, "a formula is one value, not a list") : Unexpected("\")\"");
      }
      return inner;
    }
    if (token.kind != TokenKind::kName) return Unexpected("a value");
    if (token.text == "True" || token.text == "False") {
      NodePtr node = Make(Node::Kind::kLiteral, token.column);
      node->literal = token.text == "True";
      ++at_;
      return node;
    }
    if (IsKeyword(token.text)) return Unexpected("a value");
    if (tokens_[at_ + 1].kind == TokenKind::kOperator && tokens_[at_ + 1].text == "(") return Call();
    NodePtr node = Make(Node::Kind::kName, token.column);
    node->text = std::string(token.text);
    ++at_;
    Remember(names_, node->text);
    return node;
  }

  static void Remember(std::vector<std::string>* list, const std::string& name) {
    if (std::find(list->begin(), list->end(), name) == list->end()) list->push_back(name);
  }

  StatusOr<NodePtr> Call() {
    NodePtr node = Make(Node::Kind::kCall, Peek().column);
    node->text = std::string(Peek().text);
    at_ += 2;
    Remember(functions_, node->text);
    const Builtin* builtin = FindBuiltin(node->text);
    if (!Is(")")) {
      do {
        size_t begin = static_cast<size_t>(Peek().column) - 1;
        bool kernel = false;
        if (builtin == nullptr && node->children.empty()) {
          SOLSTICE_ASSIGN_OR_RETURN(kernel, Kernel(node.get()));
        }
        if (!kernel) {
          SOLSTICE_ASSIGN_OR_RETURN(NodePtr argument, Conditional());
          node->children.push_back(std::move(argument));
        }
        size_t end = static_cast<size_t>(Peek().column) - 1;
        node->raw_arguments.emplace_back(base::Trim(text_.substr(begin, end - begin)));
      } while (Accept(","));
    }
    if (!Accept(")")) return Unexpected("\",\" or \")\"");
    if (builtin != nullptr) {
      int count = static_cast<int>(node->children.size());
      if (count < builtin->minimum || count > builtin->maximum) {
        std::string takes =
            builtin->minimum == builtin->maximum ? StrCat(builtin->minimum) : StrCat("at least ", builtin->minimum);
        return ErrorAt(node->column, StrCat(node->text, "() takes ", takes, " argument",
                                            builtin->minimum == 1 ? "" : "s", ", not ", count));
      }
    }
    return node;
  }

  // A name, qualified or with template arguments, as the whole first argument of a function that is not built in: kept
  // as text. False, with nothing consumed, if the argument is something else.
  StatusOr<bool> Kernel(Node* call) {
    if (Peek().kind != TokenKind::kName || IsKeyword(Peek().text)) return false;
    const size_t begin = at_;
    size_t end = begin;
    int angles = 0, round = 0;
    bool qualified = false, templated = false;
    for (size_t i = begin + 1; tokens_[i].kind != TokenKind::kEnd; ++i) {
      if (tokens_[i].kind != TokenKind::kOperator) {
        if (i == begin + 1) return false;
        continue;
      }
      std::string_view text = tokens_[i].text;
      if (round == 0 && (text == ")" || (text == "," && angles <= 0))) {
        end = i;
        break;
      }
      if (i == begin + 1 && text != "<" && text != "::") return false;
      if (text == "(") ++round;
      if (text == ")") --round;
      if (round > 0) continue;
      qualified |= text == "::";
      templated |= text == "<";
      if (text == "<") ++angles;
      if (text == ">") --angles;
      if (text == ">>") angles -= 2;
    }
    if (end == begin) return false;
    bool closed = tokens_[end - 1].text == ">" || tokens_[end - 1].text == ">>";
    if (end > begin + 1 && (templated ? !closed : !qualified)) return false;
    at_ = end;
    NodePtr node = Make(Node::Kind::kKernel, tokens_[begin].column);
    node->text = std::string(tokens_[begin].text);
    call->children.push_back(std::move(node));
    return true;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  size_t at_ = 0;
  int depth_ = 0;
  std::vector<std::string>* names_;
  std::vector<std::string>* functions_;
};

}  // namespace

bool IsReservedName(std::string_view name) { return IsKeyword(name) || IsBuiltinFunction(name); }

StatusOr<Formula> Formula::Parse(std::string_view text) {
  if (text.size() > kMaxFormulaBytes) {
    return ErrorAt(static_cast<int>(kMaxFormulaBytes) + 1,
                   StrCat("the formula has ", text.size(), " bytes, more than ", kMaxFormulaBytes),
                   "name parts of it with let");
  }
  Formula formula;
  auto kept = std::make_shared<const std::string>(text);
  auto names = std::make_shared<std::vector<std::string>>();
  auto functions = std::make_shared<std::vector<std::string>>();
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<Token> tokens, Tokenise(*kept));
  SOLSTICE_ASSIGN_OR_RETURN(NodePtr root, Parser(*kept, std::move(tokens), names.get(), functions.get()).Run());
  formula.root_ = std::move(root);
  formula.names_ = std::move(names);
  formula.functions_ = std::move(functions);
  formula.text_ = std::move(kept);
  return formula;
}

}  // namespace solstice::expr
