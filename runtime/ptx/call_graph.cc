#include "runtime/ptx/call_graph.h"

#include <algorithm>

namespace solstice::ptx {
namespace {

bool IsList(const Operand& operand) { return operand.kind == Operand::Kind::kList; }

void SortUnique(std::vector<int>* values) {
  std::sort(values->begin(), values->end());
  values->erase(std::unique(values->begin(), values->end()), values->end());
}

}  // namespace

const Operand* ResultsOf(const Instruction& call) {
  return !call.operands.empty() && IsList(call.operands[0]) ? &call.operands[0] : nullptr;
}

const Operand* CalleeOf(const Instruction& call) {
  size_t at = ResultsOf(call) != nullptr ? 1 : 0;
  return at < call.operands.size() && !IsList(call.operands[at]) ? &call.operands[at] : nullptr;
}

const Operand* ArgumentsOf(const Instruction& call) {
  size_t at = ResultsOf(call) != nullptr ? 2 : 1;
  return at < call.operands.size() && IsList(call.operands[at]) ? &call.operands[at] : nullptr;
}

CallGraph::CallGraph(const Module& module)
    : module_(module), nodes_(module.functions.size()), is_taken_(module.functions.size()) {
  for (size_t i = 0; i < module.functions.size(); ++i) {
    for (const Instruction& instruction : module.functions[i].body) {
      const Operand* callee = instruction.opcode == "call" ? CalleeOf(instruction) : nullptr;
      for (const Operand& operand : instruction.operands) Note(operand, static_cast<int>(i), &operand == callee);
    }
    SortUnique(&nodes_[i].callees);
    SortUnique(&nodes_[i].variables);
  }
  for (const Variable& variable : module.variables) {
    for (const Variable::Relocation& relocation : variable.relocations) TakeAddress(relocation.symbol);
  }
}

void CallGraph::TakeAddress(std::string_view name) {
  const Function* function = module_.FindFunction(name);
  if (function == nullptr) return;
  auto index = static_cast<int>(function - module_.functions.data());
  if (!is_taken_[index]) address_taken_.push_back(index);
  is_taken_[index] = true;
}

void CallGraph::Note(const Operand& operand, int function, bool is_callee) {
  bool is_symbol =
      operand.kind == Operand::Kind::kSymbol || (operand.kind == Operand::Kind::kAddress && operand.base_is_symbol);
  if (is_callee && !is_symbol) nodes_[function].calls_indirectly = true;
  if (is_symbol) {
    if (const Variable* variable = module_.FindVariable(operand.name)) {
      nodes_[function].variables.push_back(static_cast<int>(variable - module_.variables.data()));
    } else if (!is_callee) {
      TakeAddress(operand.name);
    } else if (const Function* callee = module_.FindFunction(operand.name)) {
      nodes_[function].callees.push_back(static_cast<int>(callee - module_.functions.data()));
    }
  }
  for (const Operand& element : operand.elements) Note(element, function, false);
}

std::vector<int> CallGraph::Reachable(int function) const {
  std::vector<bool> seen(nodes_.size());
  std::vector<int> order = {function};
  seen[function] = true;
  bool indirect_done = false;
  auto visit = [&](int next) {
    if (seen[next]) return;
    seen[next] = true;
    order.push_back(next);
  };
  for (size_t i = 0; i < order.size(); ++i) {
    const Node& node = nodes_[order[i]];
    for (int callee : node.callees) visit(callee);
    if (!node.calls_indirectly || indirect_done) continue;
    indirect_done = true;
    for (int taken : address_taken_) visit(taken);
  }
  return order;
}

}  // namespace solstice::ptx
