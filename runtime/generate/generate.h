// Inputs of a workload, from seeds alone: the same bytes on every machine (basic arithmetic only, no libm, no fused
// operations), so that a CUDA version can agree bit for bit. Distributions: DESIGN section 10 /
// docs/formats/workload.md. Element i of input k in variant v depends on (seed, k, v, i) only, softmax rows and the
// last repair of an unlucky bool tensor apart. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "solstice/v1/definition.pb.h"

namespace solstice::generate {

struct Seeds {
  uint64_t payload = 0;    // fresh for every evaluation, attempt and workload
  uint64_t structure = 0;  // the workload's own: lengths, indices, routing; the same in every variant
};

// Bytes of input `tensor` (index `input_index`) of shape `shape`, little endian, dense, rows last. Variant 1 perturbs
// what heuristics make constant (norm weights 1 + 0.1 n, norm biases 0.1 n, causal masks with random holes off the
// diagonal). Different variants, inputs and seeds give independent content. A scalar source fills every element with
// its value in the tensor's dtype. INVALID_ARGUMENT for sources it cannot make (custom, safetensors), values that the
// dtype cannot hold and impossible shapes; RESOURCE_EXHAUSTED for what does not fit in memory.
StatusOr<std::string> GenerateInput(const v1::Tensor& tensor, const v1::InputSource& source,
                                    const std::vector<int64_t>& shape, int input_index, const Seeds& seeds,
                                    int variant);

// The same into memory of the caller, exactly as many bytes as the tensor has (INVALID_ARGUMENT otherwise).
Status GenerateInputInto(const v1::Tensor& tensor, const v1::InputSource& source, const std::vector<int64_t>& shape,
                         int input_index, const Seeds& seeds, int variant, std::span<uint8_t> out);

// Size of a dense tensor. INVALID_ARGUMENT for a negative dimension, an unknown dtype or more than 2^62 bytes.
StatusOr<int64_t> TensorBytes(const v1::Tensor& tensor, const std::vector<int64_t>& shape);

// Secret random filling of outputs, scratch and guards. Every byte value occurs; no float pattern is special. Byte i
// depends on (seed, stream, i) only, and is independent of inputs made from the same seed.
void FillRandom(uint64_t seed, uint64_t stream, char* data, int64_t bytes);

}  // namespace solstice::generate
