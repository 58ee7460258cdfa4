// Makes the taint graph of a module: what each instruction does with addresses. Internal to FindDeviceState.
#pragma once

#include <functional>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/ptx/call_graph.h"
#include "runtime/ptx/module.h"
#include "runtime/ptx/taint.h"

namespace solstice::ptx {

class FlowBuilder {
 public:
  struct Sink {
    int function = 0, instruction = 0;
  };

  // `merged`: all variables are one object, and all private memory another. Coarse, but linear.
  FlowBuilder(const Module& module, const CallGraph& calls, bool merged, TaintGraph* graph);

  // Builds and solves. False: the graph gave up.
  bool Run();

  int ObjectOfVariable(int variable) const { return variables_[variable]; }  // -1: none (.shared)
  const Sink& sink(int index) const { return sinks_[index]; }

 private:
  // What a name stands for in a function. -1: none.
  struct Place {
    int node = -1;    // of a register
    int object = -1;  // of a .local or .param variable
    bool is_predicate = false;
  };
  struct Signature {
    std::vector<int> parameters, returns;  // nodes of what is handed over
  };
  // An access to private memory through an address that may turn out to be no known object's.
  struct PrivateAccess {
    enum class Kind : uint8_t { kLoad, kStore, kConvert } kind;
    int address = -1;  // node; -1: absolute
    int value = -1;    // node: loaded into, stored, or what the converted address is put into
    bool done = false;
  };
  using Visit = std::function<void(int node)>;

  int NewPrivate();
  void DeclareVariables();
  void DeclareSignatures();
  void ConnectIndirectCalls();
  void AddFunction(int index);
  int DeclareParameter(const Variable& parameter, Place* place);

  void AddInstruction(const Instruction& instruction);
  void AddLoad(const Instruction& instruction);
  void AddStore(const Instruction& instruction);
  void AddMemory(const Instruction& instruction);
  void AddCall(const Instruction& instruction);
  void AddComputation(const Instruction& instruction);
  void HandOver(const std::vector<int>& from, const std::vector<int>& to);
  std::vector<int> Hub(std::vector<int>* hub, size_t count);
  bool ConnectUnknownPrivate(bool all);

  const Place* Find(std::string_view name) const;
  int AddressNode(int object);  // a node that holds the object's address
  int NodeOfSymbol(std::string_view name);
  int NodeOfAddress(const Operand& operand);
  // Registers and symbols in an operand used as a value; registers (no predicates) in one that is written.
  void ForEachValue(const Operand& operand, const Visit& visit);
  void ForEachResult(const Operand& operand, const Visit& visit);
  // What call operands hand over: the contents of .param variables, or registers.
  std::vector<int> HandedOver(const Operand* list);
  int SinkHere();

  const Module& module_;
  const CallGraph& calls_;
  const bool merged_;
  TaintGraph& graph_;

  std::vector<int> variables_;      // by module variable: object or -1
  std::vector<int> address_nodes_;  // by object: node or -1
  std::vector<int> privates_;       // objects
  int merged_private_ = -1;
  std::vector<Signature> signatures_;
  std::vector<std::unordered_map<std::string_view, Place>> parameter_places_;
  std::vector<int> hub_parameters_, hub_results_;
  std::vector<PrivateAccess> private_accesses_;
  int all_read_ = -1, all_written_ = -1;  // objects that stand for private memory at an unknown place
  std::vector<Sink> sinks_;

  // Of the function at work.
  std::unordered_map<std::string_view, Place> places_;
  int function_ = 0, instruction_ = 0;
};

}  // namespace solstice::ptx
