// What a linked program is, read from its PTX: entries, parameters, what needs a GPU, and state that outlives a launch.
#pragma once

#include <string>
#include <vector>

#include "runtime/ptx/module.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::ptx {

// One v1::Kernel for each entry: name, parameters, static_shared_bytes (own and called functions' .shared variables
// plus module-scope ones that are used), max_threads, needs_device. Resource fields that only a cubin knows stay 0.
std::vector<v1::Kernel> DescribeKernels(const Module& module);

// Module-scope .global variables that an instruction may write (DESIGN: register taint from the symbol,
// flow-insensitive). One entry a variable, with the source line of the first write.
std::vector<v1::DeviceState> FindDeviceState(const Module& module);

// "ftz", "approx", "fast-div", "fast-sqrt": math modes that occur.
std::vector<std::string> MathModes(const Module& module);

}  // namespace solstice::ptx
