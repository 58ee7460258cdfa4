// Instructions that only a GPU can execute.
#pragma once

#include <string>
#include <vector>

#include "runtime/ptx/module.h"

namespace solstice::ptx {

// Names such as "wgmma.mma_async", "cp.async.bulk.tensor", "%cluster_ctarank", each once and at most 32, in the order
// of appearance: what `function` holds that needs a GPU.
std::vector<std::string> NeedsDevice(const Function& function);

}  // namespace solstice::ptx
