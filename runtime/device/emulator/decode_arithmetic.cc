#include <algorithm>

#include "runtime/device/emulator/decoder.h"

namespace solstice::device {
namespace {

struct CompareName {
  std::string_view name;
  Compare compare;
};
constexpr CompareName kCompares[] = {{"eq", Compare::kEq},   {"ne", Compare::kNe},   {"lt", Compare::kLt},
                                     {"le", Compare::kLe},   {"gt", Compare::kGt},   {"ge", Compare::kGe},
                                     {"lo", Compare::kLt},   {"ls", Compare::kLe},   {"hi", Compare::kGt},
                                     {"hs", Compare::kGe},   {"equ", Compare::kEqu}, {"neu", Compare::kNeu},
                                     {"ltu", Compare::kLtu}, {"leu", Compare::kLeu}, {"gtu", Compare::kGtu},
                                     {"geu", Compare::kGeu}, {"num", Compare::kNum}, {"nan", Compare::kNan}};

struct SimpleName {
  std::string_view name;
  Alu op;
};
// d and one to three sources, all of the instruction's type.
constexpr SimpleName kSimple[] = {
    {"add", Alu::kAdd},     {"sub", Alu::kSub},   {"sad", Alu::kSad},   {"div", Alu::kDiv},
    {"rem", Alu::kRem},     {"abs", Alu::kAbs},   {"neg", Alu::kNeg},   {"min", Alu::kMin},
    {"max", Alu::kMax},     {"fma", Alu::kFma},   {"rcp", Alu::kRcp},   {"sqrt", Alu::kSqrt},
    {"rsqrt", Alu::kRsqrt}, {"sin", Alu::kSin},   {"cos", Alu::kCos},   {"lg2", Alu::kLg2},
    {"ex2", Alu::kEx2},     {"tanh", Alu::kTanh}, {"and", Alu::kAnd},   {"or", Alu::kOr},
    {"xor", Alu::kXor},     {"not", Alu::kNot},   {"cnot", Alu::kCnot}, {"copysign", Alu::kCopysign},
    {"brev", Alu::kBrev}};

int SourcesOf(Alu op) {
  switch (op) {
    case Alu::kSad:
    case Alu::kFma:
      return 3;
    case Alu::kAdd:
    case Alu::kSub:
    case Alu::kDiv:
    case Alu::kRem:
    case Alu::kMin:
    case Alu::kMax:
    case Alu::kAnd:
    case Alu::kOr:
    case Alu::kXor:
    case Alu::kCopysign:
      return 2;
    default:
      return 1;
  }
}

}  // namespace

void TakeFlags(Modifiers& m, AluKey& key) {
  key.rounding = m.rounding;
  key.ftz = m.Take("ftz");
  key.sat = m.Take("sat");
  key.approx = m.Take("approx");
  key.full = m.Take("full");
  key.relu = m.Take("relu");
  key.nan = m.Take("NaN");
  key.satfinite = m.Take("satfinite");
  key.xorsign = m.Take("xorsign");
  key.abs = m.Take("abs");
}

bool Decoder::DecodeArithmetic(const ptx::Instruction& in, Modifiers& m) {
  const std::string& name = in.opcode;
  if (name == "mov") return DecodeMov(in, m);
  if (name == "cvt") return DecodeConvert(in, m);
  if (name == "setp" || name == "set" || name == "selp" || name == "slct" || name == "testp") {
    return DecodeCompare(in, m);
  }
  if (name == "mul" || name == "mad" || name == "mul24" || name == "mad24" || name == "madc" || name == "addc" ||
      name == "subc" || m.rest.count("cc")) {
    return DecodeMultiply(in, m);
  }
  for (const SimpleName& row : kSimple) {
    if (row.name == name) return DecodeSimple(in, m, row.op);
  }
  return DecodeBits(in, m);
}

// add, sub and fma with a 16-bit float beside float32: the conversion is exact.
bool Decoder::DecodeMixed(const ptx::Instruction& in, Modifiers& m, Alu op) {
  const Type narrow = m.types[1];
  if (m.types[0] != Type::kF32 || (narrow != Type::kF16 && narrow != Type::kBf16)) return Fail();
  AluKey key;
  key.op = op;
  key.type = Type::kF32;
  TakeFlags(m, key);
  const size_t sources = op == Alu::kFma ? 3 : 2;
  if (!Has(in, sources + 1, sources + 1) || key.ftz) return Fail();
  AluKey widen;
  widen.op = Alu::kCvt;
  widen.type = Type::kF32;
  widen.source = narrow;
  uint32_t s[3] = {kNoOperand, kNoOperand, kNoOperand};
  for (size_t i = 0; i < sources; ++i) {
    if (i + 1 == sources) {
      s[i] = Source(in.operands[i + 1], Type::kF32);
      break;
    }
    const uint32_t from = Source(in.operands[i + 1], narrow);
    s[i] = Allocate(4);
    if (Op* emitted = EmitAlu(widen)) {
      emitted->d = s[i];
      emitted->a = from;
    }
  }
  const uint32_t d = Destination(in.operands[0], Type::kF32);
  if (Op* emitted = EmitAlu(key)) {
    emitted->d = d;
    emitted->a = s[0];
    emitted->b = s[1];
    emitted->c = s[2];
  }
  return true;
}

bool Decoder::DecodeSimple(const ptx::Instruction& in, Modifiers& m, Alu op) {
  if (m.types.size() == 2 && (op == Alu::kAdd || op == Alu::kSub || op == Alu::kFma)) return DecodeMixed(in, m, op);
  if (m.types.size() != 1) return Fail();
  AluKey key;
  key.op = op;
  key.type = m.types[0];
  TakeFlags(m, key);
  if (key.type == Type::kPred) {
    PredicateOp logic;
    if (op == Alu::kAnd)
      logic = PredicateOp::kAnd;
    else if (op == Alu::kOr)
      logic = PredicateOp::kOr;
    else if (op == Alu::kXor)
      logic = PredicateOp::kXor;
    else if (op == Alu::kNot)
      logic = PredicateOp::kNot;
    else
      return Fail();
    if (!Has(in, op == Alu::kNot ? 2 : 3, 3)) return Fail();
    const uint32_t d = PredicateDestination(in.operands[0]), a = PredicateSource(in.operands[1]);
    const uint32_t b = op == Alu::kNot ? a : PredicateSource(in.operands[2]);
    Op& emitted = Emit(&ExecPredicate);
    emitted.kind = static_cast<uint8_t>(logic);
    emitted.d = d;
    emitted.a = a;
    emitted.b = b;
    return true;
  }
  int sources = SourcesOf(op);
  if ((op == Alu::kMin || op == Alu::kMax) && key.type == Type::kF32 && in.operands.size() == 4) {
    key.second = true;
    sources = 3;
    if (key.xorsign) return Fail();
  } else if (key.abs != key.xorsign) {
    return Fail();
  }
  if (in.operands.size() != static_cast<size_t>(sources) + 1) return Fail();
  uint32_t s[3] = {kNoOperand, kNoOperand, kNoOperand};
  for (int i = 0; i < sources; ++i) s[i] = Source(in.operands[i + 1], key.type);
  const uint32_t d = Destination(in.operands[0], key.type);
  Op* emitted = EmitAlu(key);
  if (emitted == nullptr) return true;
  emitted->d = d;
  emitted->a = s[0];
  emitted->b = s[1];
  emitted->c = s[2];
  return true;
}

bool Decoder::DecodeMultiply(const ptx::Instruction& in, Modifiers& m) {
  if (m.types.size() != 1) return Fail();
  AluKey key;
  key.type = m.types[0];
  TakeFlags(m, key);
  const bool low = m.Take("lo"), high = m.Take("hi"), wide = m.Take("wide"), writes_carry = m.Take("cc");
  const std::string& name = in.opcode;
  const bool is_mad = name == "mad" || name == "madc" || name == "mad24";
  const bool carry = writes_carry || name == "addc" || name == "subc" || name == "madc";
  const size_t sources = is_mad ? 3 : 2;
  if (in.operands.size() != sources + 1) return Fail();
  if (carry) {
    if (name == "add" || name == "addc")
      key.op = Alu::kAddCarry;
    else if (name == "sub" || name == "subc")
      key.op = Alu::kSubCarry;
    else if (is_mad && (low || high))
      key.op = low ? Alu::kMadCarryLo : Alu::kMadCarryHi;
    else
      return Fail();
  } else if (IsFloat(key.type)) {
    key.op = is_mad ? Alu::kFma : Alu::kMul;
  } else if (name == "mul") {
    key.op = wide ? Alu::kMulWide : high ? Alu::kMulHi : Alu::kMulLo;
  } else if (name == "mad") {
    key.op = wide ? Alu::kMadWide : high ? Alu::kMadHi : Alu::kMadLo;
  } else if (name == "mul24") {
    key.op = high ? Alu::kMul24Hi : Alu::kMul24Lo;
  } else {
    key.op = high ? Alu::kMad24Hi : Alu::kMad24Lo;
  }
  Type result = key.type;
  if (wide) {
    switch (key.type) {
      case Type::kU16:
        result = Type::kU32;
        break;
      case Type::kS16:
        result = Type::kS32;
        break;
      case Type::kU32:
        result = Type::kU64;
        break;
      case Type::kS32:
        result = Type::kS64;
        break;
      default:
        return Fail();
    }
  }
  const uint32_t a = Source(in.operands[1], key.type), b = Source(in.operands[2], key.type);
  const uint32_t c = is_mad ? Source(in.operands[3], result) : kNoOperand;
  const uint32_t d = Destination(in.operands[0], result);
  if (carry && carry_ == kNoOperand) carry_ = Allocate(0);
  Op* op = EmitAlu(key);
  if (op == nullptr) return true;
  op->d = d;
  op->a = a;
  op->b = b;
  op->c = c;
  if (carry) {
    op->kind = static_cast<uint8_t>(key.op);
    op->e = carry_;
    const bool reads = name == "addc" || name == "subc" || name == "madc";
    op->flags = static_cast<uint8_t>((reads ? 1 : 0) | (writes_carry ? 2 : 0) | (IsSigned(key.type) ? 4 : 0));
  }
  return true;
}

bool Decoder::DecodeCompare(const ptx::Instruction& in, Modifiers& m) {
  AluKey key;
  TakeFlags(m, key);
  if (in.opcode == "testp") {
    static constexpr std::string_view kTests[] = {"finite", "infinite", "number", "notanumber", "normal", "subnormal"};
    if (m.types.size() != 1 || !Has(in, 2, 2)) return Fail();
    key.op = Alu::kTestp;
    key.type = m.types[0];
    int test = -1;
    for (int i = 0; i < 6; ++i) {
      if (m.Take(kTests[i])) test = i;
    }
    if (test < 0) return Fail();
    const uint32_t a = Source(in.operands[1], key.type), d = PredicateDestination(in.operands[0]);
    if (Op* op = EmitAlu(key)) {
      op->d = d;
      op->a = a;
      op->kind = static_cast<uint8_t>(test);
    }
    return true;
  }
  if (in.opcode == "selp" || in.opcode == "slct") {
    if (m.types.empty() || !Has(in, 4, 4)) return Fail();
    key.op = in.opcode == "selp" ? Alu::kSelp : Alu::kSlct;
    key.type = m.types[0];
    if (key.type == Type::kPred) {
      const uint32_t d = PredicateDestination(in.operands[0]);
      const uint32_t a = PredicateSource(in.operands[1]), b = PredicateSource(in.operands[2]),
                     c = PredicateSource(in.operands[3]);
      Op& op = Emit(&ExecSelectPredicate);
      op.d = d;
      op.a = a;
      op.b = b;
      op.c = c;
      return true;
    }
    const uint32_t a = Source(in.operands[1], key.type), b = Source(in.operands[2], key.type);
    uint32_t c;
    if (key.op == Alu::kSelp) {
      c = PredicateSource(in.operands[3]);
    } else {
      if (m.types.size() != 2 || (m.types[1] != Type::kS32 && m.types[1] != Type::kF32)) return Fail();
      key.source = m.types[1];
      c = Source(in.operands[3], key.source);
    }
    const uint32_t d = Destination(in.operands[0], key.type);
    if (Op* op = EmitAlu(key)) {
      op->d = d;
      op->a = a;
      op->b = b;
      op->c = c;
    }
    return true;
  }
  const bool is_set = in.opcode == "set";
  if (m.types.size() != (is_set ? 2u : 1u) || !Has(in, 3, 4)) return Fail();
  key.op = is_set ? Alu::kSet : Alu::kSetp;
  key.type = m.types.back();
  bool found = false;
  for (const CompareName& row : kCompares) {
    if (m.Take(row.name)) {
      key.compare = row.compare;
      found = true;
    }
  }
  if (!found) return Fail();
  Combine combine = Combine::kNone;
  if (m.Take("and")) combine = Combine::kAnd;
  if (m.Take("or")) combine = Combine::kOr;
  if (m.Take("xor")) combine = Combine::kXor;
  if ((combine != Combine::kNone) != (in.operands.size() == 4)) return Fail();
  uint32_t d = kNoOperand, e = kNoOperand;
  const Operand& destination = in.operands[0];
  if (is_set) {
    // A packed comparison fills a packed or 32-bit destination, any other a plain one.
    const Type to = m.types[0];
    const bool packed = key.type == Type::kF16x2 || key.type == Type::kBf16x2;
    const bool wide = to == Type::kF16x2 || to == Type::kBf16x2;
    const bool word = to == Type::kU32 || to == Type::kS32;
    const bool plain =
        word || to == Type::kF32 || to == Type::kU16 || to == Type::kS16 || to == Type::kF16 || to == Type::kBf16;
    if (packed ? !wide && !word : !plain) return Fail();
    d = Destination(destination, m.types[0]);
  } else if (destination.kind == Operand::Kind::kPair) {
    if (destination.elements.size() != 2) return Fail();
    d = PredicateDestination(destination.elements[0]);
    e = PredicateDestination(destination.elements[1]);
  } else {
    d = PredicateDestination(destination);
  }
  const uint32_t a = Source(in.operands[1], key.type), b = Source(in.operands[2], key.type);
  const uint32_t c = combine == Combine::kNone ? kNoOperand : PredicateSource(in.operands[3]);
  if (Op* op = EmitAlu(key)) {
    op->d = d;
    op->e = e;
    op->a = a;
    op->b = b;
    op->c = c;
    op->kind = static_cast<uint8_t>(combine);
    op->imm = is_set ? static_cast<int64_t>(m.types[0]) : 0;
  }
  return true;
}

}  // namespace solstice::device
