// From the syntax tree to the decoded form.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "runtime/device/emulator/alu.h"
#include "runtime/device/emulator/program.h"
#include "runtime/ptx/module.h"

namespace solstice::device {

// Decodes `entry` and what it can call. `addresses` holds the module-scope .global and .const variables. Never fails on
// what the emulator does not know: Program::unsupported then says so.
std::unique_ptr<Program> DecodeEntry(const ptx::Module& module, const ptx::Function& entry,
                                     const std::map<std::string, uint64_t>& addresses, const IsaTable& isa);

}  // namespace solstice::device
