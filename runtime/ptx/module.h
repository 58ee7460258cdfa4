// PTX text as a syntax tree: what nvJitLink's `-lto -ptx` output and ordinary PTX 9.0 hold. Immutable after Parse;
// safe to share between threads. Names are those of the PTX ISA manual.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"

namespace solstice::ptx {

enum class Space : uint8_t { kNone, kReg, kParam, kGlobal, kShared, kLocal, kConst };

// Element types as written: b8..b128, u8..u64, s8..s64, f16, f16x2, bf16, bf16x2, tf32, f32, f64, pred, e4m3x2 ...
// Unknown ones are kept by name.
struct Type {
  std::string name;  // "u32"
  int bytes = 0;     // 0 for pred and unknown
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,   // name
    kImmediate,  // integer (two's complement in `bits`) or float bits; `is_float`, `float_bytes` 4 or 8
    kSymbol,     // name: variable, function or label used as a value
    kAddress,    // [base + offset]; base is a register or symbol in `name` (may be empty: absolute)
    kVector,     // {a, b, c, d}: `elements`
    kList,       // (a, b): call arguments, `elements`
    kSpecial,    // %tid.x: `name`
    kSink,       // _
    kPair,       // d|p: `elements` of two
  };
  Kind kind = Kind::kSink;
  std::string name;
  uint64_t bits = 0;
  int64_t offset = 0;
  bool is_float = false;
  int float_bytes = 0;
  bool negated = false;         // !p, or -x where the grammar allows it
  bool base_is_symbol = false;  // kAddress
  std::vector<Operand> elements;
};

struct Instruction {
  std::string guard;  // predicate register, "" if none
  bool guard_negated = false;
  std::string opcode;                  // first part: "ld", "mad", "shfl"
  std::vector<std::string> modifiers;  // the rest in order: "global", "nc", "v4", "u32"
  std::vector<Operand> operands;
  int file = 0;       // index of .file, 0: none
  int line = 0;       // source line from the last .loc; 0: none
  int ptx_line = 0;   // line of the PTX text
  int location = -1;  // index into Module::locations of that .loc; -1: none
};

// A .loc directive. Code that was inlined names the call's location, which may itself have been inlined.
struct Location {
  int file = 0, line = 0, column = 0;
  int inlined_at = -1;  // index into Module::locations, always below the own index; -1: not inlined
};

struct Variable {
  std::string name;
  Space space = Space::kNone;
  Type type;
  int64_t alignment = 1;
  int64_t count = 1;  // elements; 0 for an unsized extern array
  bool is_array = false;
  bool is_extern = false;
  std::vector<uint8_t> initial;  // empty: zero-initialised; else `count * type.bytes` bytes
  // Addresses inside the initialiser: at byte `offset`, the address of `symbol` plus `addend`.
  struct Relocation {
    int64_t offset = 0;
    std::string symbol;
    int64_t addend = 0;
    bool generic = false;
  };
  std::vector<Relocation> relocations;
};

struct RegisterDeclaration {
  std::string name;  // expanded: "%r1"
  Type type;
};

struct BranchTargets {  // .branchtargets label list of brx.idx
  std::string name;
  std::vector<std::string> labels;
};

// A .callprototype for indirect calls.
struct Prototype {
  std::string name;
  std::vector<Variable> returns, parameters;
};

struct Function {
  std::string name;
  bool is_entry = false;
  bool is_declaration = false;                // .extern .func without a body
  std::vector<Variable> returns, parameters;  // space kParam (or kReg for old ABI)
  std::vector<RegisterDeclaration> registers;
  std::vector<Variable> variables;  // function scope .shared, .local, .param, with scoped names made unique
  std::vector<Instruction> body;
  std::map<std::string, int> labels;  // name -> index into body (may equal body.size())
  std::vector<BranchTargets> branch_targets;
  std::vector<Prototype> prototypes;
  int max_threads[3] = {0, 0, 0};       // .maxntid; 0: none
  int required_threads[3] = {0, 0, 0};  // .reqntid
  int min_blocks_per_sm = 0;
  std::vector<std::string> directives;  // others on the entry: ".explicitcluster"
};

struct Module {
  std::string version, target;  // "9.0", "sm_90a"
  int address_size = 64;
  std::map<int, std::string> files;  // .file index -> path
  std::vector<Variable> variables;   // module scope
  std::vector<Function> functions;
  std::vector<Location> locations;
  std::map<std::string, std::string, std::less<>> aliases;  // .alias: name -> function

  // By name, filled by Parse. Nullptr: there is none. FindFunction follows an alias.
  const Function* FindFunction(std::string_view name) const;
  const Variable* FindVariable(std::string_view name) const;
  std::map<std::string, int, std::less<>> function_index, variable_index;
};

// "@%p1 st.global.u32 [%rd5+4], %r4;", for messages; at most `limit` bytes.
std::string ToText(const Instruction& instruction, size_t limit = 200);

// Names declared in a nested scope, and labels there, that clash with another name of the function get a suffix "#<n>",
// which no PTX identifier holds. A register of vector type `v` becomes "v.x", "v.y", ...; used whole it is a kVector.
// Every name used is declared: a kRegister is in `registers`, a kSymbol is a variable, parameter, function, label,
// branch target list or prototype; `bra` and `brx.idx` name labels and lists of the same function.
//
// INVALID_ARGUMENT: "ptx:<line>: ...". Text at most 64 MiB; registers, instructions, operands and initialised bytes of
// a module are limited too (parser.h).
StatusOr<Module> Parse(std::string_view text);

// Where the author wrote it: the innermost place, seen from an inlined library header the nearest call outside it.
// nullptr where the text does not say.
const Location* AuthorsPlace(const Module& module, const Instruction& instruction);

}  // namespace solstice::ptx
