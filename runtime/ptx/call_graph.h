// Who calls whom, and which module-scope variables a function names.
#pragma once

#include <string_view>
#include <unordered_map>
#include <vector>

#include "runtime/ptx/module.h"

namespace solstice::ptx {

// Built once from a module, which must outlive it. Immutable.
class CallGraph {
 public:
  struct Node {
    std::vector<int> callees;    // indices of functions called by name
    std::vector<int> variables;  // indices of module-scope variables named
    bool calls_indirectly = false;
  };

  explicit CallGraph(const Module& module);

  const Node& node(int function) const { return nodes_[function]; }
  // Functions whose address is taken: what an indirect call may reach.
  const std::vector<int>& address_taken() const { return address_taken_; }
  // `function` and all that it may call, each once, itself first.
  std::vector<int> Reachable(int function) const;

 private:
  void Note(const Operand& operand, int function, bool is_callee);
  void TakeAddress(std::string_view name);

  const Module& module_;
  std::vector<Node> nodes_;
  std::vector<int> address_taken_;
  std::vector<bool> is_taken_;
};

// The operand of a call that names what is called: behind the list of results, if there is one.
const Operand* CalleeOf(const Instruction& call);
// Results and arguments; nullptr where the call has none.
const Operand* ResultsOf(const Instruction& call);
const Operand* ArgumentsOf(const Instruction& call);

}  // namespace solstice::ptx
