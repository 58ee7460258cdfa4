// cp.async and mbarrier.
#include "runtime/device/emulator/decoder.h"

namespace solstice::device {
namespace {

bool TakeShared(Modifiers& m) { return m.Take("shared") || m.Take("shared::cta"); }

void TakeScope(Modifiers& m) {
  for (const std::string_view name : {"release", "acquire", "relaxed", "cta", "cluster"}) m.Take(name);
}

}  // namespace

bool Decoder::DecodeAsync(const ptx::Instruction& in, Modifiers& m) {
  if (in.opcode == "mbarrier") return DecodeMbarrier(in, m);
  if (!m.Take("async") || m.rest.count("bulk") > 0) return Fail();
  if (m.Take("commit_group")) {
    if (!Has(in, 0, 0)) return Fail();
    Emit(&ExecAsyncCommit);
    return true;
  }
  const bool all = m.Take("wait_all");
  if (all || m.Take("wait_group")) {
    if (!Has(in, all ? 0 : 1, all ? 0 : 1)) return Fail();
    if (!all && (in.operands[0].kind != Operand::Kind::kImmediate || in.operands[0].bits > UINT32_MAX)) return Fail();
    Op& op = Emit(&ExecAsyncWait);
    op.flags = all ? 1 : 0;
    op.imm = all ? 0 : static_cast<int64_t>(in.operands[0].bits);
    return true;
  }
  if (m.Take("mbarrier")) {
    if (!m.Take("arrive") || !Has(in, 1, 1) || m.types.size() != 1 || m.types[0] != Type::kB64) return Fail();
    AddressSpace space = TakeShared(m) ? AddressSpace::kShared : AddressSpace::kGeneric;
    const uint8_t flags = m.Take("noinc") ? 1 : 0;
    const uint32_t a = AddressValue(in.operands[0], &space);
    Op& op = Emit(&ExecAsyncArrive);
    op.a = a;
    op.flags = flags;
    op.space = space;
    return true;
  }
  return DecodeAsyncCopy(in, m);
}

bool Decoder::DecodeAsyncCopy(const ptx::Instruction& in, Modifiers& m) {
  const bool around = m.Take("cg");  // the first-level cache: only copies of 16 bytes
  // The first space is the destination's.
  for (const std::string& word : in.modifiers) {
    if (word == "global") return Fail();
    if (word == "shared" || word == "shared::cta") break;
  }
  if ((!around && !m.Take("ca")) || !TakeShared(m) || !m.Take("global")) return Fail();
  for (const std::string_view name : {"L2::64B", "L2::128B", "L2::256B"}) m.Take(name);
  const size_t hints = m.Take("L2::cache_hint") ? 1 : 0;
  if (!m.types.empty() || !Has(in, 3 + hints, 4 + hints)) return Fail();
  const Operand& size = in.operands[2];
  const uint64_t bytes = size.kind == Operand::Kind::kImmediate ? size.bits : 0;
  if (bytes != 16 && (around || (bytes != 4 && bytes != 8))) return Fail();
  AddressSpace to_space = AddressSpace::kShared, from_space = AddressSpace::kGlobal;
  const uint32_t a = AddressValue(in.operands[0], &to_space), b = AddressValue(in.operands[1], &from_space);
  if (to_space != AddressSpace::kShared || from_space != AddressSpace::kGlobal) return Fail();
  uint32_t c = kNoOperand, e = kNoOperand;
  if (in.operands.size() == 4 + hints) {
    const Operand& source = in.operands[3];
    const Register* r = source.kind == Operand::Kind::kRegister ? FindRegister(source.name) : nullptr;
    if (r != nullptr && r->bytes == 0) {
      e = PredicateSource(source);
    } else {
      c = Source(source, Type::kU32);
    }
  }
  Op& op = Emit(&ExecAsyncCopy);
  op.a = a;
  op.b = b;
  op.c = c;
  op.e = e;
  op.bytes = static_cast<uint8_t>(bytes);
  return true;
}

bool Decoder::DecodeMbarrier(const ptx::Instruction& in, Modifiers& m) {
  static constexpr std::pair<std::string_view, MbarrierOp> kKinds[] = {{"init", MbarrierOp::kInit},
                                                                       {"inval", MbarrierOp::kInval},
                                                                       {"arrive", MbarrierOp::kArrive},
                                                                       {"arrive_drop", MbarrierOp::kArrive},
                                                                       {"test_wait", MbarrierOp::kWait},
                                                                       {"try_wait", MbarrierOp::kWait},
                                                                       {"expect_tx", MbarrierOp::kExpect},
                                                                       {"complete_tx", MbarrierOp::kComplete},
                                                                       {"pending_count", MbarrierOp::kPendingCount}};
  if (in.modifiers.empty() || m.types.size() != 1 || m.types[0] != Type::kB64) return Fail();
  // The first word is the operation: `arrive` has others that look like one.
  const std::string& name = in.modifiers[0];
  MbarrierOp kind = MbarrierOp::kInit;
  bool found = false;
  for (const auto& [word, value] : kKinds) {
    if (word != name) continue;
    kind = value;
    found = m.Take(name);
  }
  if (!found) return Fail();
  TakeScope(m);
  AddressSpace space = TakeShared(m) ? AddressSpace::kShared : AddressSpace::kGeneric;
  uint8_t flags = 0;
  uint32_t a = kNoOperand, b = kNoOperand, d = kNoOperand;
  const auto& operands = in.operands;
  switch (kind) {
    case MbarrierOp::kPendingCount:
      if (!Has(in, 2, 2) || space != AddressSpace::kGeneric) return Fail();
      a = Source(operands[1], Type::kB64);
      d = Destination(operands[0], Type::kU32);
      break;
    case MbarrierOp::kInval:
      if (!Has(in, 1, 1)) return Fail();
      a = AddressValue(operands[0], &space);
      break;
    case MbarrierOp::kInit:
    case MbarrierOp::kExpect:
    case MbarrierOp::kComplete:
      if (!Has(in, 2, 2)) return Fail();
      a = AddressValue(operands[0], &space);
      b = Source(operands[1], Type::kU32);
      break;
    case MbarrierOp::kArrive: {
      if (name == "arrive_drop") flags |= kMbarrierDrop;
      if (m.Take("noComplete")) flags |= kMbarrierNoComplete;
      if (m.Take("expect_tx")) flags |= kMbarrierExpect;
      const bool counts = flags & (kMbarrierNoComplete | kMbarrierExpect);
      if (!Has(in, counts ? 3 : 2, 3) || flags == (kMbarrierNoComplete | kMbarrierExpect)) return Fail();
      a = AddressValue(operands[1], &space);
      if (operands.size() == 3) b = Source(operands[2], Type::kU32);
      if (operands[0].kind != Operand::Kind::kSink) d = Destination(operands[0], Type::kB64);
      break;
    }
    default: {
      if (m.Take("parity")) kind = MbarrierOp::kWaitParity;
      // A limit of time to wait may follow: here no try waits.
      if (!Has(in, 3, name == "try_wait" ? 4 : 3)) return Fail();
      a = AddressValue(operands[1], &space);
      b = Source(operands[2], kind == MbarrierOp::kWaitParity ? Type::kU32 : Type::kB64);
      if (operands.size() == 4) Source(operands[3], Type::kU32);
      d = PredicateDestination(operands[0]);
      break;
    }
  }
  Op& op = Emit(&ExecMbarrier);
  op.kind = static_cast<uint8_t>(kind);
  op.flags = flags;
  op.space = space;
  op.a = a;
  op.b = b;
  op.d = d;
  return true;
}

}  // namespace solstice::device
