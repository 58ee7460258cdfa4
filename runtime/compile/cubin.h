// What a cubin says about its kernels: an ELF reader of the few sections that matter, bounds-checked throughout.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "runtime/base/status.h"

namespace solstice::compile {

struct KernelResources {
  int registers = 0;
  int64_t local_bytes = 0;     // stack of one thread, spills included
  int64_t constant_bytes = 0;  // the module's __constant__ variables and the kernel's own banks, parameters apart
};

// By linked name. DATA_LOSS: not a cubin, or damaged.
StatusOr<std::map<std::string, KernelResources>> ReadCubin(std::string_view cubin);

// From a `-Xptxas=-v` log, by linked name.
struct PtxasReport {
  int registers = 0;
  int64_t spill_store_bytes = 0, spill_load_bytes = 0, stack_bytes = 0, shared_bytes = 0;
};
std::map<std::string, PtxasReport> ReadPtxasLog(std::string_view log);

}  // namespace solstice::compile
