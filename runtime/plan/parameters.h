// A launch's arguments against the parameters of its kernel, as the PTX declares them. Internal to this folder.
#pragma once

#include "runtime/base/status.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::plan {

// INVALID_ARGUMENT for the first argument that cannot be what the kernel takes: their number, a buffer that is not
// passed as a pointer, another size, an integer for a float or the reverse.
Status CheckParameters(const v1::internal::SpecialisedLaunch& launch, const v1::Kernel& kernel);

}  // namespace solstice::plan
