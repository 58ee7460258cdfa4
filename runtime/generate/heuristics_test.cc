#include "runtime/generate/heuristics.h"

#include <gtest/gtest.h>

namespace solstice::generate {
namespace {

using D = Distribution;

struct Row {
  const char* name;
  std::vector<int64_t> shape;
  Distribution distribution;
};

const Row kFloating[] = {
    {"hidden_states", {4, 8}, D::kNormal},
    {"x", {}, D::kNormal},
    // Norm weights and biases.
    {"norm_weight", {8}, D::kNormWeight},
    {"q_norm_weight", {8}, D::kNormWeight},
    {"norm_weight", {8, 8}, D::kNormWeight},
    {"input_layernorm_weight", {8}, D::kNormWeight},
    {"layernorm_weight", {8}, D::kNormWeight},
    {"self_attn_layer_norm_weight", {8}, D::kNormWeight},
    {"norm1_weight", {8}, D::kNormal},
    {"renorm_weight", {8}, D::kNormal},
    {"weight", {8}, D::kNormal},
    {"norm_bias", {8}, D::kNormBias},
    {"k_norm_bias", {8}, D::kNormBias},
    {"input_layernorm_bias", {8}, D::kNormBias},
    {"bias", {8}, D::kNormal},
    {"q_proj_bias", {8}, D::kNormal},
    // Masks.
    {"attention_mask", {2, 1, 8, 8}, D::kCausalMask},
    {"causal_mask", {8, 8}, D::kCausalMask},
    {"attention_mask", {2, 8}, D::kBinaryMask},
    {"attention_mask", {8}, D::kBinaryMask},
    {"mask", {8, 8}, D::kBinaryMask},
    {"dropout_mask", {8, 8}, D::kBinaryMask},
    {"mask_tokens_out", {8, 8}, D::kNormal},
    {"unmask", {8}, D::kNormal},
    // Rotary tables.
    {"cos", {4, 8}, D::kCosine},
    {"sin", {4, 8}, D::kSine},
    {"cos_cached", {4, 8}, D::kCosine},
    {"sin_cached", {4, 8}, D::kSine},
    {"rope_cos", {4, 8}, D::kCosine},
    {"rope_sin", {4, 8}, D::kSine},
    {"rope_cos_cached", {4, 8}, D::kCosine},
    {"grad_cos", {4, 8}, D::kNormal},
    {"cosine", {4, 8}, D::kNormal},
    // Spreads.
    {"rstd", {4}, D::kSpread},
    {"q_rstd", {4}, D::kSpread},
    {"std", {4}, D::kSpread},
    {"variance", {4}, D::kSpread},
    {"running_var", {4}, D::kSpread},
    {"var", {4}, D::kSpread},
    {"bstd", {4}, D::kNormal},
    // Decays.
    {"A_log", {4}, D::kDecay},
    {"A", {4, 4}, D::kDecay},
    {"A_cumsum", {4}, D::kDecay},
    {"g", {4}, D::kDecay},
    {"a", {4}, D::kNormal},
    {"G", {4}, D::kNormal},
    {"B", {4, 4}, D::kNormal},
    // Softmax rows, before weight matrices.
    {"attn_weights", {4, 8}, D::kSoftmaxRow},
    {"attention_weights", {4, 8}, D::kSoftmaxRow},
    {"routing_weights", {4, 8}, D::kSoftmaxRow},
    {"routing_weight", {4, 8}, D::kWeightMatrix},
    // Weight matrices.
    {"weight", {4, 8}, D::kWeightMatrix},
    {"q_proj_weight", {4, 8}, D::kWeightMatrix},
    {"expert_gate_weights", {2, 4, 8}, D::kWeightMatrix},
    {"up_proj", {4, 8}, D::kWeightMatrix},
    {"up_proj", {8}, D::kNormal},
    {"conv_weight", {8}, D::kNormal},
    {"gemm1_weights_scale", {4, 8}, D::kNormal},
    {"lightweight", {4, 8}, D::kNormal},
};

TEST(HeuristicsTest, NamesOfFloatingInputs) {
  for (const Row& row : kFloating) {
    for (v1::DType dtype : {v1::FLOAT16, v1::BFLOAT16, v1::FLOAT32, v1::FLOAT64}) {
      EXPECT_EQ(Classify(row.name, dtype, row.shape), row.distribution) << row.name << " " << v1::DType_Name(dtype);
    }
  }
}

TEST(HeuristicsTest, OtherTypesIgnoreNames) {
  for (const Row& row : kFloating) {
    SCOPED_TRACE(row.name);
    EXPECT_EQ(Classify(row.name, v1::FLOAT8_E4M3FN, row.shape), D::kClampedNormal);
    EXPECT_EQ(Classify(row.name, v1::FLOAT8_E5M2, row.shape), D::kClampedNormal);
    EXPECT_EQ(Classify(row.name, v1::FLOAT4_E2M1FN_X2, row.shape), D::kPackedNormal);
    EXPECT_EQ(Classify(row.name, v1::BOOL, row.shape), D::kCoin);
    EXPECT_EQ(Classify(row.name, v1::INT8, row.shape), D::kByte);
    EXPECT_EQ(Classify(row.name, v1::UINT8, row.shape), D::kByte);
    for (v1::DType dtype : {v1::INT16, v1::INT32, v1::INT64}) {
      EXPECT_EQ(Classify(row.name, dtype, row.shape), D::kSmallInteger);
    }
  }
}

TEST(HeuristicsTest, StructuralIntegers) {
  for (const char* name :
       {"kv_indptr", "kv_indices", "kv_last_page_len", "seq_lens", "lengths", "cu_seqlens", "offsets", "topk_indices",
        "selected_experts", "position_ids", "block_table", "slot_mapping"}) {
    EXPECT_TRUE(IsStructural(name, v1::INT32)) << name;
    EXPECT_TRUE(IsStructural(name, v1::INT64)) << name;
    EXPECT_FALSE(IsStructural(name, v1::FLOAT32)) << name;
    EXPECT_FALSE(IsStructural(name, v1::BOOL)) << name;
  }
  for (const char* name : {"x", "input_ids", "labels", "q_weight", "silens", "wavelength_table_values"}) {
    EXPECT_FALSE(IsStructural(name, v1::INT32)) << name;
  }
}

}  // namespace
}  // namespace solstice::generate
