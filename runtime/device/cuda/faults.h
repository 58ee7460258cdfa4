// What a failed launch or run means, in words a submission's author understands. Pure functions.
#pragma once

#include <cuda.h>

#include <string>
#include <vector>

#include "solstice/v1/worker.pb.h"

namespace solstice::device::cuda {

// How work on the stream ended. `kernels`: the entries that were launched, in order; which of several failed, the
// driver does not say. FAULT for what the submission did, OUT_OF_MEMORY, never OK. Not for results of IsDeviceLost().
v1::internal::RunOutcome OutcomeOf(CUresult result, const std::vector<std::string>& kernels);

// A launch that the driver refused before anything ran.
v1::internal::RunOutcome RefusedLaunch(CUresult result, const std::string& kernel);

}  // namespace solstice::device::cuda
