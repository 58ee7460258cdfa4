// The grammar of launch plans (docs/launch-plans.md).
#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/plan/name_expression.h"
#include "runtime/plan/names.h"
#include "runtime/plan/reader.h"
#include "runtime/plan/statement.h"

namespace solstice::plan {
namespace {

using base::Quote;
using base::StrCat;
using expr::Formula;

// A part of a statement's text.
struct Piece {
  size_t begin = 0, end = 0;
};

struct Attribute {
  std::string name;
  size_t offset = 0;  // of the name
  Piece value;        // inside the parentheses
  bool parenthesised = false;
};

constexpr std::string_view kUnsupportedAttributes[] = {"cluster", "cooperative", "programmatic"};
constexpr std::string_view kUnsupportedArguments[] = {"struct", "pointers", "tensor_map"};
constexpr char kNotSupported[] = " is not supported yet by this version";

template <size_t N>
bool Contains(const std::string_view (&list)[N], std::string_view word) {
  return std::find(std::begin(list), std::end(list), word) != std::end(list);
}

bool IsWordByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

// Parses one statement. `names` holds what the statements before it declared.
class StatementParser {
 public:
  StatementParser(const StatementText& source, PlanNames* names, bool in_chain)
      : source_(source), text_(source.text()), names_(names), in_chain_(in_chain) {}

  StatusOr<std::shared_ptr<const Statement>> Run() {
    statement_ = std::make_shared<Statement>();
    statement_->file = source_.file();
    statement_->line = source_.line();
    std::string_view keyword = source_.keyword();
    if (keyword == "tensor_map") return source_.ErrorAt(0, StrCat("tensor_map", kNotSupported));
    if (keyword == "launch") {
      SOLSTICE_RETURN_IF_ERROR(Launch());
    } else if (keyword == "memset") {
      SOLSTICE_RETURN_IF_ERROR(Memset());
    } else {
      SOLSTICE_RETURN_IF_ERROR(Assignment(keyword));
    }
    return std::shared_ptr<const Statement>(std::move(statement_));
  }

 private:
  std::string_view Text(Piece piece) const { return text_.substr(piece.begin, piece.end - piece.begin); }
  Piece Trimmed(Piece piece) const {
    auto blank = [](char c) { return c == ' ' || c == '\t'; };
    while (piece.begin < piece.end && blank(text_[piece.begin])) ++piece.begin;
    while (piece.end > piece.begin && blank(text_[piece.end - 1])) --piece.end;
    return piece;
  }

  // let NAME = FORMULA, scratch NAME = FORMULA, define NAME = FORMULA
  Status Assignment(std::string_view keyword) {
    size_t equals = text_.find('=');
    if (equals == std::string_view::npos || text_.substr(equals, 2) == "==") {
      return source_.ErrorAt(0, StrCat(keyword, ": no \"=\" after the name"),
                             StrCat("write ", keyword, " NAME = FORMULA"));
    }
    Piece name = Trimmed({0, equals});
    statement_->name = std::string(Text(name));
    if (!expr::IsIdentifier(statement_->name)) {
      return source_.ErrorAt(0, StrCat(keyword, ": ", Quote(statement_->name, 40), " is not a name"),
                             StrCat("write ", keyword, " NAME = FORMULA"));
    }
    std::string what = StrCat(keyword, " ", statement_->name);
    SOLSTICE_ASSIGN_OR_RETURN(Formula value, ParseFormula({equals + 1, text_.size()}, what, false));
    statement_->value = std::move(value);
    Status declared;
    if (keyword == "let") {
      statement_->kind = Statement::Kind::kLet;
      declared = names_->DeclareLet(statement_->name);
    } else if (keyword == "scratch") {
      statement_->kind = Statement::Kind::kScratch;
      declared = names_->DeclareScratch(statement_->name);
    } else {
      statement_->kind = Statement::Kind::kDefine;
      declared = names_->DeclareDefine(statement_->name);
    }
    return declared.ok() ? declared : source_.Explain(0, what, declared);
  }

