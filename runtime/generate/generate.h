// Inputs of a workload, from seeds alone: the same bytes on every machine (basic arithmetic only, no libm, no fused
// operations), so that a CUDA version can agree bit for bit. Distributions: DESIGN section 10 / docs/formats/workload.md.
#pragma once

#include <cstdint>
#include <string>

#include "runtime/base/status.h"
#include "solstice/v1/definition.pb.h"

namespace solstice::generate {

struct Seeds {
  uint64_t payload = 0;    // fresh for every evaluation, attempt and workload
  uint64_t structure = 0;  // the workload's own: lengths, indices, routing
};

// Bytes of input `tensor` (index `input_index`) with `elements` stored elements of shape `shape`. Variant 1 perturbs what
// heuristics make constant (norm weights 1 + 0.1 n, non-zero biases). Different variants, inputs and seeds give
// independent content. INVALID_ARGUMENT for sources it cannot make (custom, safetensors).
StatusOr<std::string> GenerateInput(const v1::Tensor& tensor, const v1::InputSource& source,
                                    const std::vector<int64_t>& shape, int input_index, const Seeds& seeds, int variant);

// Secret random filling of outputs, scratch and guards. Every byte value occurs; no float pattern is special.
void FillRandom(uint64_t seed, uint64_t stream, char* data, int64_t bytes);

}  // namespace solstice::generate
