// The distributions of `random` inputs. Host and device compile this same text (runtime/bulk).
#pragma once

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

}  // namespace solstice::generate
