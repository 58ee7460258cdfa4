#include "runtime/device/emulator/decode.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/decoder.h"

namespace solstice::device {
namespace {

constexpr int64_t kMostLocalBytes = int64_t{1} << 30;

int64_t RoundUp(int64_t value, int64_t alignment) {
  if (alignment < 1 || alignment > 4096) alignment = 4096;
  return (value + alignment - 1) / alignment * alignment;
}

int64_t BytesOf(const ptx::Variable& variable) {
  const int64_t bytes = std::max(variable.type.bytes, 1);
  if (variable.count < 0 || variable.count > (int64_t{1} << 40) / bytes) return int64_t{1} << 40;
  return variable.count * bytes;
}

int64_t AlignmentOf(const ptx::Variable& variable) {
  return std::max<int64_t>({variable.alignment, variable.type.bytes, 1});
}

template <typename Visit>
void ForOperands(const std::vector<ptx::Operand>& operands, Visit visit) {
  for (const ptx::Operand& operand : operands) {
    visit(operand);
    ForOperands(operand.elements, visit);
  }
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

Decoder::Decoder(const ptx::Module& module, const ptx::Function& entry,
                 const std::map<std::string, uint64_t>& addresses, const IsaTable& isa)
    : module_(module), entry_(entry), addresses_(addresses), isa_(isa), program_(std::make_unique<Program>()) {}

std::unique_ptr<Program> DecodeEntry(const ptx::Module& module, const ptx::Function& entry,
                                     const std::map<std::string, uint64_t>& addresses, const IsaTable& isa) {
  return Decoder(module, entry, addresses, isa).Run();
}

std::unique_ptr<Program> Decoder::Run() {
  program_->entry = entry_.name;
  for (const auto& [number, path] : module_.files) {
    if (number < 0 || number > 65535) continue;
    if (program_->file_names.size() <= static_cast<size_t>(number)) program_->file_names.resize(number + 1);
    program_->file_names[number] = BaseName(path);
  }
  for (size_t i = 0; i < module_.functions.size(); ++i) {
    const auto [at, inserted] = function_index_.emplace(module_.functions[i].name, static_cast<int>(i));
    // A declaration may stand before the definition.
    if (!inserted && module_.functions[at->second].is_declaration) at->second = static_cast<int>(i);
  }
  FindReachable();
  program_->module_to_function.assign(module_.functions.size(), -1);
  program_->functions.resize(order_.size());
  for (size_t i = 0; i < order_.size(); ++i) program_->module_to_function[order_[i]] = static_cast<int>(i);
  LayOutShared();
  for (size_t i = 0; i < order_.size(); ++i) {
    LayOutFunction(module_.functions[order_[i]], program_->functions[i]);
  }
  for (const int index : order_) DecodeFunction(module_.functions[index]);
  for (int i = 0; i < 3; ++i) {
    program_->max_threads[i] = entry_.max_threads[i];
    program_->required_threads[i] = entry_.required_threads[i];
  }
  FinishConstants();
  return std::move(program_);
}

void Decoder::FindReachable() {
  const auto entry_index = function_index_.find(entry_.name);
  std::vector<int> queue = {entry_index->second};
  std::set<int> seen = {entry_index->second};
  auto add = [&](const std::string& name) {
    const auto found = function_index_.find(name);
    if (found == function_index_.end() || module_.functions[found->second].is_declaration) return;
    if (seen.insert(found->second).second) queue.push_back(found->second);
  };
  bool all_known = false;  // what indirect calls may reach has been added
  for (size_t next = 0; next < queue.size(); ++next) {
    const ptx::Function& function = module_.functions[queue[next]];
    bool indirect = false;
    for (const ptx::Instruction& in : function.body) {
      ForOperands(in.operands, [&](const Operand& operand) {
        if (operand.kind == Operand::Kind::kSymbol) add(operand.name);
      });
      if (in.opcode != "call") continue;
      for (const Operand& operand : in.operands) indirect |= operand.kind == Operand::Kind::kRegister;
    }
    if (!indirect || std::exchange(all_known, true)) continue;
    // Any function whose address is known anywhere may be the target.
    for (const ptx::Variable& variable : module_.variables) {
      for (const auto& relocation : variable.relocations) add(relocation.symbol);
    }
    for (const ptx::Function& other : module_.functions) {
      for (const ptx::Instruction& in : other.body) {
        if (in.opcode == "call") continue;
        ForOperands(in.operands, [&](const Operand& operand) {
          if (operand.kind == Operand::Kind::kSymbol) add(operand.name);
        });
      }
    }
  }
  order_ = std::move(queue);
}

void Decoder::LayOutShared() {
  std::set<std::string> used;
  for (const int index : order_) {
    for (const ptx::Instruction& in : module_.functions[index].body) {
      ForOperands(in.operands, [&](const Operand& operand) {
        if (operand.kind == Operand::Kind::kSymbol || operand.base_is_symbol) used.insert(operand.name);
      });
    }
  }
  int64_t top = 0;
  int64_t dynamic_alignment = 16;
  std::vector<std::string> dynamic;
  auto place = [&](const ptx::Variable& variable, const std::string& key) {
    if (variable.space != ptx::Space::kShared) return;
    if (variable.is_extern && BytesOf(variable) == 0) {
      dynamic.push_back(key);
      dynamic_alignment = std::max(dynamic_alignment, AlignmentOf(variable));
      return;
    }
    top = RoundUp(top, AlignmentOf(variable));
    shared_[key] = static_cast<uint64_t>(top);
    top = std::min<int64_t>(top + BytesOf(variable), int64_t{1} << 40);
  };
  for (const ptx::Variable& variable : module_.variables) {
    if (used.count(variable.name)) place(variable, "\n" + variable.name);
  }
  for (const int index : order_) {
    const ptx::Function& function = module_.functions[index];
    for (const ptx::Variable& variable : function.variables) {
      // Unused ones count too: the assembler reserves them.
      place(variable, function.name + "\n" + variable.name);
    }
  }
  program_->static_shared_bytes = top;
  program_->dynamic_shared_offset = dynamic.empty() ? top : RoundUp(top, dynamic_alignment);
  for (const std::string& key : dynamic) shared_[key] = static_cast<uint64_t>(program_->dynamic_shared_offset);
}

void Decoder::LayOutFunction(const ptx::Function& function, FunctionCode& code) {
  code.name = function.name;
  int64_t top = 0;
  auto place = [&](const ptx::Variable& variable) {
    top = RoundUp(top, std::min<int64_t>(AlignmentOf(variable), 256));
    LocalSlot slot{variable.name, top, BytesOf(variable)};
    top = std::min(top + slot.bytes, kMostLocalBytes);
    return slot;
  };
  // Another entry that is called is a function like others.
  if (&function == &entry_) {
    int64_t offset = 0;
    for (const ptx::Variable& parameter : function.parameters) {
      offset = RoundUp(offset, AlignmentOf(parameter));
      program_->parameters.push_back({parameter.name, offset, BytesOf(parameter)});
      parameters_.emplace(parameter.name, offset);
      offset = std::min(offset + BytesOf(parameter), int64_t{1} << 30);
    }
    program_->parameter_bytes = offset;
  } else {
    for (const ptx::Variable& variable : function.parameters) code.parameters.push_back(place(variable));
    for (const ptx::Variable& variable : function.returns) code.returns.push_back(place(variable));
  }
  for (const ptx::Variable& variable : function.variables) {
    if (variable.space == ptx::Space::kLocal || variable.space == ptx::Space::kParam) {
      const LocalSlot slot = place(variable);
      locals_[function.name + "\n" + variable.name] = slot;
    }
  }
  for (const LocalSlot& slot : code.parameters) locals_[function.name + "\n" + slot.name] = slot;
  for (const LocalSlot& slot : code.returns) locals_[function.name + "\n" + slot.name] = slot;
  // Frames keep the alignment that .local variables may ask for.
  code.local_bytes = RoundUp(top, 256);
}

Decoder::Place Decoder::FindPlace(const std::string& name) const {
  Place place;
  place.found = true;
  const std::string scoped = function_->name + "\n" + name;
  if (const auto local = locals_.find(scoped); local != locals_.end()) {
    place.space = AddressSpace::kLocal;
    place.address = static_cast<uint64_t>(local->second.offset);
    return place;
  }
  if (function_ == &entry_) {
    if (const auto parameter = parameters_.find(name); parameter != parameters_.end()) {
      place.space = AddressSpace::kParam;
      place.address = kParamWindow + static_cast<uint64_t>(parameter->second);
      return place;
    }
  }
  for (const std::string& key : {scoped, "\n" + name}) {
    if (const auto shared = shared_.find(key); shared != shared_.end()) {
      place.space = AddressSpace::kShared;
      place.address = shared->second;
      return place;
    }
    if (const auto global = addresses_.find(key); global != addresses_.end()) {
      place.space = AddressSpace::kGlobal;
      place.address = global->second;
      return place;
    }
  }
  if (const auto function = function_index_.find(name); function != function_index_.end()) {
    place.address = kFunctionWindow + static_cast<uint64_t>(function->second) * 16;
    return place;
  }
  place.found = false;
  return place;
}

void Decoder::DecodeFunction(const ptx::Function& function) {
  function_ = &function;
  declared_.clear();
  registers_.clear();
  branches_.clear();
  tables_.clear();
  register_bytes_ = 0;
  carry_ = kNoOperand;
  for (const ptx::RegisterDeclaration& declaration : function.registers) {
    declared_[declaration.name] = TypeFromName(declaration.type.name);
  }
  const int index = program_->module_to_function[function_index_.find(function.name)->second];
  FunctionCode& code = program_->functions[index];
  code.begin = static_cast<uint32_t>(program_->code.size());
  std::vector<uint32_t> first_op;
  first_op.reserve(function.body.size() + 1);
  for (const ptx::Instruction& in : function.body) {
    first_op.push_back(static_cast<uint32_t>(program_->code.size()));
    DecodeInstruction(in);
  }
  first_op.push_back(static_cast<uint32_t>(program_->code.size()));
  guard_ = kNoOperand;
  Emit(function.is_entry ? &ExecExit : &ExecReturn);
  PatchTargets(function, first_op);
  code.end = static_cast<uint32_t>(program_->code.size());
  code.register_bytes = register_bytes_;
}

void Decoder::DecodeInstruction(const ptx::Instruction& in) {
  instruction_ = &in;
  guard_ = kNoOperand;
  failed_ = false;
  widenings_.clear();
  Modifiers m = Sort(in);
  static const std::set<std::string_view> kControl = {
      "bra",  "brx",  "call",     "ret",      "exit",      "trap",       "bar",           "barrier",
      "shfl", "vote", "match",    "redux",    "elect",     "activemask", "nanosleep",     "brkpt",
      "mma",  "wmma", "ldmatrix", "stmatrix", "movmatrix", "pmevent",    "griddepcontrol"};
  const bool control = kControl.count(in.opcode) > 0;
  uint32_t skip = kNoOperand;  // operation that jumps over a guarded control operation
  if (!in.guard.empty()) {
    const Register* guard = FindRegister(in.guard);
    if (guard == nullptr || guard->bytes != 0) {
      Fail();
      return;
    }
    if (!control) {
      guard_ = guard->offset;
    } else if (in.opcode != "bra") {
      const uint32_t predicate = guard->offset;
      skip = static_cast<uint32_t>(program_->code.size());
      Op& op = Emit(&ExecBranchIf);
      op.a = predicate;
      op.flags = in.guard_negated ? 0 : 1;
    }
  }
  const bool known = control ? DecodeControl(in, m) : (DecodeMemory(in, m) || DecodeArithmetic(in, m));
  if (!known || (!m.rest.empty() && !failed_)) Fail();
  FinishDestinations();
  if (skip != kNoOperand) program_->code[skip].target = static_cast<uint32_t>(program_->code.size());
}

void Decoder::PatchTargets(const ptx::Function& function, const std::vector<uint32_t>& first_op) {
  auto find = [&](const std::string& label) -> uint32_t {
    const auto at = function.labels.find(label);
    if (at == function.labels.end() || at->second < 0 || static_cast<size_t>(at->second) >= first_op.size()) {
      if (program_->unsupported.empty()) {
        program_->unsupported = base::StrCat("a branch to the unknown label ", base::Quote(label));
      }
      return first_op.back();
    }
    return first_op[at->second];
  };
  for (const auto& [op, label] : branches_) program_->code[op].target = find(label);
  for (const auto& [list, labels] : tables_) {
    for (const std::string& label : labels) program_->lists[list].push_back(find(label));
  }
}

void Decoder::FinishConstants() {
  const size_t bytes = program_->constants.size();
  program_->constants.resize(bytes + 128);
  const auto address = reinterpret_cast<uintptr_t>(program_->constants.data());
  const size_t shift = (64 - address % 64) % 64;
  std::memmove(program_->constants.data() + shift, program_->constants.data(), bytes);
  program_->constant_base = program_->constants.data() + shift;
}

}  // namespace solstice::device
