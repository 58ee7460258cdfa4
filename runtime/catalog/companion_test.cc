#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"

namespace solstice::catalog {
namespace {

using base::StrCat;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

const v1::Definition& Double() {
  static const v1::Definition* definition = new v1::Definition(*ParseDefinition(
      R"({"name": "double", "reference": "r", "axes": {"N": {"type": "var"}},
          "inputs": {"x": {"shape": ["N"], "dtype": "float32"}}, "outputs": {"y": {"shape": ["N"], "dtype": "float32"}}})",
      "definition.json"));
  return *definition;
}

const std::vector<v1::Workload>& Workloads() {
  static const auto* workloads = new std::vector<v1::Workload>(*ParseWorkloads(
      R"({"uuid": "small", "axes": {"N": 1}, "inputs": {"x": {"type": "random"}}}
{"uuid": "blob", "axes": {"N": 4}, "inputs": {"x": {"type": "safetensors", "path": "x", "tensor_key": "x"}}})",
      "workload.jsonl", Double()));
  return *workloads;
}

StatusOr<CompanionFile> Parse(std::string_view text) {
  return ParseCompanion(text, "solstice.json", Double(), Workloads());
}

TEST(Companion, ReadsEveryField) {
  auto companion = Parse(R"({"version": 1, "reference": {"source": "./cuda//reference.cu"},
      "parameters": {"epsilon": 1e-6, "groups": 4}, "future": {"kept": true},
      "smoke_workloads": ["small", {"uuid": "own", "axes": {"N": 2}, "inputs": {"x": {"type": "random"}}}]})");
  ASSERT_TRUE(companion.ok()) << companion.status();
  EXPECT_EQ(companion->source, "cuda/reference.cu");
  EXPECT_EQ(companion->family, "");
  EXPECT_EQ(companion->companion.reference_path(), "cuda/reference.cu");
  ASSERT_EQ(companion->companion.reference_parameters_size(), 2);
  EXPECT_EQ(companion->companion.reference_parameters(0).name(), "epsilon");
  EXPECT_EQ(companion->companion.reference_parameters(0).number(), 1e-6);
  EXPECT_TRUE(companion->companion.reference_parameters(1).has_integer());
  ASSERT_EQ(companion->companion.smoke_workloads_size(), 2);
  EXPECT_EQ(companion->companion.smoke_workloads(0).axes(0).value(), 1);
  EXPECT_EQ(companion->companion.smoke_workloads(1).uuid(), "own");
  EXPECT_EQ(companion->companion.smoke_workloads(1).tolerance().required_matched_ratio(), 0.99);
}

TEST(Companion, ReadsAFamilyAndNeedsOnlyAVersion) {
  EXPECT_EQ(Parse(R"({"version": 1, "reference": {"family": "rmsnorm"}})")->family, "rmsnorm");
  EXPECT_EQ(Parse(R"({"version": 1, "reference": {"family": "rmsnorm"}})")->companion.reference_path(),
            "reference_kernels/rmsnorm/kernel.cu");
  EXPECT_EQ(Parse(R"({"version": 1})")->companion.reference_path(), "");
}

struct Bad {
  const char* name;
  const char* text;
  const char* path;
  const char* reason;
};

class CompanionRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(CompanionRefuses, WithPlaceAndReason) {
  auto companion = Parse(GetParam().text);
  ASSERT_FALSE(companion.ok());
  EXPECT_EQ(companion.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(base::MessageOf(companion.status()),
              AllOf(StartsWith("solstice.json:1:"), HasSubstr(StrCat(": ", GetParam().path, ": ")),
                    HasSubstr(GetParam().reason)));
}

INSTANTIATE_TEST_SUITE_P(
    Table, CompanionRefuses,
    ::testing::Values(
        Bad{"array", "[1]", "$", "must be an object"}, Bad{"no_version", "{}", "$", "needs \"version\""},
        Bad{"version_2", R"({"version": 2})", "$.version", "version 2 is not known here; this build reads version 1"},
        Bad{"version_text", R"({"version": "1"})", "$.version", "must be an integer"},
        Bad{"reference_text", R"({"version": 1, "reference": "a.cu"})", "$.reference", "must be an object"},
        Bad{"reference_none", R"({"version": 1, "reference": {}})", "$.reference", "either"},
        Bad{"reference_both", R"({"version": 1, "reference": {"source": "a.cu", "family": "a"}})", "$.reference",
            "either"},
        Bad{"source_up", R"({"version": 1, "reference": {"source": "../a.cu"}})", "$.reference.source", "holds"},
        Bad{"source_absolute", R"({"version": 1, "reference": {"source": "/a.cu"}})", "$.reference.source", "absolute"},
        Bad{"family_path", R"({"version": 1, "reference": {"family": "../a"}})", "$.reference.family", "no name"},
        Bad{"parameter_text", R"({"version": 1, "parameters": {"e": "1"}})", "$.parameters.e", "must be a number"},
        Bad{"parameter_bool", R"({"version": 1, "parameters": {"e": true}})", "$.parameters.e", "must be a number"},
        Bad{"parameter_axis", R"({"version": 1, "parameters": {"N": 1}})", "$.parameters.N", "axis or tensor"},
        Bad{"parameter_tensor", R"({"version": 1, "parameters": {"y": 1}})", "$.parameters.y", "axis or tensor"},
        Bad{"parameter_name", R"({"version": 1, "parameters": {"a-b": 1}})", "$.parameters.a-b", "no usable name"},
        Bad{"smoke_object", R"({"version": 1, "smoke_workloads": {}})", "$.smoke_workloads", "must be an array"},
        Bad{"smoke_number", R"({"version": 1, "smoke_workloads": [1]})", "$.smoke_workloads[0]", "must be a uuid"},
        Bad{"smoke_unknown", R"({"version": 1, "smoke_workloads": ["smal"]})", "$.smoke_workloads[0]",
            "has no workload"},
        Bad{"smoke_twice", R"({"version": 1, "smoke_workloads": ["small", "small"]})", "$.smoke_workloads[1]", "twice"},
        Bad{"smoke_taken",
            R"({"version": 1, "smoke_workloads": [{"uuid": "small", "axes": {"N": 2}, "inputs": {"x": {"type": "random"}}}]})",
            "$.smoke_workloads[0]", "too"},
        Bad{"smoke_bad", R"({"version": 1, "smoke_workloads": [{"uuid": "s", "axes": {}, "inputs": {}}]})",
            "$.smoke_workloads[0].axes", "needs axis"},
        Bad{"smoke_blob", R"({"version": 1, "smoke_workloads": ["blob"]})", "$.smoke_workloads[0]", "safetensors"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace solstice::catalog
