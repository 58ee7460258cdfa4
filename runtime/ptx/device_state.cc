// Variables that outlive a launch and may be written.
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "runtime/base/strings.h"
#include "runtime/ptx/analysis.h"
#include "runtime/ptx/call_graph.h"
#include "runtime/ptx/flow_builder.h"

namespace solstice::ptx {
namespace {

constexpr size_t kWork = 2'000'000;
constexpr size_t kNameBytes = 200;

// The demangler's output doubles with every back reference of a name made for that: names with many stay as they are.
bool IsSafeToDemangle(std::string_view name) {
  constexpr size_t kMostBytes = 1024;
  constexpr int kMostReferences = 8;
  if (name.size() > kMostBytes || name.substr(0, 2) != "_Z") return false;
  int references = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    if (name[i] != 'S' && name[i] != 'T') continue;
    size_t end = name.find_first_not_of("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ", i + 1);
    if (end != std::string_view::npos && name[end] == '_') ++references;
  }
  return references <= kMostReferences;
}

// The compiler puts what has internal linkage into a namespace of the translation unit: no use to the author.
void DropUnitNamespace(std::string* name) {
  size_t end = name->find("::");
  if (name->compare(0, 10, "_INTERNAL_") == 0 && end != std::string::npos) name->erase(0, end + 2);
}

std::string Demangle(const std::string& name) {
  std::string readable = name;
  if (IsSafeToDemangle(name)) {
    int status = 0;
    std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status),
                                                     &std::free);
    if (status == 0 && text != nullptr) readable = text.get();
    DropUnitNamespace(&readable);
  }
  return std::string(base::Utf8Prefix(readable, kNameBytes));
}

v1::DeviceState Report(const Module& module, const Variable& variable, const FlowBuilder::Sink& sink) {
  const Instruction& instruction = module.functions[sink.function].body[sink.instruction];
  v1::DeviceState state;
  state.set_variable(Demangle(variable.name));
  state.set_bytes(variable.count * variable.type.bytes);
  state.set_instruction(ToText(instruction));
  if (const Location* place = AuthorsPlace(module, instruction)) {
    auto path = module.files.find(place->file);
    if (path != module.files.end()) state.set_file(path->second);
    state.set_line(place->line);
  }
  return state;
}

}  // namespace

std::vector<v1::DeviceState> FindDeviceState(const Module& module) {
  std::vector<v1::DeviceState> states;
  bool has_global = std::any_of(module.variables.begin(), module.variables.end(),
                                [](const Variable& variable) { return variable.space == Space::kGlobal; });
  if (!has_global) return states;
  CallGraph calls(module);
  auto graph = std::make_unique<TaintGraph>(kWork);
  auto builder = std::make_unique<FlowBuilder>(module, calls, false, graph.get());
  if (!builder->Run()) {
    // Too large for one object a variable. All as one cannot run out of work: a module has a bounded number of
    // operands.
    graph = std::make_unique<TaintGraph>(SIZE_MAX);
    builder = std::make_unique<FlowBuilder>(module, calls, true, graph.get());
    builder->Run();
  }
  for (size_t i = 0; i < module.variables.size(); ++i) {
    if (module.variables[i].space != Space::kGlobal) continue;
    int object = builder->ObjectOfVariable(static_cast<int>(i));
    int sink = graph->FirstWrite(object) >= 0 ? graph->FirstWrite(object) : graph->FirstEscape(object);
    if (sink >= 0) states.push_back(Report(module, module.variables[i], builder->sink(sink)));
  }
  return states;
}

}  // namespace solstice::ptx
