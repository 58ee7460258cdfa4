#include "runtime/device/emulator/decoder.h"
#include "runtime/device/emulator/matrix_names.h"

namespace solstice::device {

bool Decoder::DecodeMatrix(const ptx::Instruction& in, Modifiers& m) {
  m.rest.clear();
  MatrixWords words;
  if (!ReadMatrixWords(in.modifiers, &words)) return Fail();
  auto take_first = [&](std::string_view word) {
    if (words.rest.empty() || words.rest[0] != word) return false;
    words.rest.erase(words.rest.begin());
    return true;
  };
  if (in.opcode == "mma" || (in.opcode == "wmma" && take_first("mma"))) {
    MatrixKey key;
    if (!MakeMatrixKey(words, in.opcode == "wmma", &key)) return Fail();
    return DecodeMatrixMultiply(in, key);
  }
  if (in.opcode == "wmma") {
    const bool store = take_first("store");
    if (!store && !take_first("load")) return Fail();
    FragmentKey key;
    MatrixRole role = MatrixRole::kAccumulator;
    if (!take_first(store ? "d" : "c")) {
      if (store) return Fail();
      role = words.Has("a") ? MatrixRole::kA : MatrixRole::kB;
      if (!take_first(role == MatrixRole::kA ? "a" : "b")) return Fail();
    }
    if (!MakeFragmentKey(words, role, &key)) return Fail();
    return DecodeMatrixFragment(in, key, words.space, words.row_major[0], store);
  }
  if (words.m != 8 || words.n != 8 || words.k != 0 || !words.elements.empty() || !words.row_major.empty()) {
    return Fail();
  }
  bool transposed = false, b16 = false;
  int count = 0;
  for (const std::string_view word : words.rest) {
    if (word == "trans") {
      transposed = true;
    } else if (word == "b16") {
      b16 = true;
    } else if (word == "x1" || word == "x2" || word == "x4") {
      count = word[1] - '0';
    } else {
      return Fail();
    }
  }
  if (!b16) return Fail();
  if (in.opcode != "movmatrix") {
    return count != 0 ? DecodeMatrixRows(in, words.space, count, transposed, in.opcode == "stmatrix") : Fail();
  }
  if (!transposed || count != 0 || words.space != AddressSpace::kGeneric || !Has(in, 2, 2)) return Fail();
  const uint32_t a = Source(in.operands[1], Type::kB32), d = Destination(in.operands[0], Type::kB32);
  if (failed_) return true;
  Op& op = Emit(&ExecMatrixTranspose);
  op.d = d;
  op.a = a;
  return true;
}

bool Decoder::AddRegisters(const Operand& operand, int count, int bytes, bool destination,
                           std::vector<uint32_t>* list) {
  const std::vector<Operand> one = {operand};
  const std::vector<Operand>& elements = operand.kind == Operand::Kind::kVector ? operand.elements : one;
  if (elements.size() != static_cast<size_t>(count)) {
    Fail();
    return false;
  }
  const Type type = bytes == 8 ? Type::kB64 : Type::kB32;
  for (const Operand& element : elements) {
    // An immediate may be written as a float.
    list->push_back(destination ? Destination(element, type) : SourceOfBytes(element, bytes, true));
  }
  return !failed_;
}

const Fragment* Decoder::FindFragment(const FragmentKey& key, uint32_t* index) {
  const auto [at, inserted] = fragments_.try_emplace(key, static_cast<uint32_t>(program_->fragments.size()));
  if (inserted) program_->fragments.push_back(MakeFragment(key));
  if (index != nullptr) *index = at->second;
  return &program_->fragments[at->second];
}

uint32_t Decoder::FindPlan(const MatrixKey& key) {
  const auto [at, inserted] = matrices_.try_emplace(key, static_cast<uint32_t>(program_->matrices.size()));
  if (!inserted) return at->second;
  auto fragment = [&](MatrixRole role, Element element, bool row_major) {
    return FindFragment({role, element, key.m, key.n, key.k, key.wmma, row_major});
  };
  MatrixPlan plan;
  plan.m = key.m;
  plan.n = key.n;
  plan.k = key.a == Element::kB1 ? key.k / 32 : key.k;
  plan.products = key.IsQuadPairs() ? 4 : 1;
  plan.saturate = key.saturate;
  plan.bitwise_and = key.bitwise_and;
  plan.a = fragment(MatrixRole::kA, key.a, key.a_row);
  plan.b = fragment(MatrixRole::kB, key.b, key.b_row);
  plan.c = fragment(MatrixRole::kAccumulator, key.c, true);
  plan.d = fragment(MatrixRole::kAccumulator, key.d, true);
  plan.multiply = isa_.multiply(plan);
  program_->matrices.push_back(plan);
  return at->second;
}

bool Decoder::DecodeMatrixMultiply(const ptx::Instruction& in, const MatrixKey& key) {
  if (!Has(in, 4, 4)) return Fail();
  std::vector<uint32_t> list = {FindPlan(key)};
  const MatrixPlan& plan = program_->matrices[list[0]];
  const Fragment* const fragments[] = {plan.d, plan.a, plan.b, plan.c};
  for (int i = 0; i < 4; ++i) {
    if (!AddRegisters(in.operands[i], fragments[i]->registers, fragments[i]->register_bytes, i == 0, &list)) {
      return true;
    }
  }
  Emit(&ExecMatrixMultiply).target = static_cast<uint32_t>(program_->lists.size());
  program_->lists.push_back(std::move(list));
  return true;
}

bool Decoder::DecodeMatrixFragment(const ptx::Instruction& in, const FragmentKey& key, AddressSpace space, bool rows,
                                   bool store) {
  if (!Has(in, 2, 3)) return Fail();
  std::vector<uint32_t> list(1);
  const Fragment& fragment = *FindFragment(key, &list[0]);
  if (!AddRegisters(in.operands[store ? 1 : 0], fragment.registers, fragment.register_bytes, !store, &list)) {
    return true;
  }
  const int packed = rows ? fragment.columns : fragment.rows;
  const uint32_t stride =
      in.operands.size() == 3 ? Source(in.operands[2], Type::kU32) : Constant(4, static_cast<uint64_t>(packed));
  if (failed_) return true;
  Op& op = Emit(store ? &ExecFragmentStore : &ExecFragmentLoad);
  op.b = stride;
  op.bytes = static_cast<uint8_t>(fragment.register_bytes / fragment.parts);
  op.flags = rows ? 1 : 0;
  op.target = static_cast<uint32_t>(program_->lists.size());
  program_->lists.push_back(std::move(list));
  if (!SetAddress(in.operands[store ? 0 : 1], space, op)) return true;
  const bool reachable =
      op.space == AddressSpace::kGeneric || op.space == AddressSpace::kGlobal || op.space == AddressSpace::kShared;
  return reachable || Fail();
}

bool Decoder::DecodeMatrixRows(const ptx::Instruction& in, AddressSpace space, int count, bool transposed, bool store) {
  if (!Has(in, 2, 2) || space == AddressSpace::kGlobal) return Fail();
  std::vector<uint32_t> list;
  if (!AddRegisters(in.operands[store ? 1 : 0], count, 4, !store, &list)) return true;
  Op& op = Emit(store ? &ExecMatrixWrite : &ExecMatrixRead);
  op.count = static_cast<uint8_t>(count);
  op.bytes = 16;
  op.flags = transposed ? 1 : 0;
  op.target = static_cast<uint32_t>(program_->lists.size());
  program_->lists.push_back(std::move(list));
  if (!SetAddress(in.operands[store ? 0 : 1], space, op)) return true;
  return op.space == AddressSpace::kGeneric || op.space == AddressSpace::kShared || Fail();
}

}  // namespace solstice::device