  // memset BUFFER BYTE [bytes=FORMULA] [when=(FORMULA)]
  Status Memset() {
    statement_->kind = Statement::Kind::kMemset;
    size_t end = 0;
    while (end < text_.size() && IsWordByte(text_[end])) ++end;
    statement_->name = std::string(text_.substr(0, end));
    if (!expr::IsIdentifier(statement_->name)) {
      return source_.ErrorAt(0, "memset: no buffer name", "write memset BUFFER BYTE");
    }
    Status known = names_->CheckMemset(statement_->name);
    if (!known.ok()) return source_.Explain(0, "memset", known);
    std::string what = StrCat("memset ", statement_->name);
    size_t first = NextAttribute(end);
    SOLSTICE_ASSIGN_OR_RETURN(Formula byte, ParseFormula({end, first}, what, true));
    statement_->value = std::move(byte);
    SOLSTICE_ASSIGN_OR_RETURN(std::vector<Attribute> attributes, Attributes(first));
    for (const Attribute& attribute : attributes) {
      if (attribute.name == "when") {
        SOLSTICE_RETURN_IF_ERROR(When(attribute));
      } else if (attribute.name == "bytes") {
        SOLSTICE_ASSIGN_OR_RETURN(Formula bytes, ParseFormula(attribute.value, StrCat(what, ": bytes"), true));
        statement_->bytes = std::move(bytes);
      } else {
        return UnknownAttribute(attribute, {"bytes", "when"});
      }
    }
    return absl::OkStatus();
  }

  // launch KERNEL grid=(...) block=(...) [shared=(...)] [when=(...)] [args=(...)]
  Status Launch() {
    statement_->kind = Statement::Kind::kLaunch;
    size_t first = NextAttribute(0);
    SOLSTICE_RETURN_IF_ERROR(Kernel(Trimmed({0, first})));
    SOLSTICE_ASSIGN_OR_RETURN(std::vector<Attribute> attributes, Attributes(first));
    for (const Attribute& attribute : attributes) SOLSTICE_RETURN_IF_ERROR(LaunchAttribute(attribute));
    for (const auto& [name, list] : {std::pair("grid", &statement_->grid), std::pair("block", &statement_->block)}) {
      if (list->empty()) {
        return source_.ErrorAt(0, StrCat("launch ", statement_->name, ": ", name, "=(...) is missing"),
                               StrCat("add ", name, "=(x), ", name, "=(x, y) or ", name, "=(x, y, z)"));
      }
    }
    return absl::OkStatus();
  }

  Status LaunchAttribute(const Attribute& attribute) {
    if (Contains(kUnsupportedAttributes, attribute.name)) {
      return source_.ErrorAt(attribute.offset, StrCat(attribute.name, "=", kNotSupported));
    }
    if (!attribute.parenthesised) {
      return source_.ErrorAt(attribute.offset, StrCat(attribute.name, "= is not followed by parentheses"),
                             StrCat("write ", attribute.name, "=(...)"));
    }
    std::string what = StrCat("launch ", statement_->name, ": ", attribute.name);
    if (attribute.name == "when") return When(attribute);
    if (attribute.name == "args") return Arguments(attribute.value);
    if (attribute.name == "shared") {
      SOLSTICE_ASSIGN_OR_RETURN(Formula shared, ParseFormula(attribute.value, what, true));
      statement_->shared = std::move(shared);
      return absl::OkStatus();
    }
    if (attribute.name != "grid" && attribute.name != "block") {
      return UnknownAttribute(attribute, {"grid", "block", "shared", "when", "args"});
    }
    std::vector<Formula>& list = attribute.name == "grid" ? statement_->grid : statement_->block;
    std::vector<Piece> pieces = SplitList(attribute.value);
    if (pieces.empty() || pieces.size() > 3) {
      return source_.ErrorAt(attribute.offset, StrCat(what, " has ", pieces.size(), " values"), "give 1 to 3: x, y, z");
    }
    for (Piece piece : pieces) {
      SOLSTICE_ASSIGN_OR_RETURN(Formula formula, ParseFormula(piece, what, true));
      list.push_back(std::move(formula));
    }
    return absl::OkStatus();
  }

