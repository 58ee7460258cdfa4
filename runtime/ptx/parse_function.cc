// Functions: header, directives, and the statements of a body.
#include <algorithm>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/ptx/parser.h"

namespace solstice::ptx {
namespace {

using base::StrCat;

}  // namespace

// Behind .entry or .func.
bool Parser::ParseFunction(bool is_entry) {
  if (module_.functions.size() >= Limits::kFunctions) return Fail("the module has too many functions");
  if (is_entry && !Count(&entries_, Limits::kEntries, 1, "entries")) return false;
  Function function;
  function.is_entry = is_entry;
  if (Accept('(') && !ParseParameters(&function.returns)) return false;
  std::string_view name;
  int line = token_.line;
  if (!ExpectIdentifier(&name, "a function's name")) return false;
  function.name = name;
  if (Accept('(') && !ParseParameters(&function.parameters)) return false;
  if (!ParseFunctionDirectives(&function)) return false;
  if (Accept(';')) {
    function.is_declaration = true;
    return AddFunction(std::move(function), line);
  }
  if (!Expect('{', "before a function's body")) return false;
  function_ = &function;
  location_ = -1;
  if (!ParseBody()) return false;
  function_ = nullptr;
  return AddFunction(std::move(function), line);
}

bool Parser::ParseThreads(int (&threads)[3]) {
  int count = 0;
  do {
    if (count == 3) return Fail("a block has at most three dimensions");
    int64_t value = 0;
    if (!ExpectInt(&value, 1, INT32_MAX, "a number of threads")) return false;
    threads[count++] = static_cast<int>(value);
  } while (Accept(','));
  while (count < 3) threads[count++] = 1;
  return true;
}

bool Parser::ParseFunctionDirectives(Function* function) {
  while (token_.kind == Token::Kind::kDot) {
    std::string_view name = token_.text;
    Advance();
    if (name == "maxntid") {
      if (!ParseThreads(function->max_threads)) return false;
    } else if (name == "reqntid") {
      if (!ParseThreads(function->required_threads)) return false;
    } else if (name == "minnctapersm") {
      int64_t value = 0;
      if (!ExpectInt(&value, 0, INT32_MAX, "a number of blocks")) return false;
      function->min_blocks_per_sm = static_cast<int>(value);
    } else {
      if (!Count(&declarations_, Limits::kDeclarations, 1, "declarations")) return false;
      std::string directive = StrCat(".", name);
      bool first = true;
      while (token_.kind == Token::Kind::kInteger || token_.kind == Token::Kind::kString) {
        directive += first ? " " : ", ";
        first = false;
        directive += token_.text;
        Advance();
        if (!Accept(',')) break;
      }
      function->directives.push_back(std::move(directive));
      if (name == "pragma") Accept(';');
    }
  }
  return true;
}

bool Parser::AddFunction(Function function, int line) {
  if (module_.variable_index.count(function.name) != 0) {
    return FailAt(line, StrCat(base::Quote(function.name), " is a variable already"));
  }
  auto [at, added] = module_.function_index.try_emplace(function.name, static_cast<int>(module_.functions.size()));
  if (added) {
    module_.functions.push_back(std::move(function));
    return true;
  }
  Function& known = module_.functions[at->second];
  if (!known.is_declaration && !function.is_declaration) {
    return FailAt(line, StrCat("the function ", base::Quote(function.name), " is defined twice"));
  }
  if (known.is_declaration) known = std::move(function);
  return true;
}

bool Parser::ParseBody() {
  names_.Reset();
  for (const std::vector<Variable>* list : {&function_->returns, &function_->parameters}) {
    for (const Variable& parameter : *list) {
      auto kind = parameter.space == Space::kReg ? NameTable::Kind::kRegister : NameTable::Kind::kVariable;
      if (names_.Declare(parameter.name, kind, 1, false) == nullptr) {
        return Fail(StrCat("the parameter ", base::Quote(parameter.name), " is declared twice"));
      }
      if (kind == NameTable::Kind::kRegister) function_->registers.push_back({parameter.name, parameter.type});
    }
  }
  names_.Push();
  bool done = false;
  while (!done) {
    if (!ParseBodyStatement(&done)) return false;
  }
  return CheckBranches();
}

bool Parser::ParseBodyStatement(bool* done) {
  if (token_.kind == Token::Kind::kDot) return ParseBodyDirective();
  if (IsPunctuation('{')) {
    if (!names_.Push()) return Fail("scopes are nested too deep");
    Advance();
    return true;
  }
  if (IsPunctuation('}')) {
    if (!CloseScope()) return false;
    *done = names_.depth() == 1;
    if (*done && !CloseScope()) return false;
    Advance();
    return true;
  }
  if (Accept(';')) return true;
  if (IsIdentifier() && Peek().kind == Token::Kind::kPunctuation && Peek().punctuation == ':') {
    std::string_view name = token_.text;
    Advance();
    Advance();
    return ParseLabel(name);
  }
  return ParseInstruction();
}

bool Parser::ParseBodyDirective() {
  if (IsDot("loc")) return ParseLocation();
  if (IsDot("pragma")) return ParsePragma();
  if (IsDot("file")) return ParseFile();
  if (IsDot("section")) return SkipSection();
  Declaration declaration;
  if (!IsDot("reg") && !IsDot("param") && !IsDot("local") && !IsDot("shared")) {
    return Fail(StrCat("unknown directive in a function: ", Found()));
  }
  if (!ParseDeclaration(&declaration)) return false;
  return declaration.space == Space::kReg ? ParseRegisters(declaration) : ParseLocalVariables(declaration);
}

bool Parser::ParseRegisters(const Declaration& declaration) {
  do {
    std::string_view name;
    if (!ExpectIdentifier(&name, "a register's name")) return false;
    if (!Accept('<')) {
      if (!DeclareRegister(declaration, name)) return false;
      continue;
    }
    int64_t count = 0;
    if (!ExpectInt(&count, 0, INT32_MAX, "a number of registers") || !Expect('>', "after it")) return false;
    if (declaration.vector > 1) return Fail("a range of vector registers is not supported");
    if (!Count(&registers_, Limits::kRegisters, static_cast<size_t>(count), "registers")) return false;
    uint32_t rename = 0;
    if (!names_.DeclareRange(name, static_cast<uint32_t>(count), &rename)) {
      return Fail(StrCat("a register of the range ", base::Quote(name), " is declared twice"));
    }
    function_->registers.reserve(function_->registers.size() + static_cast<size_t>(count));
    for (int64_t i = 0; i < count; ++i) {
      function_->registers.push_back({NameTable::Renamed(StrCat(name, i), rename), declaration.type});
    }
  } while (Accept(','));
  return Expect(';', "after a register declaration");
}

bool Parser::DeclareRegister(const Declaration& declaration, std::string_view name) {
  if (!Count(&registers_, Limits::kRegisters, static_cast<size_t>(declaration.vector), "registers")) return false;
  bool is_vector = declaration.vector > 1;
  if (declaration.vector > 4) return Fail("a vector register has at most four parts");
  const NameTable::Local* local = names_.Declare(
      name, is_vector ? NameTable::Kind::kVectorRegister : NameTable::Kind::kRegister, declaration.vector, false);
  if (local == nullptr) return Fail(StrCat("the register ", base::Quote(name), " is declared twice"));
  std::string unique = NameTable::Renamed(name, local->rename);
  if (!is_vector) {
    function_->registers.push_back({std::move(unique), declaration.type});
    return true;
  }
  for (int lane = 0; lane < declaration.vector; ++lane) {
    function_->registers.push_back({StrCat(unique, ".", "xyzw"[lane]), declaration.type});
  }
  return true;
}

bool Parser::ParseLocalVariables(const Declaration& declaration) {
  do {
    Variable variable;
    std::string_view name;
    int line = token_.line;
    if (!ParseVariable(declaration, &variable, &name)) return false;
    if (!variable.initial.empty() || !variable.relocations.empty()) {
      return FailAt(line, "a variable inside a function cannot have an initial value");
    }
    if (variable.count == 0 && variable.space != Space::kShared) {
      return FailAt(line, StrCat("the array ", base::Quote(name), " has no size"));
    }
    // A name of the module is shadowed: the two must stay apart for whoever looks names up.
    bool taken = module_.variable_index.find(name) != module_.variable_index.end();
    const NameTable::Local* local = names_.Declare(name, NameTable::Kind::kVariable, 1, taken);
    if (local == nullptr) return FailAt(line, StrCat("the variable ", base::Quote(name), " is declared twice"));
    variable.name = NameTable::Renamed(name, local->rename);
    function_->variables.push_back(std::move(variable));
  } while (Accept(','));
  return Expect(';', "after a variable");
}

// Behind "name:".
bool Parser::ParseLabel(std::string_view name) {
  if (!Count(&declarations_, Limits::kDeclarations, 1, "declarations")) return false;
  bool targets = IsDot("branchtargets") || IsDot("calltargets");
  bool prototype = IsDot("callprototype");
  auto kind = targets     ? NameTable::LabelKind::kTargets
              : prototype ? NameTable::LabelKind::kPrototype
                          : NameTable::LabelKind::kCode;
  uint32_t rename = 0;
  if (!names_.DeclareLabel(name, kind, &rename)) {
    return Fail(StrCat("the label ", base::Quote(name), " is declared twice"));
  }
  if (targets) return ParseBranchTargets(name, rename);
  if (prototype) return ParsePrototype(name, rename);
  function_->labels[NameTable::Renamed(name, rename)] = static_cast<int>(function_->body.size());
  return true;
}

bool Parser::ParseBranchTargets(std::string_view name, uint32_t rename) {
  auto index = static_cast<uint32_t>(function_->branch_targets.size());
  BranchTargets& list = function_->branch_targets.emplace_back();
  list.name = NameTable::Renamed(name, rename);
  Advance();
  do {
    if (!Count(&operands_, Limits::kOperands, 1, "operands")) return false;
    std::string_view label;
    int line = token_.line;
    if (!ExpectIdentifier(&label, "a label")) return false;
    list.labels.emplace_back(label);
    names_.Refer({label, index, static_cast<uint32_t>(list.labels.size() - 1), line, true});
  } while (Accept(','));
  return Expect(';', "after a list of targets");
}

// .callprototype (returns) _ (parameters) [.noreturn];
bool Parser::ParsePrototype(std::string_view name, uint32_t rename) {
  Prototype& prototype = function_->prototypes.emplace_back();
  prototype.name = NameTable::Renamed(name, rename);
  Advance();
  if (Accept('(') && !ParseParameters(&prototype.returns)) return false;
  std::string_view ignored;
  if (!ExpectIdentifier(&ignored, "'_'")) return false;
  if (Accept('(') && !ParseParameters(&prototype.parameters)) return false;
  Function scratch;
  return ParseFunctionDirectives(&scratch) && Expect(';', "after a prototype");
}

bool Parser::CloseScope() {
  names_.Pop(
      [&](const NameTable::Reference& reference, const NameTable::Label& label) {
        if (label.rename == 0) return;
        std::string unique = NameTable::Renamed(reference.name, label.rename);
        if (reference.in_targets) {
          function_->branch_targets[reference.index].labels[reference.position] = std::move(unique);
        } else {
          function_->body[reference.index].operands[reference.position].name = std::move(unique);
        }
      },
      [&](const NameTable::Reference& reference) { wanted_.try_emplace(reference.name, reference.line); });
  return error_.ok();
}

// A branch goes to a label of its own function.
bool Parser::CheckBranches() {
  std::unordered_set<std::string_view> lists;
  for (const BranchTargets& targets : function_->branch_targets) lists.insert(targets.name);
  for (const Instruction& instruction : function_->body) {
    const std::vector<Operand>& operands = instruction.operands;
    if (instruction.opcode == "bra") {
      if (operands.size() != 1 || operands[0].kind != Operand::Kind::kSymbol ||
          function_->labels.count(operands[0].name) == 0) {
        return FailAt(instruction.ptx_line, "a branch needs a label of its function");
      }
    } else if (instruction.opcode == "brx") {
      if (operands.size() != 2 || operands[1].kind != Operand::Kind::kSymbol || lists.count(operands[1].name) == 0) {
        return FailAt(instruction.ptx_line, "brx.idx needs a .branchtargets list of its function");
      }
    }
  }
  for (const BranchTargets& targets : function_->branch_targets) {
    for (const std::string& label : targets.labels) {
      if (function_->labels.count(label) == 0 && module_.FindFunction(label) == nullptr && label != function_->name) {
        return FailAt(token_.line, StrCat("the target ", base::Quote(label), " is not a label of its function"));
      }
    }
  }
  return true;
}

}  // namespace solstice::ptx
