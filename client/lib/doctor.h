// What `solstice doctor` concludes from a server's answer. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "runtime/core/json.h"
#include "solstice/v1/service.pb.h"

namespace solstice::client {

// Something that keeps a GPU from being used, or its results from being as good as they could be.
struct Finding {
  std::string reason;
  std::string mend;  // may be empty
};
std::vector<Finding> Findings(const v1::ServerInfo& info);

// A GPU is there and meant to be used, but none can be: what CUDA_VISIBLE_DEVICES hides is not meant to be.
bool GpuUnusable(const v1::ServerInfo& info);

// Whether the server drives the GPU.
bool Driven(const v1::ServerInfo& info, const v1::GpuProbe& gpu);

// "hmm" or "ats"; "" where kernels cannot read pageable host memory.
std::string PageableAccess(const v1::GpuProbe& gpu);

// {"driver": ..., "nvml": ..., "cupti": ..., "gpus": [...]}: unknown values are null.
core::Json HostJson(const v1::ServerInfo& info);
core::Json FindingsJson(const std::vector<Finding>& findings);

}  // namespace solstice::client
