#include "runtime/ptx/flow_builder.h"

#include <algorithm>
#include <array>
#include <utility>

namespace solstice::ptx {
namespace {

using ObjectKind = TaintGraph::ObjectKind;

// An unknown place in private memory costs a round; more rounds than this and every such access is taken for unknown.
constexpr int kRounds = 4;

}  // namespace

FlowBuilder::FlowBuilder(const Module& module, const CallGraph& calls, bool merged, TaintGraph* graph)
    : module_(module), calls_(calls), merged_(merged), graph_(*graph) {}

bool FlowBuilder::Run() {
  DeclareVariables();
  DeclareSignatures();
  for (size_t i = 0; i < module_.functions.size(); ++i) AddFunction(static_cast<int>(i));
  ConnectIndirectCalls();
  for (int round = 0;; ++round) {
    if (!graph_.Solve()) return false;
    if (!ConnectUnknownPrivate(round >= kRounds)) return true;
  }
}

int FlowBuilder::NewPrivate() {
  if (merged_ && merged_private_ >= 0) return merged_private_;
  merged_private_ = graph_.AddObject(ObjectKind::kPrivate);
  privates_.push_back(merged_private_);
  return merged_private_;
}

void FlowBuilder::DeclareVariables() {
  int merged_global = -1, merged_const = -1;
  for (const Variable& variable : module_.variables) {
    int object = -1;
    bool is_global = variable.space == Space::kGlobal;
    if (is_global || variable.space == Space::kConst) {
      int& merged = is_global ? merged_global : merged_const;
      object = merged;
      if (!merged_ || merged < 0) {
        object = merged = graph_.AddObject(is_global ? ObjectKind::kVariable : ObjectKind::kReadOnly);
      }
    }
    variables_.push_back(object);
  }
  for (size_t i = 0; i < variables_.size(); ++i) {
    if (variables_[i] < 0) continue;
    for (const Variable::Relocation& relocation : module_.variables[i].relocations) {
      const Variable* target = module_.FindVariable(relocation.symbol);
      int object = target == nullptr ? -1 : variables_[target - module_.variables.data()];
      if (object >= 0) graph_.AddAddress(graph_.ContentsOf(variables_[i]), object);
    }
  }
}

int FlowBuilder::DeclareParameter(const Variable& parameter, Place* place) {
  if (parameter.space == Space::kReg) return place->node = graph_.AddNode();
  place->object = NewPrivate();
  return graph_.ContentsOf(place->object);
}

void FlowBuilder::DeclareSignatures() {
  signatures_.resize(module_.functions.size());
  parameter_places_.resize(module_.functions.size());
  for (size_t i = 0; i < module_.functions.size(); ++i) {
    const Function& function = module_.functions[i];
    for (const Variable& parameter : function.parameters) {
      signatures_[i].parameters.push_back(DeclareParameter(parameter, &parameter_places_[i][parameter.name]));
    }
    for (const Variable& result : function.returns) {
      signatures_[i].returns.push_back(DeclareParameter(result, &parameter_places_[i][result.name]));
    }
  }
}

void FlowBuilder::AddFunction(int index) {
  const Function& function = module_.functions[index];
  if (function.is_declaration) return;
  function_ = index;
  places_ = std::move(parameter_places_[index]);
  places_.reserve(places_.size() + function.registers.size() + function.variables.size());
  for (const RegisterDeclaration& declaration : function.registers) {
    auto [at, added] = places_.try_emplace(declaration.name);
    if (!added) continue;  // a parameter in a register
    at->second.is_predicate = declaration.type.name == "pred";
    if (!at->second.is_predicate) at->second.node = graph_.AddNode();
  }
  for (const Variable& variable : function.variables) {
    if (variable.space == Space::kLocal || variable.space == Space::kParam) {
      places_[variable.name].object = NewPrivate();
    } else {
      places_[variable.name];  // .shared: hides a module-scope name, holds nothing
    }
  }
  for (size_t i = 0; i < function.body.size(); ++i) {
    instruction_ = static_cast<int>(i);
    AddInstruction(function.body[i]);
  }
}

const FlowBuilder::Place* FlowBuilder::Find(std::string_view name) const {
  auto found = places_.find(name);
  return found == places_.end() ? nullptr : &found->second;
}

int FlowBuilder::AddressNode(int object) {
  if (object < 0) return -1;
  if (static_cast<size_t>(object) >= address_nodes_.size()) address_nodes_.resize(object + 1, -1);
  int& node = address_nodes_[object];
  if (node < 0) {
    node = graph_.AddNode();
    graph_.AddAddress(node, object);
  }
  return node;
}

int FlowBuilder::NodeOfSymbol(std::string_view name) {
  if (const Place* place = Find(name)) return AddressNode(place->object);
  const Variable* variable = module_.FindVariable(name);
  return variable == nullptr ? -1 : AddressNode(variables_[variable - module_.variables.data()]);
}

int FlowBuilder::NodeOfAddress(const Operand& operand) {
  if (operand.base_is_symbol) return NodeOfSymbol(operand.name);
  const Place* place = operand.name.empty() ? nullptr : Find(operand.name);
  return place == nullptr ? -1 : place->node;
}

void FlowBuilder::ForEachValue(const Operand& operand, const Visit& visit) {
  int node = -1;
  if (operand.kind == Operand::Kind::kSymbol) {
    node = NodeOfSymbol(operand.name);
  } else if (operand.kind == Operand::Kind::kRegister) {
    if (const Place* place = Find(operand.name)) node = place->node;
  }
  if (node >= 0) visit(node);
  if (operand.kind == Operand::Kind::kAddress) return;
  for (const Operand& element : operand.elements) ForEachValue(element, visit);
}

void FlowBuilder::ForEachResult(const Operand& operand, const Visit& visit) {
  if (operand.kind == Operand::Kind::kSymbol) return;
  ForEachValue(operand, visit);
}

int FlowBuilder::SinkHere() {
  if (sinks_.empty() || sinks_.back().function != function_ || sinks_.back().instruction != instruction_) {
    sinks_.push_back(Sink{function_, instruction_});
  }
  return static_cast<int>(sinks_.size()) - 1;
}

// Private memory at a place that the analysis does not know: it may be any. True: something was added to the graph.
bool FlowBuilder::ConnectUnknownPrivate(bool all) {
  bool added = false;
  for (PrivateAccess& access : private_accesses_) {
    if (access.done || (!all && access.address >= 0 && graph_.HoldsPrivate(access.address))) continue;
    access.done = added = true;
    if (all_read_ < 0) {
      size_t known = privates_.size();
      all_read_ = NewPrivate();
      all_written_ = NewPrivate();
      for (size_t i = 0; i < known; ++i) {
        graph_.AddFlow(graph_.ContentsOf(privates_[i]), graph_.ContentsOf(all_read_));
        graph_.AddFlow(graph_.ContentsOf(all_written_), graph_.ContentsOf(privates_[i]));
      }
    }
    switch (access.kind) {
      case PrivateAccess::Kind::kLoad:
        graph_.AddFlow(graph_.ContentsOf(all_read_), access.value);
        break;
      case PrivateAccess::Kind::kStore:
        graph_.AddFlow(access.value, graph_.ContentsOf(all_read_));
        graph_.AddFlow(access.value, graph_.ContentsOf(all_written_));
        break;
      case PrivateAccess::Kind::kConvert:
        graph_.AddAddress(access.value, all_read_);
        graph_.AddAddress(access.value, all_written_);
    }
  }
  return added;
}

}  // namespace solstice::ptx
