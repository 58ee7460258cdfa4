// Instructions and their operands.
#include <string>
#include <unordered_set>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/ptx/parser.h"

namespace solstice::ptx {
namespace {

using base::StrCat;

// Special registers with .x, .y, .z and .w.
const std::unordered_set<std::string_view>& VectorSpecials() {
  static const std::unordered_set<std::string_view> kNames = {
      "%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"};
  return kNames;
}

const std::unordered_set<std::string_view>& ScalarSpecials() {
  static const std::unordered_set<std::string_view> kNames = {"%laneid",
                                                              "%warpid",
                                                              "%nwarpid",
                                                              "%smid",
                                                              "%nsmid",
                                                              "%gridid",
                                                              "%is_explicit_cluster",
                                                              "%cluster_ctarank",
                                                              "%cluster_nctarank",
                                                              "%lanemask_eq",
                                                              "%lanemask_le",
                                                              "%lanemask_lt",
                                                              "%lanemask_ge",
                                                              "%lanemask_gt",
                                                              "%clock",
                                                              "%clock_hi",
                                                              "%clock64",
                                                              "%globaltimer",
                                                              "%globaltimer_lo",
                                                              "%globaltimer_hi",
                                                              "%total_smem_size",
                                                              "%aggr_smem_size",
                                                              "%dynamic_smem_size",
                                                              "%current_graph_exec",
                                                              "%reserved_smem_offset_begin",
                                                              "%reserved_smem_offset_end",
                                                              "%reserved_smem_offset_cap",
                                                              "%reserved_smem_offset_0",
                                                              "%reserved_smem_offset_1"};
  return kNames;
}

bool IsNumbered(std::string_view name, std::string_view prefix) {
  if (name.size() <= prefix.size() || name.substr(0, prefix.size()) != prefix) return false;
  return name.find_first_not_of("0123456789", prefix.size()) == std::string_view::npos;
}

bool IsScalarSpecial(std::string_view name) {
  if (ScalarSpecials().count(name) != 0 || IsNumbered(name, "%envreg") || IsNumbered(name, "%pm")) return true;
  constexpr std::string_view k64 = "_64";
  return name.size() > k64.size() && name.substr(name.size() - k64.size()) == k64 &&
         IsNumbered(name.substr(0, name.size() - k64.size()), "%pm");
}

constexpr std::string_view kLanes = "xyzw";

// Index of .x .y .z .w (or .r .g .b .a), -1 for others.
int LaneOf(std::string_view name) {
  if (name.size() != 1) return -1;
  size_t at = kLanes.find(name[0]);
  if (at == std::string_view::npos) at = std::string_view("rgba").find(name[0]);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

}  // namespace

bool Parser::ParseGuard(Instruction* instruction) {
  instruction->guard_negated = Accept('!');
  if (!IsIdentifier()) return Fail(StrCat("expected a predicate register after '@', found ", Found()));
  NameTable::Local local;
  if (!names_.Find(token_.text, &local) || local.kind != NameTable::Kind::kRegister) {
    return Fail(StrCat("the guard ", Found(), " is not a declared register"));
  }
  instruction->guard = NameTable::Renamed(token_.text, local.rename);
  Advance();
  return true;
}

bool Parser::ParseInstruction() {
  if (!Count(&instructions_, Limits::kInstructions, 1, "instructions")) return false;
  Instruction& instruction = function_->body.emplace_back();
  if (Accept('@') && !ParseGuard(&instruction)) return false;
  instruction.ptx_line = token_.line;
  instruction.location = location_;
  if (location_ >= 0) {
    instruction.file = module_.locations[location_].file;
    instruction.line = module_.locations[location_].line;
  }
  if (!IsIdentifier()) return Fail(StrCat("expected an instruction, found ", Found()));
  instruction.opcode = token_.text;
  Advance();
  while (token_.kind == Token::Kind::kDot) {
    if (instruction.modifiers.size() == Limits::kModifiers) return Fail("an instruction has too many modifiers");
    instruction.modifiers.emplace_back(token_.text);
    Advance();
  }
  in_call_ = instruction.opcode == "call";
  in_branch_ = instruction.opcode == "bra";
  if (!IsPunctuation(';')) {
    do {
      if (!ParseOperand(&instruction.operands.emplace_back(), 0)) return false;
    } while (Accept(','));
  }
  return Expect(';', StrCat("after ", base::Quote(instruction.opcode)));
}

bool Parser::ParseOperand(Operand* operand, int depth) {
  if (!Count(&operands_, Limits::kOperands, 1, "operands")) return false;
  if (!ParsePrimary(operand, depth)) return false;
  bool may_pair = operand->kind == Operand::Kind::kRegister || operand->kind == Operand::Kind::kSink;
  if (!may_pair || !Accept('|')) return true;
  if (!Count(&operands_, Limits::kOperands, 1, "operands")) return false;
  Operand pair;
  pair.kind = Operand::Kind::kPair;
  pair.elements.push_back(std::move(*operand));
  if (!ParsePrimary(&pair.elements.emplace_back(), depth + 1)) return false;
  *operand = std::move(pair);
  return true;
}

bool Parser::ParsePrimary(Operand* operand, int depth) {
  if (IsIdentifier() && token_.text != "WARP_SZ") return ParseName(operand, depth == 0);
  if (depth > Limits::kOperandDepth) return Fail("operands are nested too deep");
  if (Accept('[')) return ParseAddress(operand, depth);
  if (Accept('{')) {
    operand->kind = Operand::Kind::kVector;
    return ParseElements(&operand->elements, '}', depth + 1);
  }
  if (in_call_ && depth == 0 && Accept('(')) {
    operand->kind = Operand::Kind::kList;
    return Accept(')') || ParseElements(&operand->elements, ')', depth + 1);
  }
  if ((IsPunctuation('!') || IsPunctuation('-')) && Peek().kind == Token::Kind::kIdentifier &&
      Peek().text != "WARP_SZ") {
    Advance();
    operand->negated = true;
    return ParseName(operand, false);
  }
  Constant value;
  if (!ParseConstant(&value)) return false;
  operand->kind = Operand::Kind::kImmediate;
  operand->bits = value.bits;
  operand->is_float = value.is_float;
  operand->float_bytes = value.float_bytes;
  return true;
}

bool Parser::ParseElements(std::vector<Operand>* elements, int close, int depth) {
  do {
    if (!ParseOperand(&elements->emplace_back(), depth)) return false;
  } while (Accept(','));
  return Expect(close, "after a list of operands");
}

bool Parser::ParseSpecial(std::string_view name, Operand* operand) {
  operand->kind = Operand::Kind::kSpecial;
  operand->name = name;
  if (IsScalarSpecial(name)) return true;
  if (VectorSpecials().count(name) == 0) {
    return Fail(StrCat(base::Quote(name), " is neither a declared nor a special register"));
  }
  if (token_.kind == Token::Kind::kDot) {
    if (LaneOf(token_.text) < 0) return Fail(StrCat(base::Quote(name), " has no part ", Found()));
    operand->name += '.';
    operand->name += kLanes[LaneOf(token_.text)];
    Advance();
  }
  return true;
}

bool Parser::ParseName(Operand* operand, bool may_be_label) {
  std::string_view name = token_.text;
  int line = token_.line;
  Advance();
  if (name == "_") {
    operand->kind = Operand::Kind::kSink;
    return true;
  }
  NameTable::Local local;
  if (in_branch_ || !names_.Find(name, &local)) {
    if (name[0] == '%') return ParseSpecial(name, operand);
    operand->kind = Operand::Kind::kSymbol;
    operand->name = name;
    if (may_be_label) {
      const Instruction& instruction = function_->body.back();
      names_.Refer({name, static_cast<uint32_t>(function_->body.size() - 1),
                    static_cast<uint32_t>(instruction.operands.size() - 1), line, false});
    } else {
      wanted_.try_emplace(name, line);
    }
    return ParseOffset(&operand->offset);
  }
  std::string unique = NameTable::Renamed(name, local.rename);
  if (local.kind == NameTable::Kind::kVectorRegister) {
    if (token_.kind == Token::Kind::kDot) {
      int lane = LaneOf(token_.text);
      if (lane < 0 || lane >= local.width) return Fail(StrCat(base::Quote(name), " has no part ", Found()));
      operand->kind = Operand::Kind::kRegister;
      operand->name = StrCat(unique, ".", kLanes[lane]);
      Advance();
      return true;
    }
    if (!Count(&operands_, Limits::kOperands, local.width, "operands")) return false;
    operand->kind = Operand::Kind::kVector;
    for (int lane = 0; lane < local.width; ++lane) {
      Operand& element = operand->elements.emplace_back();
      element.kind = Operand::Kind::kRegister;
      element.name = StrCat(unique, ".", kLanes[lane]);
    }
    return true;
  }
  bool is_register = local.kind == NameTable::Kind::kRegister;
  operand->kind = is_register ? Operand::Kind::kRegister : Operand::Kind::kSymbol;
  operand->name = std::move(unique);
  return ParseOffset(&operand->offset);
}

bool Parser::ParseOffset(int64_t* offset) {
  uint64_t sum = 0;
  while (IsPunctuation('+') || IsPunctuation('-')) {
    bool minus = IsPunctuation('-');
    Advance();
    Constant value;
    if (!ParseBinary(&value, 10, 0)) return false;  // 10: '*' and tighter, so that a-b-c goes from left to right
    if (value.is_float) return Fail("an offset must be an integer");
    sum = minus ? sum - value.bits : sum + value.bits;
  }
  *offset = static_cast<int64_t>(sum);
  return true;
}

bool Parser::ParseAddress(Operand* operand, int depth) {
  if (IsIdentifier()) {
    if (!ParseName(operand, false)) return false;
    if (operand->kind != Operand::Kind::kRegister && operand->kind != Operand::Kind::kSymbol) {
      return Fail(StrCat("an address needs a register, a variable or a number, found ", base::Quote(operand->name)));
    }
    operand->base_is_symbol = operand->kind == Operand::Kind::kSymbol;
  } else {
    Constant value;
    if (!ParseConstant(&value)) return false;
    if (value.is_float) return Fail("an address must be an integer");
    operand->offset = static_cast<int64_t>(value.bits);
  }
  operand->kind = Operand::Kind::kAddress;
  if (Accept(',')) return ParseElements(&operand->elements, ']', depth + 1);
  return Expect(']', "after an address");
}

}  // namespace solstice::ptx
