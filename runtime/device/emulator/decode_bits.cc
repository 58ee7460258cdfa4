// Bit fields, shifts, permutations and moves.
#include <algorithm>

#include "runtime/device/emulator/decoder.h"

namespace solstice::device {

// lop3.and and lop3.or: also whether the result is not zero, combined with a predicate.
bool Decoder::DecodeLop3Predicate(const ptx::Instruction& in, Modifiers& m, Combine combine) {
  if (m.types.size() != 1 || m.types[0] != Type::kB32 || !Has(in, 6, 6)) return Fail();
  const Operand& table = in.operands[4];
  const Operand& to = in.operands[0];
  if (to.kind != Operand::Kind::kPair || to.elements.size() != 2) return Fail();
  if (table.kind != Operand::Kind::kImmediate || table.bits > 255) return Fail();
  uint32_t s[3];
  for (int i = 0; i < 3; ++i) s[i] = Source(in.operands[i + 1], Type::kB32);
  const uint32_t q = PredicateSource(in.operands[5]), zero = Constant(4, 0);
  const uint32_t d = Destination(to.elements[0], Type::kB32), p = PredicateDestination(to.elements[1]);
  AluKey key;
  key.op = Alu::kLop3;
  key.type = Type::kB32;
  if (Op* op = EmitAlu(key)) {
    op->d = d;
    op->a = s[0];
    op->b = s[1];
    op->c = s[2];
    op->imm = static_cast<int64_t>(table.bits);
  }
  key.op = Alu::kSetp;
  key.compare = Compare::kNe;
  if (Op* op = EmitAlu(key)) {
    op->d = p;
    op->a = d;
    op->b = zero;
    op->c = q;
    op->kind = static_cast<uint8_t>(combine);
  }
  return true;
}

bool Decoder::DecodeBits(const ptx::Instruction& in, Modifiers& m) {
  const std::string& name = in.opcode;
  if (name == "lop3") {
    if (m.Take("or")) return DecodeLop3Predicate(in, m, Combine::kOr);
    if (m.Take("and")) return DecodeLop3Predicate(in, m, Combine::kAnd);
  }
  AluKey key;
  // The types of the sources after the instruction's own.
  Type second = Type::kNone, third = Type::kNone, fourth = Type::kNone, result = Type::kNone;
  if (m.types.empty()) return Fail();
  key.type = m.types[0];
  result = key.type;
  if (name == "shl" || name == "shr") {
    key.op = name == "shl" ? Alu::kShl : Alu::kShr;
    second = Type::kU32;
  } else if (name == "popc" || name == "clz" || name == "bfind") {
    key.op = name == "popc" ? Alu::kPopc : name == "clz" ? Alu::kClz : Alu::kBfind;
    key.shift_amount = m.Take("shiftamt");
    result = Type::kU32;
  } else if (name == "bfe") {
    key.op = Alu::kBfe;
    second = third = Type::kU32;
  } else if (name == "bfi") {
    key.op = Alu::kBfi;
    second = key.type;
    third = fourth = Type::kU32;
  } else if (name == "bmsk" || name == "szext") {
    key.op = name == "bmsk" ? Alu::kBmsk : Alu::kSzext;
    second = Type::kU32;
    key.wrap = m.Take("wrap");
    if (!key.wrap && !m.Take("clamp")) return Fail();
  } else if (name == "fns") {
    key.op = Alu::kFns;
    second = Type::kU32;
    third = Type::kS32;
  } else if (name == "shf") {
    const bool left = m.Take("l");
    if (!left && !m.Take("r")) return Fail();
    key.op = left ? Alu::kShfL : Alu::kShfR;
    key.wrap = m.Take("wrap");
    if (!key.wrap && !m.Take("clamp")) return Fail();
    second = third = Type::kU32;
  } else if (name == "lop3" || name == "prmt") {
    key.op = name == "lop3" ? Alu::kLop3 : Alu::kPrmt;
    second = third = Type::kB32;
  } else if (name == "dp4a" || name == "dp2a") {
    // Only u32 and s32 are dot products' types; the loops rely on it.
    if (m.types.size() != 2) return Fail();
    for (const Type type : m.types) {
      if (type != Type::kU32 && type != Type::kS32) return Fail();
    }
    key.op = name == "dp4a" ? Alu::kDp4a : Alu::kDp2a;
    key.source = m.types[1];
    if (name == "dp2a") {
      key.second = m.Take("hi");
      if (!key.second && !m.Take("lo")) return Fail();
    }
    second = third = Type::kB32;
    result = Type::kB32;
  } else {
    return false;
  }
  int mode = 0;
  if (name == "prmt") {
    static constexpr std::string_view kModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
    for (int i = 0; i < 6; ++i) {
      if (m.Take(kModes[i])) mode = i + 1;
    }
  }
  const bool table = name == "lop3";
  const Type types[4] = {key.type, second, third, fourth};
  size_t sources = 1;
  while (sources < 4 && types[sources] != Type::kNone) ++sources;
  if (in.operands.size() != sources + 1 + (table ? 1 : 0)) return Fail();
  uint32_t s[4] = {kNoOperand, kNoOperand, kNoOperand, kNoOperand};
  for (size_t i = 0; i < sources; ++i) s[i] = Source(in.operands[i + 1], types[i]);
  int64_t imm = 0;
  if (table) {
    if (in.operands[4].kind != Operand::Kind::kImmediate || in.operands[4].bits > 255) return Fail();
    imm = static_cast<int64_t>(in.operands[4].bits);
  }
  const uint32_t d = Destination(in.operands[0], result);
  if (Op* op = EmitAlu(key)) {
    op->d = d;
    op->a = s[0];
    op->b = s[1];
    op->c = s[2];
    op->e = s[3];
    op->imm = imm;
    op->kind = static_cast<uint8_t>(mode);
  }
  return true;
}

bool Decoder::DecodeMov(const ptx::Instruction& in, Modifiers& m) {
  if (m.types.size() != 1 || !Has(in, 2, 2)) return Fail();
  const Type type = m.types[0];
  const Operand& to = in.operands[0];
  const Operand& from = in.operands[1];
  if (m.Take("v4")) {
    // A special register as a whole.
    if (from.kind != Operand::Kind::kSpecial || to.elements.size() != 4 || TypeBytes(type) != 4) return Fail();
    static constexpr std::string_view kParts[] = {".x", ".y", ".z", ".w"};
    for (size_t i = 0; i < 4; ++i) {
      const uint32_t d = Destination(to.elements[i], type);
      if (!EmitSpecial(from.name + std::string(kParts[i]), d, 4)) return Fail();
    }
    return true;
  }
  if (type == Type::kPred) {
    const uint32_t d = PredicateDestination(to), a = PredicateSource(from);
    Op& op = Emit(&ExecPredicate);
    op.kind = static_cast<uint8_t>(PredicateOp::kMov);
    op.d = d;
    op.a = op.b = a;
    return true;
  }
  const int bytes = TypeBytes(type);
  const bool join = from.kind == Operand::Kind::kVector, split = to.kind == Operand::Kind::kVector;
  if (join || split) {
    if (join && split) return Fail();
    const std::vector<Operand>& elements = join ? from.elements : to.elements;
    if (elements.empty() || bytes % static_cast<int>(elements.size()) != 0) return Fail();
    const int each = bytes / static_cast<int>(elements.size());
    const ExecFn fn = join ? FindJoin(bytes, each) : FindSplit(bytes, each);
    if (fn == nullptr) return Fail();
    static constexpr Type kBits[] = {Type::kNone, Type::kB8,   Type::kB16,  Type::kNone, Type::kB32,
                                     Type::kNone, Type::kNone, Type::kNone, Type::kB64};
    std::vector<uint32_t> list;
    for (const Operand& element : elements) {
      list.push_back(join ? SourceOfBytes(element, std::max(each, 2), false) : Destination(element, kBits[each]));
    }
    const uint32_t whole = join ? Destination(to, type) : SourceOfBytes(from, std::max(bytes, 2), false);
    Op& op = Emit(fn);
    (join ? op.d : op.a) = whole;
    op.target = static_cast<uint32_t>(program_->lists.size());
    program_->lists.push_back(std::move(list));
    return true;
  }
  if (from.kind == Operand::Kind::kSpecial) {
    const uint32_t d = Destination(to, type);
    if (!EmitSpecial(from.name, d, bytes)) return Fail();
    return true;
  }
  if (bytes == 16) {
    const Register* r = from.kind == Operand::Kind::kRegister ? FindRegister(from.name) : nullptr;
    if (r == nullptr || r->bytes != 16) return Fail();
    const uint32_t a = r->offset, d = Destination(to, type);
    for (uint32_t half = 0; half < 2; ++half) {
      AluKey key;
      key.op = Alu::kMov;
      key.type = Type::kB64;
      if (Op* op = EmitAlu(key)) {
        op->d = d + half * 256;
        op->a = a + half * 256;
      }
    }
    return true;
  }
  const uint32_t a = Source(from, type), d = Destination(to, type);
  AluKey key;
  key.op = Alu::kMov;
  key.type = type;
  if (Op* op = EmitAlu(key)) {
    op->d = d;
    op->a = a;
  }
  return true;
}

}  // namespace solstice::device
