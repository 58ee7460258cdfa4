#include <algorithm>

#include "runtime/device/emulator/decoder.h"

namespace solstice::device {
namespace {

bool TakeSpace(Modifiers& m, AddressSpace* space) {
  static constexpr std::pair<std::string_view, AddressSpace> kSpaces[] = {
      {"global", AddressSpace::kGlobal},      {"shared", AddressSpace::kShared},
      {"shared::cta", AddressSpace::kShared}, {"local", AddressSpace::kLocal},
      {"const", AddressSpace::kConst},        {"param", AddressSpace::kParam},
      {"param::entry", AddressSpace::kParam}, {"param::func", AddressSpace::kParam}};
  *space = AddressSpace::kGeneric;
  for (const auto& [name, value] : kSpaces) {
    if (m.Take(name)) {
      *space = value;
      return true;
    }
  }
  return false;
}

// Ordering, scope and caching do not change what one thread of the emulator sees: accesses happen in program order.
// Returns whether a cache-hint operand follows.
bool TakeHints(Modifiers& m) {
  for (const std::string_view name : {"weak",
                                      "volatile",
                                      "relaxed",
                                      "acquire",
                                      "release",
                                      "acq_rel",
                                      "sc",
                                      "cta",
                                      "cluster",
                                      "gpu",
                                      "sys",
                                      "mmio",
                                      "nc",
                                      "ca",
                                      "cg",
                                      "cs",
                                      "lu",
                                      "cv",
                                      "wb",
                                      "wt",
                                      "unified",
                                      "aligned",
                                      "sync",
                                      "L2::64B",
                                      "L2::128B",
                                      "L2::256B",
                                      "L1::evict_normal",
                                      "L1::evict_unchanged",
                                      "L1::evict_first",
                                      "L1::evict_last",
                                      "L1::no_allocate",
                                      "L2::evict_normal",
                                      "L2::evict_first",
                                      "L2::evict_last",
                                      "L2::evict_unchanged"}) {
    m.Take(name);
  }
  return m.Take("L2::cache_hint");
}

// Before TakeHints.
uint8_t OrderOf(const Modifiers& m, bool atomic) {
  auto has = [&](std::string_view name) { return m.rest.count(name) > 0; };
  uint8_t flags = atomic || has("volatile") || has("relaxed") || has("mmio") ? kStrong : 0;
  if (has("acquire") || has("acq_rel")) flags |= kStrong | kAcquire;
  if (has("release") || has("acq_rel")) flags |= kStrong | kRelease;
  return flags;
}

}  // namespace

bool Decoder::DecodeMemory(const ptx::Instruction& in, Modifiers& m) {
  const std::string& name = in.opcode;
  if (name == "ld" || name == "ldu") return DecodeLoadStore(in, m, false);
  if (name == "st" && m.Take("bulk")) return DecodeBulkStore(in, m);
  if (name == "st") return DecodeLoadStore(in, m, true);
  if (name == "atom") return DecodeAtomic(in, m, false);
  if (name == "red") return DecodeAtomic(in, m, true);
  if (name == "cp" || name == "mbarrier") return DecodeAsync(in, m);
  if (name == "alloca" || name == "stacksave" || name == "stackrestore") return DecodeStack(in, m);
  if (name == "cvta" || name == "isspacep" || name == "mapa") return DecodeAddress(in, m);
  if (name == "membar" || name == "fence") {
    if (m.rest.count("proxy") || m.rest.count("cluster")) {
      for (const std::string& word : in.modifiers) {
        if (word.find("tensormap") != std::string::npos) return Fail();
      }
    }
    m.rest.clear();
    Emit(&ExecFence);
    return true;
  }
  if (name == "prefetch" || name == "prefetchu" || name == "discard" || name == "applypriority") {
    if (m.rest.count("tensormap")) return Fail();
    m.rest.clear();
    return true;
  }
  if (name == "createpolicy") {
    m.rest.clear();
    if (in.operands.empty()) return Fail();
    const uint32_t a = Constant(8, 0), d = Destination(in.operands[0], Type::kB64);
    AluKey key;
    key.op = Alu::kMov;
    key.type = Type::kB64;
    if (Op* op = EmitAlu(key)) {
      op->d = d;
      op->a = a;
    }
    return true;
  }
  return false;
}

bool Decoder::DecodeLoadStore(const ptx::Instruction& in, Modifiers& m, bool store) {
  AddressSpace space;
  TakeSpace(m, &space);
  if (!store && (space == AddressSpace::kGeneric || space == AddressSpace::kGlobal)) {
    for (const std::string_view word : {"volatile", "relaxed", "acquire", "mmio", "cv", "cg"}) {
      program_->may_wait_for_blocks |= m.rest.count(word) > 0;
    }
  }
  const uint8_t order = OrderOf(m, false);
  const bool hint = TakeHints(m);
  int count = 1;
  if (m.Take("v2")) count = 2;
  if (m.Take("v4")) count = 4;
  if (m.Take("v8")) count = 8;
  const size_t operands = hint ? 3 : 2;
  if (m.types.size() != 1 || in.operands.size() != operands) return Fail();
  const Operand& address = in.operands[store ? 0 : 1];
  const Operand& value = in.operands[store ? 1 : 0];
  std::vector<Operand> elements = {value};
  if (value.kind == Operand::Kind::kVector) elements = value.elements;
  if (elements.size() != static_cast<size_t>(count)) return Fail();
  MemoryKey key;
  key.memory = m.types[0];
  key.store = store;
  if (key.memory == Type::kPred || IsFloat(key.memory)) {
    // Only bits travel.
    const int bytes = TypeBytes(key.memory);
    key.memory = bytes == 2 ? Type::kB16 : bytes == 4 ? Type::kB32 : bytes == 8 ? Type::kB64 : Type::kNone;
  }
  std::vector<uint32_t> list;
  if (key.memory == Type::kB128) {
    key.memory = Type::kB64;
    key.register_bytes = 8;
    for (const Operand& element : elements) {
      const Register* r = element.kind == Operand::Kind::kRegister ? FindRegister(element.name) : nullptr;
      if (r == nullptr || r->bytes != 16) return Fail();
      list.push_back(r->offset);
      list.push_back(r->offset + 256);
    }
  } else {
    if (TypeBytes(key.memory) == 0) return Fail();
    // All elements go to registers of one width, the widest used.
    key.register_bytes = std::max(TypeBytes(key.memory), 2);
    for (const Operand& element : elements) key.register_bytes = std::max(key.register_bytes, RegisterBytes(element));
    if (key.register_bytes > 8) return Fail();
    static constexpr Type kUnsigned[] = {Type::kNone, Type::kNone, Type::kB16,  Type::kNone, Type::kB32,
                                         Type::kNone, Type::kNone, Type::kNone, Type::kB64};
    for (const Operand& element : elements) {
      if (store) {
        list.push_back(SourceOfBytes(element, key.register_bytes, IsFloat(m.types[0])));
      } else if (element.kind == Operand::Kind::kSink) {
        list.push_back(count > 1 ? kNoOperand : Allocate(key.register_bytes));
      } else {
        list.push_back(Destination(element, kUnsigned[key.register_bytes]));
      }
    }
  }
  const ExecFn fn = isa_.memory(key);
  if (fn == nullptr || failed_) return Fail();
  const int bytes = TypeBytes(key.memory) * static_cast<int>(list.size());
  if (bytes > 32) return Fail();
  Op& op = Emit(fn);
  op.bytes = static_cast<uint8_t>(TypeBytes(key.memory));
  op.count = static_cast<uint8_t>(list.size());
  op.flags = order;
  op.kind = static_cast<uint8_t>(key.register_bytes);
  if (list.size() == 1) {
    (store ? op.c : op.d) = list[0];
  } else {
    op.target = static_cast<uint32_t>(program_->lists.size());
    program_->lists.push_back(std::move(list));
  }
  SetAddress(address, space, op);
  return true;
}

bool Decoder::DecodeAtomic(const ptx::Instruction& in, Modifiers& m, bool reduction) {
  static constexpr std::pair<std::string_view, AtomicOp> kOps[] = {
      {"add", AtomicOp::kAdd},   {"min", AtomicOp::kMin}, {"max", AtomicOp::kMax}, {"and", AtomicOp::kAnd},
      {"or", AtomicOp::kOr},     {"xor", AtomicOp::kXor}, {"inc", AtomicOp::kInc}, {"dec", AtomicOp::kDec},
      {"exch", AtomicOp::kExch}, {"cas", AtomicOp::kCas}};
  AddressSpace space;
  TakeSpace(m, &space);
  if (!reduction && space != AddressSpace::kShared) program_->may_wait_for_blocks = true;
  const uint8_t order = OrderOf(m, true);
  const bool hint = TakeHints(m);
  const bool noftz = m.Take("noftz");
  int count = 1;
  if (m.Take("v2")) count = 2;
  if (m.Take("v4")) count = 4;
  if (m.Take("v8")) count = 8;
  bool found = false;
  AtomicOp operation = AtomicOp::kAdd;
  for (const auto& [name, value] : kOps) {
    if (m.Take(name)) {
      operation = value;
      found = true;
    }
  }
  const size_t sources = operation == AtomicOp::kCas ? 2 : 1;
  const size_t first = reduction ? 0 : 1;  // the address
  if (!found || m.types.size() != 1 || in.operands.size() != first + 1 + sources + (hint ? 1 : 0)) return Fail();
  const Type type = m.types[0];
  if (type == Type::kB128) return DecodeAtomic128(in, space, operation, reduction || count > 1);
  const ExecFn fn = FindAtomic(operation, type, noftz);
  if (fn == nullptr) return Fail();
  // A vector is one access for its alignment and bounds, and one atomic operation an element.
  std::vector<Operand> values = {in.operands[first + 1]}, results;
  if (!reduction) results = {in.operands[0]};
  if (count > 1) {
    if (sources != 1 || values[0].kind != Operand::Kind::kVector || in.operands[0].kind == Operand::Kind::kSink) {
      return Fail();
    }
    values = std::vector<Operand>(values[0].elements);
    if (!reduction) results = in.operands[0].elements;
    if (values.size() != static_cast<size_t>(count)) return Fail();
    if (!reduction && results.size() != static_cast<size_t>(count)) return Fail();
  }
  for (int i = 0; i < count; ++i) {
    const uint32_t b = Source(values[i], type);
    const uint32_t c = sources == 2 ? Source(in.operands[first + 2], type) : kNoOperand;
    const size_t element = static_cast<size_t>(i);
    const bool ignored = reduction || results[element].kind == Operand::Kind::kSink;
    uint32_t d = ignored ? kNoOperand : Destination(results[element], type);
    if (!ignored && count > 1) {
      // Written when all elements are done: a result may be the value of a later element.
      const int bytes = TypeBytes(type);
      const uint32_t to = d;
      d = Allocate(bytes);
      widenings_.insert(widenings_.begin(), Widening{to, d, bytes, bytes, false});
    }
    if (failed_) return true;
    Op& op = Emit(fn);
    op.d = d;
    op.b = b;
    op.c = c;
    op.bytes = static_cast<uint8_t>(TypeBytes(type));
    op.flags = order;
    if (!SetAddress(in.operands[first], space, op)) return true;
    op.imm = static_cast<int64_t>(static_cast<uint64_t>(op.imm) + static_cast<uint64_t>(i) * op.bytes);
  }
  return true;
}

bool Decoder::DecodeAtomic128(const ptx::Instruction& in, AddressSpace space, AtomicOp operation, bool refused) {
  if (refused || (operation != AtomicOp::kExch && operation != AtomicOp::kCas)) return Fail();
  auto find = [&](const Operand& operand) {
    const Register* r = operand.kind == Operand::Kind::kRegister ? FindRegister(operand.name) : nullptr;
    if (r == nullptr || r->bytes != 16) Fail();
    return r == nullptr ? 0 : r->offset;
  };
  const uint32_t d = in.operands[0].kind == Operand::Kind::kSink ? kNoOperand : find(in.operands[0]);
  const uint32_t b = find(in.operands[2]);
  const uint32_t c = operation == AtomicOp::kCas ? find(in.operands[3]) : kNoOperand;
  const uint32_t a = AddressValue(in.operands[1], &space);
  if (failed_) return true;
  Op& op = Emit(&ExecAtomic128);
  op.a = a;
  op.b = b;
  op.c = c;
  op.d = d;
  op.space = space;
  op.kind = static_cast<uint8_t>(operation);
  return true;
}

bool Decoder::DecodeStack(const ptx::Instruction& in, Modifiers& m) {
  if (m.types.size() != 1 || (m.types[0] != Type::kU32 && m.types[0] != Type::kU64)) return Fail();
  const std::string& name = in.opcode;
  // Sizes and pointers are handled as 64 bits.
  auto wide = [&](const Operand& operand) {
    const uint32_t a = Source(operand, m.types[0]);
    if (m.types[0] == Type::kU64 || failed_) return a;
    const uint32_t to = Allocate(8);
    Op& op = Emit(FindResize(4, 8, false));
    op.a = a;
    op.d = to;
    return to;
  };
  if (name == "stackrestore") {
    if (!Has(in, 1, 1)) return Fail();
    const uint32_t a = wide(in.operands[0]);
    Emit(&ExecStackRestore).a = a;
    return true;
  }
  const bool save = name == "stacksave";
  if (!Has(in, save ? 1 : 2, save ? 1 : 3)) return Fail();
  int64_t alignment = 16;
  if (in.operands.size() == 3) {
    const Operand& operand = in.operands[2];
    const bool power = operand.bits != 0 && (operand.bits & (operand.bits - 1)) == 0 && operand.bits <= 4096;
    if (operand.kind != Operand::Kind::kImmediate || !power) return Fail();
    alignment = static_cast<int64_t>(operand.bits);
  }
  const uint32_t a = save ? kNoOperand : wide(in.operands[1]);
  const uint32_t d = Destination(in.operands[0], m.types[0]);
  Op& op = Emit(save ? &ExecStackSave : &ExecAlloca);
  op.a = a;
  op.d = d;
  op.imm = alignment;
  op.bytes = static_cast<uint8_t>(TypeBytes(m.types[0]));
  return true;
}

// st.bulk{.weak}{.shared::cta} [a], bytes, 0
bool Decoder::DecodeBulkStore(const ptx::Instruction& in, Modifiers& m) {
  AddressSpace space;
  TakeSpace(m, &space);
  m.Take("weak");
  if (!m.types.empty() || !Has(in, 3, 3)) return Fail();
  const Operand& value = in.operands[2];
  const bool plain = space == AddressSpace::kGeneric || space == AddressSpace::kShared;
  if (!plain || value.kind != Operand::Kind::kImmediate || value.bits != 0) return Fail();
  const uint32_t a = AddressValue(in.operands[0], &space), b = Source(in.operands[1], Type::kU64);
  Op& op = Emit(&ExecBulkZero);
  op.a = a;
  op.b = b;
  op.space = space;
  return true;
}

bool Decoder::DecodeAddress(const ptx::Instruction& in, Modifiers& m) {
  if (in.opcode == "mapa" || !Has(in, 2, 2)) return Fail();
  const bool to = m.Take("to");
  AddressSpace space;
  if (!TakeSpace(m, &space)) return Fail();
  if (in.opcode == "isspacep") {
    const uint32_t a = Source(in.operands[1], Type::kB64), d = PredicateDestination(in.operands[0]);
    Op& op = Emit(&ExecIsSpace);
    op.d = d;
    op.a = a;
    op.space = space;
    return true;
  }
  if (m.types.size() != 1) return Fail();
  const Type type = m.types[0];
  const uint32_t a = Source(in.operands[1], type), d = Destination(in.operands[0], type);
  uint64_t window = space == AddressSpace::kShared ? kSharedWindow : space == AddressSpace::kLocal ? kLocalWindow : 0;
  if (space == AddressSpace::kParam && !function_->is_entry) window = kLocalWindow;
  AluKey key;
  key.type = type;
  key.op = window == 0 ? Alu::kMov : to ? Alu::kSub : Alu::kAdd;
  if (window != 0 && TypeBytes(type) != 8) return Fail();
  const uint32_t b = window == 0 ? kNoOperand : Constant(8, window);
  if (Op* op = EmitAlu(key)) {
    op->d = d;
    op->a = a;
    op->b = b;
  }
  return true;
}

}  // namespace solstice::device
