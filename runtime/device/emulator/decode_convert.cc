// cvt.
#include <tuple>

#include "runtime/device/emulator/decoder.h"

namespace solstice::device {

bool Decoder::DecodeConvert(const ptx::Instruction& in, Modifiers& m) {
  AluKey key;
  TakeFlags(m, key);
  if (m.Take("pack")) {
    // cvt.pack.sat.dtype.s32[.b32] d, a, b[, c]
    static constexpr std::tuple<std::string_view, int, bool> kParts[] = {
        {"u4", 4, false}, {"s4", 4, true}, {"u2", 2, false}, {"s2", 2, true}};
    int bits = 0;
    bool is_signed = false;
    for (const auto& [word, width, sign] : kParts) {
      if (!m.Take(word)) continue;
      bits = width;
      is_signed = sign;
    }
    if (bits == 0) {
      if (m.types.empty() || !IsInteger(m.types[0]) || TypeBytes(m.types[0]) > 2) return Fail();
      bits = TypeBytes(m.types[0]) * 8;
      is_signed = IsSigned(m.types[0]);
      m.types.erase(m.types.begin());
    }
    // Small parts are put below those of c.
    const size_t operands = m.types.size() == 2 ? 4 : 3;
    if (m.types.empty() || m.types[0] != Type::kS32 || (operands == 4 && m.types[1] != Type::kB32)) return Fail();
    if (!Has(in, operands, operands) || !key.sat || (operands == 3) != (bits == 16)) return Fail();
    const uint32_t a = Source(in.operands[1], Type::kS32), b = Source(in.operands[2], Type::kS32);
    const uint32_t c = in.operands.size() == 4 ? Source(in.operands[3], Type::kB32) : kNoOperand;
    const uint32_t d = Destination(in.operands[0], Type::kB32);
    Op& op = Emit(&ExecConvertPack);
    op.d = d;
    op.a = a;
    op.b = b;
    op.c = c;
    op.bytes = static_cast<uint8_t>(bits);
    op.flags = is_signed ? 1 : 0;
    return true;
  }
  if (m.types.size() != 2 || !Has(in, 2, 3)) return Fail();
  key.op = Alu::kCvt;
  key.type = m.types[0];
  key.source = m.types[1];
  if (TypeBytes(key.type) > 8 || TypeBytes(key.source) > 8) return Fail();
  const bool pair = in.operands.size() == 3;
  const uint32_t a = Source(in.operands[1], key.source);
  const uint32_t b = pair ? Source(in.operands[2], key.source) : kNoOperand;
  const bool packs = key.type == Type::kF16x2 || key.type == Type::kBf16x2 || key.type == Type::kE4m3x2 ||
                     key.type == Type::kE5m2x2 || key.type == Type::kE2m1x2 || key.type == Type::kE2m3x2 ||
                     key.type == Type::kE3m2x2 || key.type == Type::kUe8m0x2;
  if (packs != pair && !(packs && !IsFloat(key.source)) && !(packs && key.source != Type::kF32)) return Fail();
  if (pair && key.source != Type::kF32) return Fail();
  const uint32_t d = Destination(in.operands[0], key.type);
  if (Op* op = EmitAlu(key)) {
    op->d = d;
    op->a = a;
    op->b = b;
    op->imm = static_cast<int64_t>(key.type) << 8 | static_cast<int64_t>(key.source);
    op->flags =
        static_cast<uint8_t>((key.ftz ? 1 : 0) | (key.sat ? 2 : 0) | (key.relu ? 4 : 0) | (key.satfinite ? 8 : 0));
  }
  return true;
}

}  // namespace solstice::device
