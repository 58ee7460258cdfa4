// What a host has for driving GPUs: driver, GPUs, NVML, CUPTI. Makes no context and changes nothing, so that it can run
// beside a server; but the driver stays in the process: probe in a process of its own.
#pragma once

#include <sys/types.h>

#include <string>

#include "solstice/v1/host.pb.h"

namespace solstice::device::cuda {

struct ProbeOptions {
  std::string cupti_library;  // a path; empty: the loader's own search
  // Users of a GPU that descend from this process count as ours. 0: none does.
  pid_t owner = 0;
};

// Never fails: what is missing or broken is in the answer.
v1::HostProbe ProbeHost(const ProbeOptions& options);

// Whether `pid` is `ancestor` or descends from it, by /proc. False where /proc does not show it.
bool DescendsFrom(pid_t pid, pid_t ancestor);
// "13.0.1" of 130001.
std::string CuptiVersionText(unsigned int version);

}  // namespace solstice::device::cuda
