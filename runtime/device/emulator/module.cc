#include "runtime/device/emulator/module.h"

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/base/strings.h"
#include "runtime/device/emulator/decode.h"

namespace solstice::device {
namespace {

// Between variables: far enough that an overrun meets nothing.
constexpr int64_t kGap = 64 << 10;

int64_t BytesOf(const ptx::Variable& variable) { return variable.count * std::max(variable.type.bytes, 1); }

}  // namespace

StatusOr<std::unique_ptr<EmulatorModule>> EmulatorModule::Make(ptx::Module module, MemoryMap* map, int64_t memory_bytes,
                                                               const IsaTable& isa) {
  std::unique_ptr<EmulatorModule> made(new EmulatorModule(std::move(module), map, isa));
  SOLSTICE_RETURN_IF_ERROR(made->PlaceVariables(memory_bytes));
  made->WriteInitialValues();
  return made;
}

EmulatorModule::~EmulatorModule() {
  for (auto region = regions_.rbegin(); region != regions_.rend(); ++region) map_->Remove(*region);
  if (variable_bytes_ > 0) map_->Unreserve(base_, static_cast<uint64_t>(variable_bytes_));
}

Status EmulatorModule::PlaceVariables(int64_t memory_bytes) {
  auto consider = [&](const ptx::Variable& variable, const std::string& key) {
    if (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst)
      placed_.emplace_back(&variable, key);
  };
  for (const ptx::Variable& variable : module_.variables) consider(variable, "\n" + variable.name);
  for (const ptx::Function& function : module_.functions) {
    for (const ptx::Variable& variable : function.variables) consider(variable, function.name + "\n" + variable.name);
  }
  int64_t top = 0;
  std::vector<int64_t> offsets;
  for (const auto& [variable, key] : placed_) {
    const int64_t most = memory_bytes / std::max(variable->type.bytes, 1);
    if (variable->count < 0 || variable->count > most || storage_bytes_ + BytesOf(*variable) > memory_bytes) {
      return base::ResourceExhausted(
          base::StrCat("variable ", variable->name, " does not fit in the emulator's ", memory_bytes, " bytes"),
          "make it smaller or raise the emulator's memory");
    }
    offsets.push_back(top);
    storage_bytes_ += BytesOf(*variable);
    top += (BytesOf(*variable) + 2 * kGap - 1) / kGap * kGap;
  }
  if (placed_.empty()) return absl::OkStatus();
  SOLSTICE_ASSIGN_OR_RETURN(base_, map_->Reserve(static_cast<uint64_t>(top)));
  variable_bytes_ = top;
  for (size_t i = 0; i < placed_.size(); ++i) {
    const ptx::Variable& variable = *placed_[i].first;
    storage_.push_back(std::make_unique<uint8_t[]>(static_cast<size_t>(BytesOf(variable)) + 64));
    uint8_t* host = storage_.back().get();
    host += (64 - reinterpret_cast<uintptr_t>(host) % 64) % 64;
    Region region;
    region.begin = base_ + static_cast<uint64_t>(offsets[i]);
    region.bytes = static_cast<uint64_t>(BytesOf(variable));
    region.host = host;
    region.is_constant = variable.space == ptx::Space::kConst;
    region.read_only = region.is_constant;
    region.name = base::StrCat("variable '", variable.name, "'");
    addresses_[placed_[i].second] = region.begin;
    regions_.push_back(map_->Add(std::move(region)));
  }
  return absl::OkStatus();
}

void EmulatorModule::WriteInitialValues() {
  std::map<std::string_view, uint64_t> functions;
  for (size_t f = 0; f < module_.functions.size(); ++f) {
    if (!module_.functions[f].is_declaration) functions[module_.functions[f].name] = kFunctionWindow + f * 16;
  }
  for (size_t i = 0; i < placed_.size(); ++i) {
    const ptx::Variable& variable = *placed_[i].first;
    const size_t bytes = static_cast<size_t>(BytesOf(variable));
    std::memset(regions_[i]->host, 0, bytes);
    if (!variable.initial.empty()) {
      std::memcpy(regions_[i]->host, variable.initial.data(), std::min(bytes, variable.initial.size()));
    }
    for (const ptx::Variable::Relocation& relocation : variable.relocations) {
      uint64_t value = 0;
      if (const auto found = addresses_.find("\n" + relocation.symbol); found != addresses_.end()) {
        value = found->second;
      }
      if (const auto found = functions.find(relocation.symbol); found != functions.end()) value = found->second;
      value += static_cast<uint64_t>(relocation.addend);
      if (relocation.offset < 0 || static_cast<size_t>(relocation.offset) + 8 > bytes) continue;
      std::memcpy(regions_[i]->host + relocation.offset, &value, 8);
    }
  }
}

const Program* EmulatorModule::FindProgram(const std::string& entry) const {
  if (const auto found = programs_.find(entry); found != programs_.end()) return found->second.get();
  for (const ptx::Function& function : module_.functions) {
    if (function.name != entry || !function.is_entry || function.is_declaration) continue;
    return programs_.emplace(entry, DecodeEntry(module_, function, addresses_, isa_)).first->second.get();
  }
  return nullptr;
}

std::vector<std::string> EmulatorModule::EntryNames() const {
  std::vector<std::string> names;
  for (const ptx::Function& function : module_.functions) {
    if (function.is_entry) names.push_back(function.name);
  }
  return names;
}

}  // namespace solstice::device
