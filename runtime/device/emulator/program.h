// The decoded form of one entry and everything it can call: a flat array of operations with resolved operands.
//
// Registers of a function live in one block, each as 32 lanes side by side (16-bit: 64 bytes, 32-bit: 128, 64-bit: 256,
// 128-bit: two 64-bit halves; predicates: one 32-bit lane mask). An operand is a byte offset into that block, or with
// kConstantBit into the program's constants, which hold immediates repeated for the 32 lanes.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "runtime/device/emulator/matrix.h"
#include "runtime/device/emulator/value_types.h"

namespace solstice::device {

struct Warp;
struct Op;
using ExecFn = void (*)(Warp&, const Op&);

inline constexpr uint32_t kConstantBit = 0x8000'0000u;
inline constexpr uint32_t kNoOperand = 0x7fff'ffffu;

// Op::flags of loads, stores and atomics: volatile, relaxed and atomic ones are strong.
inline constexpr uint8_t kStrong = 1, kAcquire = 2, kRelease = 4;

enum class AddressSpace : uint8_t { kGeneric, kGlobal, kShared, kLocal, kConst, kParam };

struct Op {
  ExecFn fn = nullptr;
  uint32_t d = kNoOperand, e = kNoOperand;  // destinations
  uint32_t a = kNoOperand, b = kNoOperand, c = kNoOperand;
  uint32_t guard = kNoOperand;
  int64_t imm = 0;      // displacement, table, shift ...
  uint32_t target = 0;  // index of an operation, function or list
  bool guard_negated = false;
  bool address32 = false;  // operand a is a 32-bit address
  uint8_t bytes = 0;       // of one memory element
  uint8_t count = 1;       // memory elements
  AddressSpace space = AddressSpace::kGeneric;
  uint8_t flags = 0;
  uint8_t kind = 0;  // sub-operation: Combine, atomic operation, shuffle mode ...; of stores the bytes of a register
};

// Where an operation comes from; cold.
struct OpSource {
  int file = 0;
  int line = 0;
  int ptx_line = 0;
};

// A parameter or .param/.local variable of a function: bytes in the frame's local memory.
struct LocalSlot {
  std::string name;
  int64_t offset = 0;
  int64_t bytes = 0;
};

struct FunctionCode {
  std::string name;
  uint32_t begin = 0, end = 0;  // operations
  uint32_t register_bytes = 0;
  int64_t local_bytes = 0;
  std::vector<LocalSlot> parameters, returns;
};

// Copies made by a call: bytes of the caller's locals to the callee's (by index of parameter) and back.
struct CallSite {
  std::vector<LocalSlot> arguments, results;
  uint32_t first_register_argument = 0;
};

struct Program {
  std::string entry;
  std::vector<Op> code;
  std::vector<OpSource> sources;
  std::vector<uint8_t> constants;  // 64-byte aligned through `constant_base`
  const uint8_t* constant_base = nullptr;
  std::vector<FunctionCode> functions;       // 0 is the entry
  std::vector<CallSite> calls;               // by Op::target of calls
  std::vector<std::vector<uint32_t>> lists;  // operand lists, branch targets
  std::deque<Fragment> fragments;            // deques: plans point to fragments
  std::deque<MatrixPlan> matrices;
  std::vector<int> module_to_function;       // module function index -> index in `functions`, -1: not reachable
  std::vector<std::string> file_names;       // base names by .file index
  std::vector<LocalSlot> parameters;         // of the entry, offsets in the parameter block
  int64_t parameter_bytes = 0;
  int64_t static_shared_bytes = 0;
  int64_t dynamic_shared_offset = 0;
  int64_t max_threads[3] = {0, 0, 0};
  int64_t required_threads[3] = {0, 0, 0};
  // It can wait for what another block writes: it polls global memory, uses what an atomic returns, or sleeps.
  bool may_wait_for_blocks = false;
  // Not empty: the entry can reach an instruction that the emulator does not execute.
  std::string unsupported;
};

}  // namespace solstice::device
