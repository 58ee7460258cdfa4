// Which distribution a `random` input has, from its name, dtype and shape, as the public evaluator chooses (DESIGN
// section 10). Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "runtime/generate/distribution.h"
#include "solstice/v1/definition.pb.h"

namespace solstice::generate {

// First match wins; names are compared as they are written.
Distribution Classify(std::string_view name, v1::DType dtype, const std::vector<int64_t>& shape);

// Integers that shape the work (lengths, offsets, indices, routing) rather than being worked on: they come from the
// workload's own seed, so that everyone is timed on the same shape of work.
bool IsStructural(std::string_view name, v1::DType dtype);

}  // namespace solstice::generate
