// Which devices a server drives: what its configuration asks for, and what its host has. Pure, thread-safe.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "server/pipeline/pipeline.h"
#include "solstice/v1/host.pb.h"

namespace solstice::pipeline {

struct DeviceChoice {
  std::vector<DeviceSpec> devices;  // at least one
  // Sentences for the log: why not a GPU, what to know of one.
  std::vector<std::string> notes;
};

// `requested` as in Options; empty: every GPU that can be driven, or the emulator where there is none. NOT_FOUND when a
// GPU was asked for that is not there or cannot be driven: says why and lists what is; INVALID_ARGUMENT when one is
// asked for twice.
StatusOr<DeviceChoice> ChooseDevices(const std::vector<DeviceSpec>& requested, const v1::HostProbe& host);

// The answer in the place of a probe that failed itself.
v1::HostProbe FailedProbe(const Status& status);

// "emulator", "cuda:1"
std::string DeviceLabel(v1::DeviceKind kind, int ordinal);

}  // namespace solstice::pipeline
