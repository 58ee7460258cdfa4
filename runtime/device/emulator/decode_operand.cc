#include <algorithm>
#include <cstring>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/decoder.h"

namespace solstice::device {
namespace {

struct SpecialName {
  std::string_view name;
  Special special;
};
constexpr SpecialName kSpecials[] = {
    {"%tid.x", Special::kTidX},
    {"%tid.y", Special::kTidY},
    {"%tid.z", Special::kTidZ},
    {"%tid", Special::kTidX},
    {"%ntid.x", Special::kNtidX},
    {"%ntid.y", Special::kNtidY},
    {"%ntid.z", Special::kNtidZ},
    {"%ctaid.x", Special::kCtaidX},
    {"%ctaid.y", Special::kCtaidY},
    {"%ctaid.z", Special::kCtaidZ},
    {"%nctaid.x", Special::kNctaidX},
    {"%nctaid.y", Special::kNctaidY},
    {"%nctaid.z", Special::kNctaidZ},
    {"%laneid", Special::kLaneid},
    {"%warpid", Special::kWarpid},
    {"%nwarpid", Special::kNwarpid},
    {"%smid", Special::kSmid},
    {"%nsmid", Special::kNsmid},
    {"%gridid", Special::kGridid},
    {"%clock", Special::kClock},
    {"%clock_hi", Special::kClockHi},
    {"%clock64", Special::kClock64},
    {"%globaltimer", Special::kGlobaltimer},
    {"%globaltimer_lo", Special::kGlobaltimerLo},
    {"%globaltimer_hi", Special::kGlobaltimerHi},
    {"%lanemask_eq", Special::kLanemaskEq},
    {"%lanemask_lt", Special::kLanemaskLt},
    {"%lanemask_le", Special::kLanemaskLe},
    {"%lanemask_gt", Special::kLanemaskGt},
    {"%lanemask_ge", Special::kLanemaskGe},
    {"%dynamic_smem_size", Special::kDynamicSharedSize},
    {"%total_smem_size", Special::kTotalSharedSize},
    {"%aggr_smem_size", Special::kAllSharedSize},
    {"%reserved_smem_offset_begin", Special::kZero},
    {"%reserved_smem_offset_end", Special::kReservedSharedSize},
    {"%reserved_smem_offset_cap", Special::kReservedSharedSize},
    {"%reserved_smem_offset_0", Special::kZero},
    {"%reserved_smem_offset_1", Special::kZero},
    {"%tid.w", Special::kZero},
    {"%ntid.w", Special::kOne},
    {"%ctaid.w", Special::kZero},
    {"%nctaid.w", Special::kOne},
    // Outside of a graph, with no driver's values and nothing counted.
    {"%current_graph_exec", Special::kZero},
    {"%envreg", Special::kZero},
    {"%pm", Special::kZero},
    // Without clusters every block is a cluster of one.
    {"%cluster_ctarank", Special::kZero},
    {"%cluster_nctarank", Special::kOne},
    {"%cluster_ctaid.x", Special::kZero},
    {"%cluster_ctaid.y", Special::kZero},
    {"%cluster_ctaid.z", Special::kZero},
    {"%cluster_nctaid.x", Special::kOne},
    {"%cluster_nctaid.y", Special::kOne},
    {"%cluster_nctaid.z", Special::kOne},
    {"%clusterid.x", Special::kCtaidX},
    {"%clusterid.y", Special::kCtaidY},
    {"%clusterid.z", Special::kCtaidZ},
    {"%nclusterid.x", Special::kNctaidX},
    {"%nclusterid.y", Special::kNctaidY},
    {"%nclusterid.z", Special::kNctaidZ},
};

int SlotBytes(int bytes) { return bytes == 0 ? 4 : bytes == 1 ? 64 : bytes * kLanes; }

}  // namespace

Modifiers Decoder::Sort(const ptx::Instruction& in) const {
  static const std::map<std::string_view, Rounding> kRoundings = {
      {"rn", Rounding::kNearest},  {"rz", Rounding::kZero},        {"rm", Rounding::kDown},
      {"rp", Rounding::kUp},       {"rni", Rounding::kNearestInt}, {"rzi", Rounding::kZeroInt},
      {"rmi", Rounding::kDownInt}, {"rpi", Rounding::kUpInt},      {"rna", Rounding::kAway}};
  Modifiers m;
  for (const std::string& word : in.modifiers) {
    const Type type = TypeFromName(word);
    const auto rounding = kRoundings.find(word);
    if (type != Type::kNone) {
      m.types.push_back(type);
    } else if (rounding != kRoundings.end()) {
      m.rounding = rounding->second;
    } else {
      m.rest.insert(word);
    }
  }
  return m;
}

Op& Decoder::Emit(ExecFn fn) {
  Op op;
  op.fn = fn;
  op.guard = guard_;
  op.guard_negated = guard_ != kNoOperand && instruction_->guard_negated;
  program_->code.push_back(op);
  OpSource source;
  if (instruction_ != nullptr) {
    const ptx::Location* place = ptx::AuthorsPlace(module_, *instruction_);
    source = {place != nullptr ? place->file : instruction_->file, place != nullptr ? place->line : instruction_->line,
              instruction_->ptx_line};
  }
  program_->sources.push_back(source);
  return program_->code.back();
}

bool Decoder::Fail() {
  failed_ = true;
  if (!program_->unsupported.empty()) return true;
  std::string name = instruction_->opcode;
  for (const std::string& modifier : instruction_->modifiers) name += "." + modifier;
  std::string place;
  const auto file = module_.files.find(instruction_->file);
  if (instruction_->line > 0 && file != module_.files.end()) {
    const std::string& path = file->second;
    place = base::StrCat(path.substr(path.rfind('/') + 1), ":", instruction_->line);
  } else {
    place = base::StrCat("PTX line ", instruction_->ptx_line);
  }
  program_->unsupported = base::StrCat(std::string(base::Utf8Prefix(name, 100)), " (", place, ")");
  return true;
}

bool Decoder::Has(const ptx::Instruction& in, size_t least, size_t most) {
  return in.operands.size() >= least && in.operands.size() <= most;
}

uint32_t Decoder::Allocate(int bytes) {
  constexpr uint32_t kLimit = 16u << 20;
  if (register_bytes_ > kLimit) {
    Fail();
    return 0;
  }
  const uint32_t offset = register_bytes_;
  register_bytes_ += static_cast<uint32_t>((SlotBytes(bytes) + 63) / 64 * 64);
  return offset;
}

const Decoder::Register* Decoder::FindRegister(const std::string& name) {
  auto found = registers_.find(name);
  if (found != registers_.end()) return &found->second;
  auto declared = declared_.find(name);
  if (declared == declared_.end()) return nullptr;
  const int bytes = TypeBytes(declared->second);
  if (bytes == 0 && declared->second != Type::kPred) return nullptr;
  Register made{Allocate(bytes), bytes == 1 ? 2 : bytes};
  return &registers_.emplace(name, made).first->second;
}

uint32_t Decoder::Constant(int bytes, uint64_t value) {
  auto [at, inserted] = constants_.try_emplace({bytes, value}, 0);
  if (!inserted) return at->second | kConstantBit;
  std::vector<uint8_t>& pool = program_->constants;
  at->second = static_cast<uint32_t>(pool.size());
  const int lanes = bytes == 0 ? 1 : kLanes;
  const int width = bytes == 0 ? 4 : std::max(bytes, 2);
  pool.resize(pool.size() + (static_cast<size_t>(lanes * width) + 63) / 64 * 64);
  for (int i = 0; i < lanes; ++i) {
    std::memcpy(pool.data() + at->second + i * width, &value, static_cast<size_t>(std::min(width, 8)));
  }
  return at->second | kConstantBit;
}

int Decoder::RegisterBytes(const Operand& operand) {
  if (operand.kind != Operand::Kind::kRegister) return 0;
  const Register* r = FindRegister(operand.name);
  return r == nullptr ? 0 : r->bytes;
}

uint32_t Decoder::Source(const Operand& operand, Type type) {
  return SourceOfBytes(operand, std::max(TypeBytes(type), 2), IsFloat(type));
}

uint32_t Decoder::SourceOfBytes(const Operand& operand, int bytes, bool is_float) {
  switch (operand.kind) {
    case Operand::Kind::kRegister: {
      const Register* r = FindRegister(operand.name);
      if (r == nullptr || r->bytes == 0 || operand.negated) break;
      if (r->bytes == bytes) return r->offset;
      const ExecFn fn = FindResize(r->bytes, bytes, false);
      if (fn == nullptr) break;
      const uint32_t from = r->offset, temporary = Allocate(bytes);
      Op& op = Emit(fn);
      op.a = from;
      op.d = temporary;
      return temporary;
    }
    case Operand::Kind::kImmediate: {
      uint64_t bits = operand.bits;
      if (operand.is_float && operand.float_bytes == 8 && bytes == 4) {
        const double value = __builtin_bit_cast(double, bits);
        bits = __builtin_bit_cast(uint32_t, static_cast<float>(value));
      } else if (operand.is_float && operand.float_bytes == 4 && bytes == 8 && is_float) {
        const float value = __builtin_bit_cast(float, static_cast<uint32_t>(bits));
        bits = __builtin_bit_cast(uint64_t, static_cast<double>(value));
      }
      if (bytes == 16) break;
      if (bytes < 8) bits &= (uint64_t{1} << (bytes * 8)) - 1;
      return Constant(bytes, bits);
    }
    case Operand::Kind::kSpecial: {
      const uint32_t temporary = Allocate(bytes);
      if (!EmitSpecial(operand.name, temporary, bytes)) break;
      return temporary;
    }
    case Operand::Kind::kSymbol: {
      const Place place = FindPlace(operand.name);
      if (!place.found || (bytes != 4 && bytes != 8)) break;
      const uint64_t address = place.address + static_cast<uint64_t>(operand.offset);
      if (place.space != AddressSpace::kLocal) return Constant(bytes, bytes == 4 ? address & 0xffffffffu : address);
      const uint32_t temporary = Allocate(bytes);
      Op& op = Emit(&ExecLocalAddress);
      op.d = temporary;
      op.imm = static_cast<int64_t>(address);
      op.bytes = static_cast<uint8_t>(bytes);
      return temporary;
    }
    default:
      break;
  }
  Fail();
  return 0;
}

uint32_t Decoder::Destination(const Operand& operand, Type type) {
  const int bytes = std::max(TypeBytes(type), 2);
  if (operand.kind == Operand::Kind::kSink) return Allocate(bytes);
  const Register* r = operand.kind == Operand::Kind::kRegister ? FindRegister(operand.name) : nullptr;
  if (r == nullptr || r->bytes < bytes) {
    Fail();
    return 0;
  }
  if (r->bytes == bytes) return r->offset;
  Widening widening{r->offset, 0, r->bytes, bytes, IsSigned(type)};
  widening.from = Allocate(bytes);
  widenings_.push_back(widening);
  return widening.from;
}

void Decoder::FinishDestinations() {
  for (const Widening& w : widenings_) {
    const ExecFn fn = FindResize(w.from_bytes, w.to_bytes, w.sign);
    if (fn == nullptr) {
      Fail();
      continue;
    }
    Op& op = Emit(fn);
    op.a = w.from;
    op.d = w.to;
  }
  widenings_.clear();
}

uint32_t Decoder::PredicateSource(const Operand& operand) {
  if (operand.kind == Operand::Kind::kImmediate) return PredicateConstant((operand.bits != 0) != operand.negated);
  const Register* r = operand.kind == Operand::Kind::kRegister ? FindRegister(operand.name) : nullptr;
  if (r == nullptr || r->bytes != 0) {
    Fail();
    return 0;
  }
  if (!operand.negated) return r->offset;
  const uint32_t from = r->offset, temporary = Allocate(0);
  Op& op = Emit(&ExecPredicate);
  op.kind = static_cast<uint8_t>(PredicateOp::kNot);
  op.d = temporary;
  op.a = from;
  return temporary;
}

uint32_t Decoder::PredicateDestination(const Operand& operand) {
  if (operand.kind == Operand::Kind::kSink) return Allocate(0);
  const Register* r = operand.kind == Operand::Kind::kRegister ? FindRegister(operand.name) : nullptr;
  if (r == nullptr || r->bytes != 0) {
    Fail();
    return 0;
  }
  return r->offset;
}

bool Decoder::EmitSpecial(const std::string& name, uint32_t destination, int bytes) {
  // %envreg3, %pm2 and %pm2_64 have one row for all numbers.
  std::string_view plain = name;
  for (const std::string_view family : {"%envreg", "%pm"}) {
    if (plain.substr(0, family.size()) == family) plain = family;
  }
  for (const SpecialName& row : kSpecials) {
    if (row.name != plain) continue;
    if (bytes != 2 && bytes != 4 && bytes != 8) return false;
    Op& op = Emit(&ExecSpecial);
    op.d = destination;
    op.kind = static_cast<uint8_t>(row.special);
    op.bytes = static_cast<uint8_t>(bytes);
    return true;
  }
  return false;
}

uint32_t Decoder::AddressValue(const Operand& operand, AddressSpace* space) {
  Op place;
  if (!SetAddress(operand, *space, place)) return 0;
  *space = place.space;
  if (*space == AddressSpace::kLocal && place.a == kNoOperand) {
    Fail();
    return 0;
  }
  uint64_t displacement = static_cast<uint64_t>(place.imm);
  if (place.a == kNoOperand) return Constant(8, displacement);
  uint32_t value = place.a;
  AluKey key;
  key.op = Alu::kAdd;
  key.type = place.address32 ? Type::kU32 : Type::kU64;
  if (displacement != 0) {
    const int bytes = place.address32 ? 4 : 8;
    if (place.address32) displacement &= 0xffffffffu;
    const uint32_t b = Constant(bytes, displacement), sum = Allocate(bytes);
    if (Op* op = EmitAlu(key)) {
      op->d = sum;
      op->a = value;
      op->b = b;
    }
    value = sum;
  }
  if (!place.address32) return value;
  const uint32_t wide = Allocate(8);
  Op& op = Emit(FindResize(4, 8, false));
  op.a = value;
  op.d = wide;
  return wide;
}

bool Decoder::SetAddress(const Operand& operand, AddressSpace space, Op& op) {
  if (operand.kind != Operand::Kind::kAddress) {
    Fail();
    return false;
  }
  op.space = space;
  op.imm = operand.offset;
  if (operand.name.empty()) return true;  // absolute
  if (operand.base_is_symbol) {
    const Place place = FindPlace(operand.name);
    if (!place.found) {
      Fail();
      return false;
    }
    op.space = place.space;
    op.imm = static_cast<int64_t>(place.address + static_cast<uint64_t>(operand.offset));
    return true;
  }
  const Register* r = FindRegister(operand.name);
  if (r == nullptr || (r->bytes != 4 && r->bytes != 8)) {
    Fail();
    return false;
  }
  op.a = r->offset;
  op.address32 = r->bytes == 4;
  // The parameters of functions other than entries stand in the frame.
  if (space == AddressSpace::kParam && !function_->is_entry) op.space = AddressSpace::kLocal;
  return true;
}

Op* Decoder::EmitAlu(const AluKey& key) {
  const ExecFn fn = isa_.alu(key);
  if (fn == nullptr) {
    Fail();
    return nullptr;
  }
  Op& op = Emit(fn);
  op.kind = static_cast<uint8_t>(key.rounding);
  return &op;
}

}  // namespace solstice::device
