// The parser behind Parse: recursive descent over tokens, its methods spread over parse_*.cc by what they read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/ptx/lexer.h"
#include "runtime/ptx/module.h"
#include "runtime/ptx/names.h"

namespace solstice::ptx {

// What a module may hold at most: PTX text is hostile, and a two-byte statement costs a hundred bytes of tree.
struct Limits {
  static constexpr size_t kTextBytes = size_t{64} << 20;
  static constexpr size_t kRegisters = size_t{1} << 20;
  static constexpr size_t kInstructions = size_t{2} << 20;
  static constexpr size_t kOperands = size_t{8} << 20;
  static constexpr size_t kDeclarations = size_t{1} << 20;  // functions, variables, parameters, labels, locations
  static constexpr size_t kFunctions = size_t{1} << 13;
  static constexpr size_t kEntries = size_t{1} << 10;  // each is analysed with all that it calls
  static constexpr size_t kModuleVariables = size_t{1} << 16;
  static constexpr size_t kInitialBytes = size_t{256} << 20;
  static constexpr size_t kModifiers = 24;
  static constexpr int kOperandDepth = 4;
  static constexpr int kExpressionDepth = 64;
  static constexpr int kDimensions = 8;
  static constexpr int64_t kVariableBytes = int64_t{1} << 40;
};

Type MakeType(std::string_view name);

// One use: Run(). Methods that return bool return false after Fail.
class Parser {
 public:
  explicit Parser(std::string_view text) : lexer_(text) {}
  StatusOr<Module> Run();

 private:
  struct Constant {
    uint64_t bits = 0;
    bool is_unsigned = false;
    bool is_float = false;
    int float_bytes = 0;
  };
  // What stands before the names of a declaration.
  struct Declaration {
    Space space = Space::kNone;
    Type type;
    int64_t alignment = 0;  // 0: that of the type
    int vector = 1;
    bool is_extern = false;
  };

  // Tokens.
  void Advance();
  const Token& Peek();
  bool IsPunctuation(int c) const { return token_.kind == Token::Kind::kPunctuation && token_.punctuation == c; }
  bool IsDot(std::string_view name) const { return token_.kind == Token::Kind::kDot && token_.text == name; }
  bool IsIdentifier() const { return token_.kind == Token::Kind::kIdentifier; }
  bool Accept(int c);
  bool Expect(int c, std::string_view where);
  bool ExpectIdentifier(std::string_view* name, std::string_view what);
  bool ExpectInt(int64_t* value, int64_t low, int64_t high, std::string_view what);
  bool Fail(std::string_view message) { return FailAt(token_.line, message); }
  bool FailAt(int line, std::string_view message);
  std::string Found() const;  // the current token, for messages
  bool Count(size_t* counter, size_t limit, size_t more, std::string_view what);

  // parse_module.cc
  bool ParseStatement();
  bool ParseHeader();
  bool ParseFile();
  bool ParseLocation();
  bool SkipSection();
  bool ParseAlias();
  bool ParsePragma();
  bool ParseModuleVariable(bool is_extern);
  bool AddModuleVariable(Variable variable, int line);
  bool Resolve();

  // parse_declaration.cc
  bool ParseDeclaration(Declaration* declaration);
  bool ParseAttribute();
  bool ParseDimensions(Variable* variable, std::vector<int64_t>* dimensions);
  bool ParseVariable(const Declaration& declaration, Variable* variable, std::string_view* name);
  bool ParseParameters(std::vector<Variable>* parameters);

  // parse_initializer.cc
  bool ParseInitializer(Variable* variable, const std::vector<int64_t>& dimensions);
  bool ParseInitializerList(Variable* variable, const std::vector<int64_t>& dimensions, size_t depth, int64_t* at);
  bool ParseInitializerElement(Variable* variable, int64_t at);
  bool ParseSymbolAddress(Variable* variable, int64_t offset, std::optional<uint64_t> mask);
  bool StoreElement(Variable* variable, int64_t offset, const Constant& value);

  // parse_function.cc
  bool ParseFunction(bool is_entry);
  bool ParseFunctionDirectives(Function* function);
  bool ParseThreads(int (&threads)[3]);
  bool AddFunction(Function function, int line);
  bool ParseBody();
  bool ParseBodyStatement(bool* done);
  bool ParseBodyDirective();
  bool ParseRegisters(const Declaration& declaration);
  bool DeclareRegister(const Declaration& declaration, std::string_view name);
  bool ParseLocalVariables(const Declaration& declaration);
  bool ParseLabel(std::string_view name);
  bool ParseBranchTargets(std::string_view name, uint32_t rename);
  bool ParsePrototype(std::string_view name, uint32_t rename);
  bool CloseScope();
  bool CheckBranches();

  // parse_instruction.cc
  bool ParseInstruction();
  bool ParseGuard(Instruction* instruction);
  bool ParseOperand(Operand* operand, int depth);
  bool ParsePrimary(Operand* operand, int depth);
  bool ParseElements(std::vector<Operand>* elements, int close, int depth);
  bool ParseName(Operand* operand, bool may_be_label);
  bool ParseSpecial(std::string_view name, Operand* operand);
  bool ParseAddress(Operand* operand, int depth);
  bool ParseOffset(int64_t* offset);

  // parse_constant.cc
  bool ParseConstant(Constant* value, int depth = 0);
  bool ParseBinary(Constant* value, int precedence, int depth);
  bool ParseUnary(Constant* value, int depth);
  bool Combine(int operation, Constant* left, const Constant& right);

  Lexer lexer_;
  Token token_;
  Token ahead_;
  bool has_ahead_ = false;
  Status error_;
  Module module_;
  bool seen_version_ = false;

  size_t registers_ = 0, instructions_ = 0, operands_ = 0, declarations_ = 0, initial_bytes_ = 0;
  size_t entries_ = 0;

  // Position of the .loc in force, and the location that last stood for a source position, by its packed form.
  int location_ = -1;
  std::unordered_map<uint64_t, int> location_of_;

  // Names that must be of the module once it is read, with the line of the first use.
  std::unordered_map<std::string_view, int> wanted_;

  Function* function_ = nullptr;  // while a body is parsed
  NameTable names_;
  bool in_call_ = false;
  bool in_branch_ = false;
};

}  // namespace solstice::ptx
