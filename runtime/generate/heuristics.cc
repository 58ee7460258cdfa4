#include "runtime/generate/heuristics.h"

#include <initializer_list>

#include "runtime/core/dtype.h"

namespace solstice::generate {
namespace {

bool IsOneOf(std::string_view name, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words) {
    if (name == word) return true;
  }
  return false;
}

// `name` is a word or ends in "_<word>".
bool EndsInWord(std::string_view name, std::initializer_list<std::string_view> words) {
  for (std::string_view word : words) {
    if (!name.ends_with(word)) continue;
    if (name.size() == word.size() || name[name.size() - word.size() - 1] == '_') return true;
  }
  return false;
}

// "cos", "rope_cos", "cos_cached", "rope_cos_cached", but not a gradient of it ("grad_cos").
bool IsRotary(std::string_view name, std::string_view function) {
  constexpr std::string_view kPrefix = "rope_", kSuffix = "_cached";
  if (name.starts_with(kPrefix)) name.remove_prefix(kPrefix.size());
  if (name.ends_with(kSuffix)) name.remove_suffix(kSuffix.size());
  return name == function;
}

bool IsSquare(const std::vector<int64_t>& shape) {
  return shape.size() >= 2 && shape[shape.size() - 1] == shape[shape.size() - 2];
}

Distribution ClassifyFloating(std::string_view name, const std::vector<int64_t>& shape) {
  if (EndsInWord(name, {"norm_weight"}) || name.ends_with("layernorm_weight")) return Distribution::kNormWeight;
  if (EndsInWord(name, {"norm_bias"}) || name.ends_with("layernorm_bias")) return Distribution::kNormBias;
  if (EndsInWord(name, {"attention_mask", "causal_mask"}) && IsSquare(shape)) return Distribution::kCausalMask;
  if (EndsInWord(name, {"mask"})) return Distribution::kBinaryMask;
  if (IsRotary(name, "cos")) return Distribution::kCosine;
  if (IsRotary(name, "sin")) return Distribution::kSine;
  if (EndsInWord(name, {"rstd", "std", "variance", "var"})) return Distribution::kSpread;
  if (IsOneOf(name, {"A_log", "A", "A_cumsum", "g"})) return Distribution::kDecay;
  if (IsOneOf(name, {"attn_weights", "attention_weights", "routing_weights"})) return Distribution::kSoftmaxRow;
  if (shape.size() >= 2 && EndsInWord(name, {"weight", "weights", "proj"})) return Distribution::kWeightMatrix;
  return Distribution::kNormal;
}

}  // namespace

Distribution Classify(std::string_view name, v1::DType dtype, const std::vector<int64_t>& shape) {
  switch (dtype) {
    case v1::FLOAT8_E4M3FN:
    case v1::FLOAT8_E5M2:
      return Distribution::kClampedNormal;
    case v1::FLOAT4_E2M1FN_X2:
      return Distribution::kPackedNormal;
    case v1::BOOL:
      return Distribution::kCoin;
    case v1::INT8:
    case v1::UINT8:
      return Distribution::kByte;
    case v1::INT16:
    case v1::INT32:
    case v1::INT64:
      return Distribution::kSmallInteger;
    default:
      return ClassifyFloating(name, shape);
  }
}

bool IsStructural(std::string_view name, v1::DType dtype) {
  if (core::IsFloating(dtype) || dtype == v1::BOOL) return false;
  return EndsInWord(name, {"indptr",   "indices",   "index",   "idx",     "offset",     "offsets",   "len",
                           "lens",     "length",    "lengths", "seqlen",  "seqlens",    "positions", "position_ids",
                           "table",    "tables",    "mapping", "experts", "expert_ids", "topk_ids",  "block_ids",
                           "page_ids", "batch_ids", "sizes",   "counts"});
}

}  // namespace solstice::generate