  Status Kernel(Piece piece) {
    std::string_view text = Text(piece);
    statement_->name = std::string(text);
    if (text.empty())
      return source_.ErrorAt(0, "launch: no kernel name", "write launch KERNEL grid=(...) block=(...) args=(...)");
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] != ':') continue;
      if (i + 1 < text.size() && text[i + 1] == ':') {
        ++i;
        continue;
      }
      return source_.ErrorAt(piece.begin,
                             StrCat("launch ", Quote(text), ": naming the source of a kernel", kNotSupported),
                             "leave FILE: out; kernels are taken from the first source and what it includes");
    }
    StatusOr<std::string> name = InstantiateNameExpression(text, [&](const Formula& formula) -> StatusOr<std::string> {
      SOLSTICE_RETURN_IF_ERROR(CheckFunctions(formula, false));
      return expr::IsIdentifier(formula.text()) ? std::string() : std::string("0");
    });
    return name.ok() ? absl::OkStatus() : source_.Explain(piece.begin, "launch", name.status());
  }

  Status When(const Attribute& attribute) {
    std::string what = StrCat(source_.keyword(), " ", statement_->name, ": when");
    if (!attribute.parenthesised) {
      return source_.ErrorAt(attribute.offset, "when= is not followed by parentheses",
                             "write when=(CONDITION) or when=(else)");
    }
    if (Text(Trimmed(attribute.value)) == "else") {
      if (!in_chain_) {
        return source_.ErrorAt(attribute.offset, StrCat(what, "=(else) follows no launch or memset with a condition"),
                               "put it right after the alternatives that have when=(CONDITION)");
      }
      statement_->when = Statement::When::kElse;
      return absl::OkStatus();
    }
    SOLSTICE_ASSIGN_OR_RETURN(Formula condition, ParseFormula(attribute.value, what, false));
    statement_->when = Statement::When::kCondition;
    statement_->condition = std::move(condition);
    return absl::OkStatus();
  }

  Status Arguments(Piece list) {
    std::vector<Piece> pieces = SplitList(list);
    if (pieces.size() > static_cast<size_t>(kMaxArguments)) {
      return source_.ErrorAt(list.begin, StrCat("launch ", statement_->name, ": ", pieces.size(),
                                                " arguments, more than ", kMaxArguments));
    }
    for (size_t i = 0; i < pieces.size(); ++i) SOLSTICE_RETURN_IF_ERROR(ParseArgument(pieces[i], i + 1));
    return absl::OkStatus();
  }

  // A name, or TYPE(FORMULA).
  Status ParseArgument(Piece piece, size_t number) {
    std::string what = StrCat("launch ", statement_->name, ": argument ", number);
    std::string_view text = Text(piece);
    if (text.empty()) return source_.ErrorAt(piece.begin, StrCat(what, " is empty"));
    if (expr::IsIdentifier(text)) {
      Status known = names_->CheckArgument(text);
      if (!known.ok()) return source_.Explain(piece.begin, what, known);
      statement_->args.push_back({"", std::string(text), std::nullopt});
      return absl::OkStatus();
    }
    size_t word_end = 0;
    while (word_end < text.size() && IsWordByte(text[word_end])) ++word_end;
    std::string_view word = text.substr(0, word_end);
    size_t open = text.find_first_not_of(" \t", word_end);
    bool opens = open != std::string_view::npos && (text[open] == '(' || text[open] == '{');
    if (opens && Contains(kUnsupportedArguments, word)) {
      return source_.ErrorAt(piece.begin, StrCat(what, ": ", word, "(...)", kNotSupported));
    }
    bool call = opens && text[open] == '(' && text.back() == ')' && Closes(piece.begin + open) == piece.end - 1;
    const ScalarType* type = FindScalarType(word);
    if (!call || type == nullptr) {
      std::string nearest = call ? base::Nearest(word, ScalarTypeNames()) : "";
      return source_.ErrorAt(piece.begin, StrCat(what, ": ", Quote(text), " is neither a buffer nor a typed value"),
                             nearest.empty() || IsFunction(word)
                                 ? StrCat("give values their type: i32(", text.substr(0, 40), ")")
                                 : StrCat("did you mean ", Quote(nearest), "?"));
    }
    SOLSTICE_ASSIGN_OR_RETURN(Formula formula, ParseFormula({piece.begin + open + 1, piece.end - 1}, what, true));
    std::string formula_text = formula.text();
    statement_->args.push_back({std::string(word), std::move(formula_text), std::move(formula)});
    return absl::OkStatus();
  }

  static bool IsFunction(std::string_view word) { return expr::IsBuiltinFunction(word) || word == "occupancy"; }

  // Position of the bracket that closes the one at `open`; npos if none does.
  size_t Closes(size_t open) const {
    int depth = 0;
    for (size_t i = open; i < text_.size(); ++i) {
      char c = text_[i];
      if (c == '(' || c == '[' || c == '{') ++depth;
      if ((c == ')' || c == ']' || c == '}') && --depth == 0) return i;
    }
    return std::string_view::npos;
  }

  // Comma-separated, trimmed; none for an empty list.
  std::vector<Piece> SplitList(Piece list) const {
    std::vector<Piece> pieces;
    if (Text(Trimmed(list)).empty()) return pieces;
    int depth = 0;
    size_t begin = list.begin;
    for (size_t i = list.begin; i <= list.end; ++i) {
      char c = i < list.end ? text_[i] : ',';
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      if (c != ',' || (depth > 0 && i < list.end)) continue;
      pieces.push_back(Trimmed({begin, i}));
      begin = i + 1;
    }
    return pieces;
  }

  // Offset of the next `word =` outside brackets from `from`; the text's size if there is none.
  size_t NextAttribute(size_t from) const {
    int depth = 0;
    for (size_t i = from; i < text_.size(); ++i) {
      char c = text_[i];
      if (c == '(' || c == '[' || c == '{') ++depth;
      if (c == ')' || c == ']' || c == '}') --depth;
      if (depth > 0 || !IsWordByte(c) || (i > 0 && IsWordByte(text_[i - 1]))) continue;
      size_t end = i;
      while (end < text_.size() && IsWordByte(text_[end])) ++end;
      size_t equals = text_.find_first_not_of(" \t", end);
      if (equals != std::string_view::npos && text_[equals] == '=' && text_.substr(equals, 2) != "==") return i;
      i = end - 1;
    }
    return text_.size();
  }

  StatusOr<std::vector<Attribute>> Attributes(size_t at) const {
    std::vector<Attribute> attributes;
    while (true) {
      at = text_.find_first_not_of(" \t", at);
      if (at == std::string_view::npos) return attributes;
      size_t end = at;
      while (end < text_.size() && IsWordByte(text_[end])) ++end;
      std::string_view name = text_.substr(at, end - at);
      size_t equals = text_.find_first_not_of(" \t", end);
      if (name.empty() || equals == std::string_view::npos || text_[equals] != '=') {
        if (Contains(kUnsupportedAttributes, name)) return source_.ErrorAt(at, StrCat(name, kNotSupported));
        return source_.ErrorAt(at, StrCat("unexpected ", Quote(text_.substr(at, 24)), " where NAME=(...) is expected"));
      }
      Attribute attribute{std::string(name), at, {}, false};
      for (const Attribute& other : attributes) {
        if (other.name == name) return source_.ErrorAt(at, StrCat(name, "= is given twice"));
      }
      size_t value = text_.find_first_not_of(" \t", equals + 1);
      if (value != std::string_view::npos && text_[value] == '(') {
        size_t close = Closes(value);
        if (close == std::string_view::npos)
          return source_.ErrorAt(value, StrCat(name, "=( is not closed"), "add \")\"");
        size_t next = text_.find_first_not_of(" \t", close + 1);
        if (next == std::string_view::npos || IsWordByte(text_[next])) {
          attribute.value = {value + 1, close};
          attribute.parenthesised = true;
          attributes.push_back(std::move(attribute));
          at = close + 1;
          continue;
        }
      }
      size_t next = NextAttribute(equals + 1);
      attribute.value = Trimmed({equals + 1, next});
      attributes.push_back(std::move(attribute));
      at = next;
    }
  }

  Status UnknownAttribute(const Attribute& attribute, const std::vector<std::string>& known) const {
    std::string nearest = base::Nearest(attribute.name, known);
    return source_.ErrorAt(
        attribute.offset, StrCat(source_.keyword(), ": unknown attribute ", Quote(attribute.name)),
        nearest.empty() ? StrCat("there are ", base::Join(known, ", ")) : StrCat("did you mean ", Quote(nearest), "?"));
  }

  Status CheckFunctions(const Formula& formula, bool occupancy) const {
    for (const std::string& function : formula.functions()) {
      if (expr::IsBuiltinFunction(function) || (occupancy && function == "occupancy")) continue;
      if (function == "occupancy") {
        return base::InvalidArgument("occupancy() is not known before compiling",
                                     "use it in grid=, block=, shared=, args= and memset only");
      }
      std::vector<std::string> known = {"ceil_div", "round_up", "next_pow2", "min",  "max",  "abs",
                                        "floor",    "ceil",     "log2",      "exp2", "sqrt", "occupancy"};
      std::string nearest = base::Nearest(function, known);
      return base::InvalidArgument(StrCat("unknown function ", Quote(function)),
                                   nearest.empty() ? StrCat("there are ", base::Join(known, ", "))
                                                   : StrCat("did you mean ", Quote(nearest), "?"));
    }
    return absl::OkStatus();
  }

  StatusOr<Formula> ParseFormula(Piece piece, std::string_view what, bool occupancy) const {
    piece = Trimmed(piece);
    StatusOr<Formula> formula = Formula::Parse(Text(piece));
    Status status = formula.status();
    if (status.ok()) status = CheckFunctions(*formula, occupancy);
    if (status.ok()) return formula;
    return source_.Explain(std::min(piece.begin, text_.empty() ? 0 : text_.size() - 1),
                           StrCat(what, ": ", Quote(Text(piece))), status);
  }

  const StatementText& source_;
  std::string_view text_;
  PlanNames* names_;
  bool in_chain_;
  std::shared_ptr<Statement> statement_;
};

}  // namespace

