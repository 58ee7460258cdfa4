// What one input is made from: the decisions of GenerateInput, apart from the filling, so that host and device fill the
// same (runtime/bulk). Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/generate/generate.h"
#include "runtime/generate/values.h"

namespace solstice::generate {

struct InputRecipe {
  v1::DType dtype = v1::DTYPE_UNSPECIFIED;
  int64_t elements = 0, bytes = 0;
  // Bytes of the element that fills the tensor; empty unless the source is a scalar.
  std::string scalar;
  // Coins, bytes and small integers draw from words of (values.seed, stream).
  uint64_t stream = 0;
  ValueRecipe values;
};

// The statuses of GenerateInput, but for RESOURCE_EXHAUSTED.
StatusOr<InputRecipe> MakeRecipe(const v1::Tensor& tensor, const v1::InputSource& source,
                                 const std::vector<int64_t>& shape, int input_index, const Seeds& seeds, int variant);

// The seed of FillRandom's words.
uint64_t FillingSeed(uint64_t seed);

}  // namespace solstice::generate
