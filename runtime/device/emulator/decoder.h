// Internal to decode*.cc: the decoder of one entry's call graph.
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/device/emulator/alu.h"
#include "runtime/device/emulator/decode.h"
#include "runtime/device/emulator/execute.h"

namespace solstice::device {

// The modifiers of an instruction, sorted. Whatever no decoder asked about stays in `rest`.
struct Modifiers {
  std::vector<Type> types;
  Rounding rounding = Rounding::kNone;
  Combine combine = Combine::kNone;
  std::set<std::string_view> rest;

  // Whether `name` was there; it no longer is.
  bool Take(std::string_view name) { return rest.erase(name) > 0; }
};

// Rounding, saturation and the like of arithmetic.
void TakeFlags(Modifiers& m, AluKey& key);

class Decoder {
 public:
  Decoder(const ptx::Module& module, const ptx::Function& entry, const std::map<std::string, uint64_t>& addresses,
          const IsaTable& isa);
  std::unique_ptr<Program> Run();

 private:
  using Operand = ptx::Operand;
  struct Register {
    uint32_t offset = kNoOperand;
    int bytes = 0;  // 0: predicate
  };
  struct Place {  // of a variable
    AddressSpace space = AddressSpace::kGlobal;
    uint64_t address = 0;  // kLocal: offset in the frame
    bool found = false;
  };

  // decode.cc: layout.
  void FindReachable();
  void LayOutShared();
  void LayOutFunction(const ptx::Function& function, FunctionCode& code);
  void DecodeFunction(const ptx::Function& function);
  void DecodeInstruction(const ptx::Instruction& instruction);
  void PatchTargets(const ptx::Function& function, const std::vector<uint32_t>& first_op);
  void FinishConstants();
  Place FindPlace(const std::string& name) const;

  // decode_operand.cc.
  Modifiers Sort(const ptx::Instruction& instruction) const;
  Op& Emit(ExecFn fn);
  bool Fail();  // this instruction is unknown; returns true, so that callers can `return Fail()`
  uint32_t Allocate(int bytes);
  const Register* FindRegister(const std::string& name);
  uint32_t Constant(int bytes, uint64_t value);
  uint32_t PredicateConstant(bool value) { return Constant(0, value ? 0xffffffffu : 0); }
  uint32_t Source(const Operand& operand, Type type);
  uint32_t SourceOfBytes(const Operand& operand, int bytes, bool is_float);
  uint32_t Destination(const Operand& operand, Type type);
  uint32_t PredicateSource(const Operand& operand);
  uint32_t PredicateDestination(const Operand& operand);
  void FinishDestinations();
  // A 64-bit operand that holds the whole address; `*space` becomes that of a named variable.
  uint32_t AddressValue(const Operand& operand, AddressSpace* space);
  bool SetAddress(const Operand& operand, AddressSpace space, Op& op);
  int RegisterBytes(const Operand& operand);
  bool EmitSpecial(const std::string& name, uint32_t destination, int bytes);