std::string Where(const Statement& statement) { return StrCat(statement.file, ":", statement.line); }

StatusOr<Plan> Plan::Parse(const std::vector<PlanLine>& lines, const v1::Definition* definition) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<StatementText> texts, JoinLines(lines));
  Plan plan;
  PlanNames names(definition);
  for (const StatementText& text : texts) {
    if (text.keyword() == "scratch") names.Announce(base::Trim(text.text().substr(0, text.text().find('='))));
  }
  int launches = 0;
  bool in_chain = false;
  for (const StatementText& text : texts) {
    SOLSTICE_ASSIGN_OR_RETURN(std::shared_ptr<const Statement> statement,
                              StatementParser(text, &names, in_chain).Run());
    bool launch = statement->kind == Statement::Kind::kLaunch;
    // A chain of alternatives lasts as long as every launch and memset has a when=.
    if (launch || statement->kind == Statement::Kind::kMemset) in_chain = statement->when != Statement::When::kAlways;
    if (launch && ++launches > kMaxLaunches) {
      return text.ErrorAt(0, StrCat("the plan has more than ", kMaxLaunches, " launches"));
    }
    plan.statements_.push_back(std::move(statement));
  }
  if (launches == 0) {
    std::string where = lines.empty() ? "launch_plan" : lines[0].file;
    return base::InvalidArgument(StrCat(where, ": the plan has no launch"),
                                 "add launch KERNEL grid=(...) block=(...) args=(...)");
  }
  return plan;
}

}  // namespace solstice::plan
