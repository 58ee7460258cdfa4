#include "runtime/ptx/needs_device.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "runtime/base/strings.h"

namespace solstice::ptx {
namespace {

using base::StrCat;

constexpr size_t kMostNames = 32;
constexpr size_t kMostBytes = 64;

bool StartsWith(std::string_view text, std::string_view prefix) { return text.substr(0, prefix.size()) == prefix; }

bool Has(const Instruction& instruction, std::string_view modifier) {
  const auto& all = instruction.modifiers;
  return std::find(all.begin(), all.end(), modifier) != all.end();
}

// "cp.async.bulk.tensor": the opcode with the modifiers that say what it does, of those in `telling`.
std::string Name(const Instruction& instruction, std::initializer_list<std::string_view> telling) {
  std::string name = instruction.opcode;
  for (const std::string& modifier : instruction.modifiers) {
    if (std::find(telling.begin(), telling.end(), modifier) == telling.end()) break;
    name += StrCat(".", modifier);
  }
  return name;
}

std::string WithFirstModifier(const Instruction& instruction) {
  if (instruction.modifiers.empty()) return instruction.opcode;
  return StrCat(instruction.opcode, ".", instruction.modifiers[0]);
}

// Empty: none needed.
std::string NeedOf(const Instruction& instruction) {
  static constexpr std::array<std::string_view, 7> kWhole = {
      "wgmma", "tcgen05", "setmaxnreg", "multimem", "tensormap", "clusterlaunchcontrol", "mapa"};
  const std::string& opcode = instruction.opcode;
  if (opcode == "mapa" || opcode == "getctarank") return opcode;
  if (std::find(kWhole.begin(), kWhole.end(), opcode) != kWhole.end()) return WithFirstModifier(instruction);
  if (opcode == "cp" && Has(instruction, "bulk")) {
    return Name(instruction, {"reduce", "async", "bulk", "tensor", "prefetch", "commit_group", "wait_group"});
  }
  if ((opcode == "st" || opcode == "red") && Has(instruction, "async")) return StrCat(opcode, ".async");
  if (opcode == "barrier" && Has(instruction, "cluster")) return "barrier.cluster";
  for (const std::string& modifier : instruction.modifiers) {
    if (modifier == "multimem") return StrCat(opcode, ".multimem");
    if (StartsWith(modifier, "tensormap")) {
      return Has(instruction, "proxy") ? StrCat(opcode, ".proxy.tensormap") : StrCat(opcode, ".tensormap");
    }
    if (modifier.find("tensor") != std::string::npos) return StrCat(opcode, ".", modifier);
    if (modifier == "shared::cluster") return StrCat(opcode, ".shared::cluster");
  }
  return {};
}

std::string_view ClusterRegister(const Operand& operand) {
  if (operand.kind == Operand::Kind::kSpecial) {
    std::string_view name = operand.name;
    if (StartsWith(name, "%cluster") || StartsWith(name, "%ncluster") || name == "%is_explicit_cluster") {
      return name.substr(0, name.find('.'));
    }
  }
  for (const Operand& element : operand.elements) {
    std::string_view name = ClusterRegister(element);
    if (!name.empty()) return name;
  }
  return {};
}

// A cluster of one block is none.
bool IsClusterDirective(std::string_view directive) {
  return StartsWith(directive, ".reqnctapercluster") && directive != ".reqnctapercluster 1" &&
         directive != ".reqnctapercluster 1, 1" && directive != ".reqnctapercluster 1, 1, 1";
}

}  // namespace

std::vector<std::string> NeedsDevice(const Function& function) {
  std::vector<std::string> names;
  auto add = [&names](std::string_view name) {
    name = name.substr(0, kMostBytes);
    if (names.size() < kMostNames && std::find(names.begin(), names.end(), name) == names.end()) {
      names.emplace_back(name);
    }
  };
  for (const std::string& directive : function.directives) {
    if (IsClusterDirective(directive)) add(directive);
  }
  for (const Instruction& instruction : function.body) {
    std::string need = NeedOf(instruction);
    if (!need.empty()) add(need);
    for (const Operand& operand : instruction.operands) {
      std::string_view name = ClusterRegister(operand);
      if (!name.empty()) add(name);
    }
  }
  return names;
}

}  // namespace solstice::ptx