  // Each returns true when the opcode is theirs (also when Fail was called).
  bool DecodeArithmetic(const ptx::Instruction& in, Modifiers& m);
  bool DecodeSimple(const ptx::Instruction& in, Modifiers& m, Alu op);
  bool DecodeMixed(const ptx::Instruction& in, Modifiers& m, Alu op);
  bool DecodeMultiply(const ptx::Instruction& in, Modifiers& m);
  bool DecodeCompare(const ptx::Instruction& in, Modifiers& m);
  bool DecodeConvert(const ptx::Instruction& in, Modifiers& m);
  bool DecodeBits(const ptx::Instruction& in, Modifiers& m);
  bool DecodeLop3Predicate(const ptx::Instruction& in, Modifiers& m, Combine combine);
  bool DecodeMov(const ptx::Instruction& in, Modifiers& m);
  bool DecodeMemory(const ptx::Instruction& in, Modifiers& m);
  bool DecodeLoadStore(const ptx::Instruction& in, Modifiers& m, bool store);
  bool DecodeAtomic(const ptx::Instruction& in, Modifiers& m, bool reduction);
  bool DecodeAtomic128(const ptx::Instruction& in, AddressSpace space, AtomicOp operation, bool refused);
  bool DecodeStack(const ptx::Instruction& in, Modifiers& m);
  bool DecodeBulkStore(const ptx::Instruction& in, Modifiers& m);
  bool DecodeAsync(const ptx::Instruction& in, Modifiers& m);
  bool DecodeAsyncCopy(const ptx::Instruction& in, Modifiers& m);
  bool DecodeMbarrier(const ptx::Instruction& in, Modifiers& m);
  bool DecodeAddress(const ptx::Instruction& in, Modifiers& m);
  bool DecodeControl(const ptx::Instruction& in, Modifiers& m);
  bool DecodeCall(const ptx::Instruction& in, Modifiers& m);
  bool DecodeRuntimeCall(const std::string& name, const Operand* results, const Operand* arguments);
  bool DecodeSync(const ptx::Instruction& in, Modifiers& m);
  bool DecodeBarrier(const ptx::Instruction& in, Modifiers& m);
  bool DecodeMatrix(const ptx::Instruction& in, Modifiers& m);
  bool DecodeMatrixMultiply(const ptx::Instruction& in, const MatrixKey& key);
  bool DecodeMatrixFragment(const ptx::Instruction& in, const FragmentKey& key, AddressSpace space, bool rows,
                            bool store);
  bool DecodeMatrixRows(const ptx::Instruction& in, AddressSpace space, int count, bool transposed, bool store);
  const Fragment* FindFragment(const FragmentKey& key, uint32_t* index = nullptr);
  uint32_t FindPlan(const MatrixKey& key);
  // Appends the registers of a vector, which must have `count`; false after Fail.
  bool AddRegisters(const Operand& operand, int count, int bytes, bool destination, std::vector<uint32_t>* list);
  bool Has(const ptx::Instruction& in, size_t least, size_t most);
  // Emits an ALU operation with op.d ... already resolved; false (after Fail) if there is none.
  Op* EmitAlu(const AluKey& key);

  const ptx::Module& module_;
  const ptx::Function& entry_;
  const std::map<std::string, uint64_t>& addresses_;
  const IsaTable& isa_;
  std::unique_ptr<Program> program_;
  std::vector<int> order_;  // module indices of functions to decode, entry first
  std::map<std::string, int, std::less<>> function_index_;
  std::map<std::string, uint64_t> shared_;  // by "function\nname" or "\nname"
  std::map<std::pair<int, uint64_t>, uint32_t> constants_;
  std::map<FragmentKey, uint32_t> fragments_;               // indices in Program::fragments
  std::map<MatrixKey, uint32_t> matrices_;                  // and in Program::matrices
  std::map<std::string, int64_t, std::less<>> parameters_;  // of the entry, by name: offsets

  // Of the function being decoded.
  const ptx::Function* function_ = nullptr;
  std::map<std::string, Type, std::less<>> declared_;
  std::map<std::string, Register, std::less<>> registers_;
  std::map<std::string, LocalSlot> locals_;
  uint32_t register_bytes_ = 0;
  uint32_t carry_ = kNoOperand;
  std::vector<std::pair<uint32_t, std::string>> branches_;             // operation, label
  std::vector<std::pair<uint32_t, std::vector<std::string>>> tables_;  // list, labels

  // Of the instruction being decoded.
  const ptx::Instruction* instruction_ = nullptr;
  uint32_t guard_ = kNoOperand;
  bool failed_ = false;
  struct Widening {
    uint32_t to, from;
    int to_bytes, from_bytes;
    bool sign;
  };
  std::vector<Widening> widenings_;
};

}  // namespace solstice::device
