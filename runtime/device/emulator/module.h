// A loaded program and its variables. Internal to the emulator.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/emulator/alu.h"
#include "runtime/device/emulator/memory_map.h"
#include "runtime/device/emulator/program.h"
#include "runtime/ptx/module.h"

namespace solstice::device {

class EmulatorModule : public Module {
 public:
  // Places the module-scope variables, sets their initial values. RESOURCE_EXHAUSTED if they need more than
  // `memory_bytes`. `map` must outlive it.
  static StatusOr<std::unique_ptr<EmulatorModule>> Make(ptx::Module module, MemoryMap* map, int64_t memory_bytes,
                                                        const IsaTable& isa);
  ~EmulatorModule() override;

  // The decoded entry; made when first asked for. nullptr: no such entry.
  const Program* FindProgram(const std::string& entry) const;
  std::vector<std::string> EntryNames() const;
  int64_t variable_bytes() const { return variable_bytes_; }

 private:
  EmulatorModule(ptx::Module module, MemoryMap* map, const IsaTable& isa)
      : module_(std::move(module)), map_(map), isa_(isa) {}
  Status PlaceVariables(int64_t memory_bytes);
  void WriteInitialValues();

  const ptx::Module module_;
  MemoryMap* const map_;
  const IsaTable& isa_;
  std::map<std::string, uint64_t> addresses_;  // by "\nname" or "function\nname"
  std::vector<std::pair<const ptx::Variable*, std::string>> placed_;
  std::vector<const Region*> regions_;
  uint64_t base_ = 0;
  int64_t variable_bytes_ = 0;  // address space, gaps included
  int64_t storage_bytes_ = 0;
  std::vector<std::unique_ptr<uint8_t[]>> storage_;
  mutable std::map<std::string, std::unique_ptr<Program>> programs_;
};

}  // namespace solstice::device
