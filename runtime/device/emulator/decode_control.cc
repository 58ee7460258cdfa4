#include <algorithm>

#include "runtime/device/emulator/decoder.h"

namespace solstice::device {

bool Decoder::DecodeControl(const ptx::Instruction& in, Modifiers& m) {
  const std::string& name = in.opcode;
  if (name == "bra") {
    m.Take("uni");
    if (!Has(in, 1, 1) || in.operands[0].name.empty()) return Fail();
    const Register* guard = in.guard.empty() ? nullptr : FindRegister(in.guard);
    branches_.emplace_back(static_cast<uint32_t>(program_->code.size()), in.operands[0].name);
    Op& op = Emit(guard == nullptr ? &ExecBranch : &ExecBranchIf);
    if (guard != nullptr) {
      op.a = guard->offset;
      op.flags = in.guard_negated ? 1 : 0;
    }
    return true;
  }
  if (name == "brx") {
    m.Take("uni");
    if (!m.Take("idx") || !Has(in, 2, 2)) return Fail();
    const ptx::BranchTargets* targets = nullptr;
    for (const ptx::BranchTargets& candidate : function_->branch_targets) {
      if (candidate.name == in.operands[1].name) targets = &candidate;
    }
    if (targets == nullptr) return Fail();
    const uint32_t a = Source(in.operands[0], Type::kU32);
    Op& op = Emit(&ExecBranchIndex);
    op.a = a;
    op.target = static_cast<uint32_t>(program_->lists.size());
    tables_.emplace_back(op.target, targets->labels);
    program_->lists.emplace_back();
    return true;
  }
  if (name == "call") return DecodeCall(in, m);
  if (name == "ret") {
    m.Take("uni");
    Emit(function_->is_entry ? &ExecExit : &ExecReturn);
    return true;
  }
  if (name == "exit") {
    Emit(&ExecExit);
    return true;
  }
  if (name == "trap") {
    Emit(&ExecTrap);
    return true;
  }
  if (name == "brkpt") return true;
  if (name == "griddepcontrol") {  // launches do not overlap here: what came before is done
    return (m.Take("wait") || m.Take("launch_dependents")) && Has(in, 0, 0) ? true : Fail();
  }
  if (name == "pmevent") {
    m.Take("mask");
    if (!Has(in, 1, 1) || in.operands[0].kind != Operand::Kind::kImmediate) return Fail();
    return true;
  }
  if (name == "nanosleep") {
    if (!Has(in, 1, 1)) return Fail();
    const uint32_t a = Source(in.operands[0], Type::kU32);
    program_->may_wait_for_blocks = true;
    Emit(&ExecNanosleep).a = a;
    return true;
  }
  if (name == "bar" || name == "barrier") return DecodeBarrier(in, m);
  if (name == "mma" || name == "wmma" || name == "ldmatrix" || name == "stmatrix" || name == "movmatrix") {
    return DecodeMatrix(in, m);
  }
  return DecodeSync(in, m);
}

bool Decoder::DecodeCall(const ptx::Instruction& in, Modifiers& m) {
  m.Take("uni");
  const Operand* results = nullptr;
  const Operand* callee = nullptr;
  const Operand* arguments = nullptr;
  for (const Operand& operand : in.operands) {
    if (operand.kind == Operand::Kind::kList) {
      (callee == nullptr ? results : arguments) = &operand;
    } else if (callee == nullptr) {
      callee = &operand;
    }
  }
  if (callee == nullptr) return Fail();
  CallSite site;
  auto slots = [&](const Operand* list, std::vector<LocalSlot>& out) {
    if (list == nullptr) return true;
    for (const Operand& element : list->elements) {
      const auto local = locals_.find(function_->name + "\n" + element.name);
      if (element.kind != Operand::Kind::kSymbol || local == locals_.end()) return false;
      out.push_back(local->second);
    }
    return true;
  };
  if (!slots(results, site.results) || !slots(arguments, site.arguments)) return Fail();
  if (callee->kind == Operand::Kind::kRegister) {
    const uint32_t a = Source(*callee, Type::kB64);
    Op& op = Emit(&ExecCallIndirect);
    op.a = a;
    op.target = static_cast<uint32_t>(program_->calls.size());
    program_->calls.push_back(std::move(site));
    return true;
  }
  const auto found = function_index_.find(callee->name);
  if (found == function_index_.end()) return Fail();
  const ptx::Function& target = module_.functions[found->second];
  if (target.is_declaration) {
    std::vector<uint32_t> list;
    for (const LocalSlot& slot : site.arguments) list.push_back(static_cast<uint32_t>(slot.offset));
    ExecFn fn = nullptr;
    if (callee->name == "__assertfail" && site.arguments.size() == 5) fn = &ExecAssertFail;
    if (callee->name == "vprintf" && site.arguments.size() == 2 && site.results.size() <= 1) {
      fn = &ExecPrintf;
      for (const LocalSlot& slot : site.results) list.push_back(static_cast<uint32_t>(slot.offset));
    }
    if (fn == nullptr) {
      failed_ = true;
      if (program_->unsupported.empty()) program_->unsupported = "a call of " + callee->name;
      return true;
    }
    Op& op = Emit(fn);
    op.target = static_cast<uint32_t>(program_->lists.size());
    program_->lists.push_back(std::move(list));
    return true;
  }
  const int index = program_->module_to_function[found->second];
  if (index < 0) return Fail();
  const FunctionCode& code = program_->functions[index];
  if (code.parameters.size() != site.arguments.size() || code.returns.size() < site.results.size()) return Fail();
  Op& op = Emit(&ExecCall);
  op.imm = index;
  op.target = static_cast<uint32_t>(program_->calls.size());
  program_->calls.push_back(std::move(site));
  return true;
}

bool Decoder::DecodeSync(const ptx::Instruction& in, Modifiers& m) {
  const std::string& name = in.opcode;
  const std::vector<Operand>& operands = in.operands;
  m.Take("sync");
  if (name == "activemask") {
    if (m.types.size() != 1 || !Has(in, 1, 1)) return Fail();
    const uint32_t d = Destination(operands[0], Type::kB32);
    Emit(&ExecActiveMask).d = d;
    return true;
  }
  uint32_t d = kNoOperand, e = kNoOperand;
  auto destination = [&](Type type) {
    if (operands.empty()) return;
    const Operand& to = operands[0];
    if (to.kind == Operand::Kind::kPair && to.elements.size() == 2) {
      d = Destination(to.elements[0], type);
      e = PredicateDestination(to.elements[1]);
    } else {
      d = Destination(to, type);
    }
  };
  if (name == "shfl") {
    static constexpr std::string_view kModes[] = {"up", "down", "bfly", "idx"};
    int mode = -1;
    for (int i = 0; i < 4; ++i) {
      if (m.Take(kModes[i])) mode = i;
    }
    if (mode < 0 || m.types.size() != 1 || !Has(in, 4, 5)) return Fail();
    destination(Type::kB32);
    const uint32_t a = Source(operands[1], Type::kB32), b = Source(operands[2], Type::kB32),
                   c = Source(operands[3], Type::kB32);
    const uint32_t mask = operands.size() == 5 ? Source(operands[4], Type::kB32) : Constant(4, kAllLanes);
    Op& op = Emit(&ExecShuffle);
    op.d = d;
    op.e = e;
    op.a = a;
    op.b = b;
    op.c = c;
    op.target = mask;
    op.kind = static_cast<uint8_t>(mode);
    return true;
  }
  if (name == "vote") {
    static constexpr std::string_view kModes[] = {"all", "any", "uni", "ballot"};
    int mode = -1;
    for (int i = 0; i < 4; ++i) {
      if (m.Take(kModes[i])) mode = i;
    }
    if (mode < 0 || m.types.size() != 1 || !Has(in, 2, 3)) return Fail();
    if (m.types[0] == Type::kPred) {
      d = PredicateDestination(operands[0]);
    } else {
      d = Destination(operands[0], Type::kB32);
    }
    const uint32_t a = PredicateSource(operands[1]);
    const uint32_t mask = operands.size() == 3 ? Source(operands[2], Type::kB32) : Constant(4, kAllLanes);
    Op& op = Emit(&ExecVote);
    op.d = d;
    op.a = a;
    op.target = mask;
    op.kind = static_cast<uint8_t>(mode);
    return true;
  }
  if (name == "match") {
    const bool all = m.Take("all");
    if ((!all && !m.Take("any")) || m.types.size() != 1 || TypeBytes(m.types[0]) < 4 || !Has(in, 3, 3)) {
      return Fail();
    }
    destination(Type::kB32);
    const uint32_t a = Source(operands[1], m.types[0]), mask = Source(operands[2], Type::kB32);
    Op& op = Emit(&ExecMatch);
    op.d = d;
    op.e = e;
    op.a = a;
    op.bytes = static_cast<uint8_t>(TypeBytes(m.types[0]));
    op.flags = all ? 1 : 0;
    op.target = mask;
    return true;
  }
  if (name == "redux") {
    static constexpr std::string_view kOps[] = {"add", "min", "max", "and", "or", "xor"};
    int mode = -1;
    for (int i = 0; i < 6; ++i) {
      if (m.Take(kOps[i])) mode = i;
    }
    if (mode < 0 || m.types.size() != 1 || TypeBytes(m.types[0]) != 4 || !Has(in, 3, 3)) return Fail();
    uint8_t flags = IsSigned(m.types[0]) ? kReduxSigned : 0;
    if (IsFloat(m.types[0])) {
      const ReduxOp operation = static_cast<ReduxOp>(mode);
      if (m.types[0] != Type::kF32 || (operation != ReduxOp::kMin && operation != ReduxOp::kMax)) return Fail();
      flags = kReduxFloat;
      if (m.Take("abs")) flags |= kReduxAbs;
      if (m.Take("NaN")) flags |= kReduxNan;
    }
    destination(m.types[0]);
    const uint32_t a = Source(operands[1], m.types[0]), mask = Source(operands[2], Type::kB32);
    Op& op = Emit(&ExecRedux);
    op.d = d;
    op.a = a;
    op.target = mask;
    op.kind = static_cast<uint8_t>(mode);
    op.flags = flags;
    return true;
  }
  if (name == "elect") {
    if (!Has(in, 2, 2)) return Fail();
    destination(Type::kB32);
    const uint32_t mask = Source(operands[1], Type::kB32);
    Op& op = Emit(&ExecElect);
    op.d = d;
    op.e = e;
    op.target = mask;
    return true;
  }
  return Fail();
}

bool Decoder::DecodeBarrier(const ptx::Instruction& in, Modifiers& m) {
  m.Take("cta");
  m.Take("aligned");
  const std::vector<Operand>& operands = in.operands;
  if (m.Take("warp")) {
    if (!m.Take("sync") || !Has(in, 1, 1)) return Fail();
    const uint32_t mask = Source(operands[0], Type::kB32);
    Emit(&ExecWarpSync).target = mask;
    return true;
  }
  BarrierOp kind = BarrierOp::kSync;
  bool reduces = false;
  if (m.Take("red")) {
    reduces = true;
    if (m.Take("popc"))
      kind = BarrierOp::kPopc;
    else if (m.Take("and"))
      kind = BarrierOp::kAnd;
    else if (m.Take("or"))
      kind = BarrierOp::kOr;
    else
      return Fail();
  } else if (m.Take("arrive")) {
    kind = BarrierOp::kArrive;
  } else if (!m.Take("sync")) {
    return Fail();
  }
  uint32_t d = kNoOperand, c = kNoOperand;
  size_t next = 0;
  if (reduces) {
    if (!Has(in, 3, 4)) return Fail();
    d = kind == BarrierOp::kPopc ? Destination(operands[0], Type::kU32) : PredicateDestination(operands[0]);
    c = PredicateSource(operands.back());
    next = 1;
  }
  const size_t last = operands.size() - (reduces ? 1 : 0);
  if (last <= next || last - next > 2) return Fail();
  const uint32_t a = Source(operands[next], Type::kU32);
  const uint32_t b = last - next == 2 ? Source(operands[next + 1], Type::kU32) : kNoOperand;
  if (kind == BarrierOp::kArrive && b == kNoOperand) return Fail();
  Op& op = Emit(&ExecBarrier);
  op.d = d;
  op.a = a;
  op.b = b;
  op.c = c;
  op.kind = static_cast<uint8_t>(kind);
  return true;
}

}  // namespace solstice::device
