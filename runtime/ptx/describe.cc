// What the entries of a module are: parameters, shared memory, limits, needs; and the math modes in use.
#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "runtime/ptx/analysis.h"
#include "runtime/ptx/call_graph.h"
#include "runtime/ptx/needs_device.h"

namespace solstice::ptx {
namespace {

int64_t RoundUp(int64_t value, int64_t alignment) { return (value + alignment - 1) / alignment * alignment; }

// Sizes are at most 2^40 each and there are at most 2^20 declarations: the sums stay below 2^63.
void Place(const Variable& variable, int64_t* size) {
  if (variable.space != Space::kShared || (variable.is_extern && variable.count == 0)) return;
  *size = RoundUp(*size, variable.alignment) + variable.count * variable.type.bytes;
}

void DescribeParameters(const Function& function, v1::Kernel* kernel) {
  int64_t offset = 0;
  for (const Variable& parameter : function.parameters) {
    int64_t bytes = parameter.count * parameter.type.bytes;
    offset = RoundUp(offset, parameter.alignment);
    v1::KernelParameter* out = kernel->add_parameters();
    out->set_type(parameter.type.name);
    out->set_offset(offset);
    out->set_bytes(bytes);
    out->set_alignment(parameter.alignment);
    offset += bytes;
  }
}

int32_t ThreadLimit(const int (&threads)[3]) {
  int64_t product = 1;
  for (int count : threads) product = std::min<int64_t>(product * count, INT32_MAX);
  return static_cast<int32_t>(product);
}

// What one function adds to the entries that may call it.
struct Share {
  int64_t shared_bytes = 0, shared_alignment = 1;
  std::vector<int> needs;  // indices into a list of names
};

std::vector<Share> SharesOf(const Module& module, std::vector<std::string>* names) {
  std::map<std::string, int> known;
  std::vector<Share> shares(module.functions.size());
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Function& function = module.functions[i];
    for (const Variable& variable : function.variables) {
      if (variable.space != Space::kShared) continue;
      Place(variable, &shares[i].shared_bytes);
      shares[i].shared_alignment = std::max(shares[i].shared_alignment, variable.alignment);
    }
    for (std::string& need : NeedsDevice(function)) {
      auto [at, added] = known.try_emplace(need, static_cast<int>(names->size()));
      if (added) names->push_back(std::move(need));
      shares[i].needs.push_back(at->second);
    }
  }
  return shares;
}

}  // namespace

std::vector<v1::Kernel> DescribeKernels(const Module& module) {
  constexpr int kMostNeeds = 32;
  CallGraph graph(module);
  std::vector<std::string> names;
  std::vector<Share> shares = SharesOf(module, &names);
  std::vector<v1::Kernel> kernels;
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const Function& entry = module.functions[i];
    if (!entry.is_entry || entry.is_declaration) continue;
    v1::Kernel& kernel = kernels.emplace_back();
    kernel.set_name(entry.name);
    DescribeParameters(entry, &kernel);
    kernel.set_max_threads(ThreadLimit(entry.required_threads[0] != 0 ? entry.required_threads : entry.max_threads));
    int64_t shared = 0;
    std::vector<bool> is_used(module.variables.size()), is_named(names.size());
    for (int index : graph.Reachable(static_cast<int>(i))) {
      const Share& share = shares[index];
      shared = RoundUp(shared, share.shared_alignment) + share.shared_bytes;
      for (int variable : graph.node(index).variables) is_used[variable] = true;
      for (int need : share.needs) {
        if (!is_named[need] && kernel.needs_device_size() < kMostNeeds) kernel.add_needs_device(names[need]);
        is_named[need] = true;
      }
    }
    for (size_t v = 0; v < is_used.size(); ++v) {
      if (is_used[v]) Place(module.variables[v], &shared);
    }
    kernel.set_static_shared_bytes(shared);
  }
  return kernels;
}

std::vector<std::string> MathModes(const Module& module) {
  bool ftz = false, approx = false, fast_div = false, fast_sqrt = false;
  for (const Function& function : module.functions) {
    for (const Instruction& instruction : function.body) {
      for (const std::string& modifier : instruction.modifiers) {
        ftz |= modifier == "ftz";
        if (modifier != "approx" && modifier != "full") continue;
        if (instruction.opcode == "div") {
          fast_div = true;
        } else if (instruction.opcode == "sqrt") {
          fast_sqrt = true;
        } else {
          approx |= modifier == "approx";
        }
      }
    }
  }
  std::vector<std::string> modes;
  if (ftz) modes.push_back("ftz");
  if (approx) modes.push_back("approx");
  if (fast_div) modes.push_back("fast-div");
  if (fast_sqrt) modes.push_back("fast-sqrt");
  return modes;
}

}  // namespace solstice::ptx
