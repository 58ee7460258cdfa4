// Which distribution a `random` input has, from its name, dtype and shape, as the public evaluator chooses (DESIGN
// section 10). Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "solstice/v1/definition.pb.h"

namespace solstice::generate {

enum class Distribution {
  kNormal,         // n
  kNormWeight,     // 1; variant 1: 1 + 0.1 n
  kNormBias,       // 0; variant 1: 0.1 n
  kCausalMask,     // 0 on and below the diagonal, the dtype's lowest value above; variant 1: holes below it as well
  kBinaryMask,     // 0 or 1, evenly
  kCosine,         // cos of n clamped to [-3, 3]
  kSine,           // sin of the same
  kSpread,         // |n| + 0.1: standard deviations, variances and their reciprocals
  kDecay,          // -|n|
  kSoftmaxRow,     // softmax over the last axis of n
  kWeightMatrix,   // n / sqrt(last dimension)
  kClampedNormal,  // n in [-2, 2]: eight bits
  kPackedNormal,   // two n a byte, low nibble first: four bits
  kSmallInteger,   // [-1024, 1024)
  kByte,           // every value of the byte: int8, uint8
  kCoin,           // 0 or 1; both occur from two elements on
};

// First match wins; names are compared as they are written.
Distribution Classify(std::string_view name, v1::DType dtype, const std::vector<int64_t>& shape);

// Integers that shape the work (lengths, offsets, indices, routing) rather than being worked on: they come from the
// workload's own seed, so that everyone is timed on the same shape of work.
bool IsStructural(std::string_view name, v1::DType dtype);

}  // namespace solstice::generate
