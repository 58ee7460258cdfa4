// Declarations: state space, alignment, type, names, array dimensions; parameter lists.
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/ptx/parser.h"

namespace solstice::ptx {
namespace {

using base::StrCat;

constexpr int64_t kMaxAlignment = int64_t{1} << 30;

Space SpaceOf(std::string_view name) {
  if (name == "reg") return Space::kReg;
  if (name == "param") return Space::kParam;
  if (name == "global") return Space::kGlobal;
  if (name == "shared") return Space::kShared;
  if (name == "local") return Space::kLocal;
  if (name == "const") return Space::kConst;
  return Space::kNone;
}

}  // namespace

// .attribute(.managed), .attribute(.unified(1, 2))
bool Parser::ParseAttribute() {
  if (!Expect('(', "after .attribute")) return false;
  for (int open = 1; open > 0; Advance()) {
    if (token_.kind == Token::Kind::kEnd || token_.kind == Token::Kind::kError || IsPunctuation(';')) {
      return Fail("an .attribute list has no end");
    }
    open += IsPunctuation('(') ? 1 : IsPunctuation(')') ? -1 : 0;
  }
  return true;
}

// At a state space: everything up to the first name.
bool Parser::ParseDeclaration(Declaration* declaration) {
  bool pointee = false;  // behind .ptr, where space and alignment are those of what the parameter points to
  while (token_.kind == Token::Kind::kDot) {
    std::string_view name = token_.text;
    int line = token_.line;
    Advance();
    if (Space space = SpaceOf(name); space != Space::kNone) {
      if (pointee) continue;
      if (declaration->space != Space::kNone) return FailAt(line, "a declaration has two state spaces");
      declaration->space = space;
    } else if (name == "align") {
      int64_t alignment = 0;
      if (!ExpectInt(&alignment, 1, kMaxAlignment, "the alignment")) return false;
      if ((alignment & (alignment - 1)) != 0) return FailAt(line, "an alignment must be a power of two");
      if (!pointee) declaration->alignment = alignment;
    } else if (name == "v2" || name == "v4" || name == "v8") {
      declaration->vector = name[1] - '0';
    } else if (name == "ptr") {
      pointee = true;
    } else if (name == "attribute") {
      if (!ParseAttribute()) return false;
    } else if (declaration->type.name.empty()) {
      declaration->type = MakeType(name);
    } else {
      return FailAt(line, StrCat("a declaration does not know \".", std::string(name.substr(0, 40)), "\""));
    }
  }
  if (declaration->type.name.empty()) return Fail(StrCat("a declaration needs a type, found ", Found()));
  if (declaration->space == Space::kReg) return true;
  if (declaration->type.bytes == 0) {
    return Fail(StrCat("a variable cannot have the type ", base::Quote(declaration->type.name)));
  }
  return true;
}

bool Parser::ParseDimensions(Variable* variable, std::vector<int64_t>* dimensions) {
  while (Accept('[')) {
    if (dimensions->size() == Limits::kDimensions) return Fail("an array has too many dimensions");
    variable->is_array = true;
    if (IsPunctuation(']') && dimensions->empty()) {
      dimensions->push_back(0);
    } else {
      Constant size;
      if (!ParseConstant(&size)) return false;
      if (size.is_float || size.bits > static_cast<uint64_t>(Limits::kVariableBytes)) {
        return Fail("an array is too large");
      }
      dimensions->push_back(static_cast<int64_t>(size.bits));
    }
    if (!Expect(']', "after an array size")) return false;
  }
  return true;
}

// One name with what belongs to it; `name` is it as written.
bool Parser::ParseVariable(const Declaration& declaration, Variable* variable, std::string_view* name) {
  if (!Count(&declarations_, Limits::kDeclarations, 1, "declarations")) return false;
  if (!ExpectIdentifier(name, "a variable's name")) return false;
  variable->name = *name;
  variable->space = declaration.space;
  variable->type = declaration.type;
  variable->is_extern = declaration.is_extern;
  variable->alignment = declaration.alignment;
  if (variable->alignment == 0) variable->alignment = std::max<int64_t>(1, declaration.type.bytes * declaration.vector);
  std::vector<int64_t> dimensions;
  if (!ParseDimensions(variable, &dimensions)) return false;
  if (declaration.vector > 1) {
    dimensions.push_back(declaration.vector);
    variable->is_array = true;
  }
  variable->count = 1;
  for (int64_t size : dimensions) {
    if (__builtin_mul_overflow(variable->count, size, &variable->count) || variable->count > Limits::kVariableBytes) {
      return Fail(StrCat("the array ", base::Quote(*name), " is too large"));
    }
  }
  if (variable->count * variable->type.bytes > Limits::kVariableBytes) {
    return Fail(StrCat("the variable ", base::Quote(*name), " is too large"));
  }
  return !Accept('=') || ParseInitializer(variable, dimensions);
}

// Behind the '(' of a parameter list.
bool Parser::ParseParameters(std::vector<Variable>* parameters) {
  if (Accept(')')) return true;
  do {
    if (!IsDot("param") && !IsDot("reg")) return Fail(StrCat("expected a parameter, found ", Found()));
    Declaration declaration;
    if (!ParseDeclaration(&declaration)) return false;
    std::string_view name;
    Variable& parameter = parameters->emplace_back();
    if (!ParseVariable(declaration, &parameter, &name)) return false;
    if (!parameter.initial.empty() || !parameter.relocations.empty()) {
      return Fail("a parameter cannot have an initial value");
    }
  } while (Accept(','));
  return Expect(')', "after the parameters");
}

}  // namespace solstice::ptx
