// What instructions do with addresses.
#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/ptx/flow_builder.h"

namespace solstice::ptx {
namespace {

template <size_t N>
bool IsOneOf(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool Has(const Instruction& instruction, std::string_view modifier) {
  const auto& all = instruction.modifiers;
  return std::find(all.begin(), all.end(), modifier) != all.end();
}

// "param::entry" is .param.
bool HasSpace(const Instruction& instruction, std::string_view space) {
  return std::any_of(instruction.modifiers.begin(), instruction.modifiers.end(),
                     [space](std::string_view modifier) { return modifier.substr(0, modifier.find("::")) == space; });
}

// What compares yields no address: a truth value, a mask of lanes.
bool IsComparison(std::string_view opcode) {
  static constexpr std::array<std::string_view, 7> kOpcodes = {"setp",  "set",      "testp",  "vote",
                                                               "match", "isspacep", "istypep"};
  return IsOneOf(opcode, kOpcodes);
}

// Instructions that only read through all their addresses.
bool OnlyReads(const Instruction& instruction) {
  static constexpr std::array<std::string_view, 11> kOpcodes = {
      "prefetch", "prefetchu", "applypriority", "createpolicy", "tex",  "tld4",
      "txq",      "suld",      "suq",           "ldmatrix",     "fence"};
  const std::string& opcode = instruction.opcode;
  if (IsOneOf(opcode, kOpcodes)) return true;
  if (opcode == "wmma") return Has(instruction, "load");
  if (opcode == "multimem") return Has(instruction, "ld_reduce");
  if (opcode == "cp") return Has(instruction, "prefetch");
  return opcode == "mbarrier" && (Has(instruction, "test_wait") || Has(instruction, "try_wait"));
}

// The system's functions that take addresses and keep none.
bool KeepsNothing(std::string_view function) { return function == "vprintf" || function == "__assertfail"; }

bool IsAddress(const Operand& operand) { return operand.kind == Operand::Kind::kAddress; }

}  // namespace

void FlowBuilder::AddInstruction(const Instruction& instruction) {
  const std::string& opcode = instruction.opcode;
  if (opcode == "call") return AddCall(instruction);
  if (instruction.operands.empty() || opcode == "bra" || opcode == "brx" || IsComparison(opcode)) return;
  if (opcode == "ld" || opcode == "ldu") return AddLoad(instruction);
  if (opcode == "st" && !Has(instruction, "async")) return AddStore(instruction);
  if (std::any_of(instruction.operands.begin(), instruction.operands.end(), IsAddress)) return AddMemory(instruction);
  AddComputation(instruction);
}

void FlowBuilder::AddLoad(const Instruction& instruction) {
  if (instruction.operands.size() < 2 || HasSpace(instruction, "shared")) return;
  int address = NodeOfAddress(instruction.operands[1]);
  bool is_private = HasSpace(instruction, "local") || HasSpace(instruction, "param");
  bool is_generic = !is_private && !HasSpace(instruction, "global") && !HasSpace(instruction, "const");
  ForEachResult(instruction.operands[0], [&](int result) {
    if (address >= 0) graph_.AddLoad(address, result);
    if (is_generic) graph_.AddFlow(graph_.escaped(), result);
    if (is_private) private_accesses_.push_back({PrivateAccess::Kind::kLoad, address, result, false});
  });
}

void FlowBuilder::AddStore(const Instruction& instruction) {
  if (instruction.operands.size() < 2) return;
  int address = NodeOfAddress(instruction.operands[0]);
  bool is_private = HasSpace(instruction, "local") || HasSpace(instruction, "param");
  int sink = is_private ? -1 : SinkHere();
  if (!is_private && address >= 0) graph_.AddWrite(address, sink);
  ForEachValue(instruction.operands[1], [&](int value) {
    if (address >= 0) graph_.AddStore(address, value);
    if (is_private) {
      private_accesses_.push_back({PrivateAccess::Kind::kStore, address, value, false});
    } else {
      graph_.AddEscape(value, sink);
    }
  });
}

// Atomics, reductions, copies, matrix loads and whatever else has an address: it writes, unless known to read only.
void FlowBuilder::AddMemory(const Instruction& instruction) {
  bool only_reads = OnlyReads(instruction);
  bool is_copy = instruction.opcode == "cp";
  const std::vector<Operand>& operands = instruction.operands;
  bool has_result = !IsAddress(operands[0]);
  int seen = 0;
  int last_written = -1;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (IsAddress(operands[i])) {
      int address = NodeOfAddress(operands[i]);
      bool is_source = is_copy && seen++ == 1;
      if (address < 0) continue;
      if (has_result) ForEachResult(operands[0], [&](int result) { graph_.AddLoad(address, result); });
      if (only_reads) continue;
      if (is_source) {
        graph_.AddCopyOut(address, SinkHere());
      } else {
        graph_.AddWrite(address, SinkHere());
        last_written = address;
      }
    } else if (!only_reads && (i > 0 || !has_result)) {
      ForEachValue(operands[i], [&](int value) {
        graph_.AddEscape(value, SinkHere());
        if (last_written >= 0) graph_.AddStore(last_written, value);
      });
    }
  }
}

// Anything else: the first operand is the result, and what the others hold may be in it.
void FlowBuilder::AddComputation(const Instruction& instruction) {
  const std::vector<Operand>& operands = instruction.operands;
  std::vector<int> results, values;
  ForEachResult(operands[0], [&](int node) { results.push_back(node); });
  if (results.empty()) return;
  for (size_t i = 1; i < operands.size(); ++i) {
    ForEachValue(operands[i], [&](int node) { values.push_back(node); });
  }
  if (results.size() > 1 && values.size() > 1) {
    int between = graph_.AddNode();
    for (int value : values) graph_.AddFlow(value, between);
    values = {between};
  }
  for (int result : results) {
    for (int value : values) graph_.AddFlow(value, result);
  }
  bool makes_private = instruction.opcode == "alloca" ||
                       (instruction.opcode == "cvta" && HasSpace(instruction, "local") && !Has(instruction, "to"));
  if (!makes_private) return;
  private_accesses_.push_back({PrivateAccess::Kind::kConvert, values.empty() ? -1 : values[0], results[0], false});
}

std::vector<int> FlowBuilder::HandedOver(const Operand* list) {
  std::vector<int> nodes;
  if (list == nullptr) return nodes;
  for (const Operand& operand : list->elements) {
    const Place* place = Find(operand.name);
    bool has_name = operand.kind == Operand::Kind::kSymbol || operand.kind == Operand::Kind::kRegister;
    int node = -1;
    if (has_name && place != nullptr) node = place->object >= 0 ? graph_.ContentsOf(place->object) : place->node;
    nodes.push_back(node);
  }
  return nodes;
}

void FlowBuilder::HandOver(const std::vector<int>& from, const std::vector<int>& to) {
  for (size_t i = 0; i < std::min(from.size(), to.size()); ++i) {
    if (from[i] >= 0 && to[i] >= 0) graph_.AddFlow(from[i], to[i]);
  }
}

// The first `count` nodes of a hub through which all indirect calls go.
std::vector<int> FlowBuilder::Hub(std::vector<int>* hub, size_t count) {
  while (hub->size() < count) hub->push_back(graph_.AddNode());
  return {hub->begin(), hub->begin() + static_cast<ptrdiff_t>(count)};
}

void FlowBuilder::AddCall(const Instruction& instruction) {
  const Operand* callee = CalleeOf(instruction);
  if (callee == nullptr) return;
  std::vector<int> arguments = HandedOver(ArgumentsOf(instruction));
  std::vector<int> results = HandedOver(ResultsOf(instruction));
  if (callee->kind != Operand::Kind::kSymbol) {
    HandOver(arguments, Hub(&hub_parameters_, arguments.size()));
    HandOver(Hub(&hub_results_, results.size()), results);
    return;
  }
  const Function* function = module_.FindFunction(callee->name);
  if (function == nullptr) return;
  if (!function->is_declaration) {
    const Signature& signature = signatures_[function - module_.functions.data()];
    HandOver(arguments, signature.parameters);
    HandOver(signature.returns, results);
    return;
  }
  if (KeepsNothing(function->name)) return;
  for (int argument : arguments) {
    if (argument >= 0) graph_.AddEscape(argument, SinkHere());
  }
}

void FlowBuilder::ConnectIndirectCalls() {
  for (int index : calls_.address_taken()) {
    const Signature& signature = signatures_[index];
    HandOver(hub_parameters_, signature.parameters);
    HandOver(signature.returns, hub_results_);
  }
}

}  // namespace solstice::ptx
