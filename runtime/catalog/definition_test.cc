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

// A definition in which one part can be replaced.
std::string Text(std::string_view axes = R"("N": {"type": "var"}, "K": {"type": "const", "value": 4})",
                 std::string_view inputs = R"("x": {"shape": ["N", "K"], "dtype": "float32"})",
                 std::string_view outputs = R"("y": {"shape": ["N"], "dtype": "bfloat16"})",
                 std::string_view head = R"("name": "sum_rows", "reference": "def run(x): pass")") {
  return StrCat("{", head, ",\n\"axes\": {", axes, "},\n\"inputs\": {", inputs, "},\n\"outputs\": {", outputs, "}}");
}
constexpr std::string_view kAxes = R"("N": {"type": "var"}, "K": {"type": "const", "value": 4})";
constexpr std::string_view kInputs = R"("x": {"shape": ["N", "K"], "dtype": "float32"})";
constexpr std::string_view kOutputs = R"("y": {"shape": ["N"], "dtype": "bfloat16"})";

v1::Definition Parse(const std::string& text) {
  auto definition = ParseDefinition(text, "definition.json");
  EXPECT_TRUE(definition.ok()) << base::MessageOf(definition.status());
  return definition.ok() ? *definition : v1::Definition();
}

v1::Workload WorkloadOf(std::vector<std::pair<std::string, int64_t>> axes) {
  v1::Workload workload;
  workload.set_uuid("w");
  for (const auto& [name, value] : axes) {
    auto& axis = *workload.add_axes();
    axis.set_name(name);
    axis.set_value(value);
  }
  return workload;
}

TEST(Definition, ReadsEveryField) {
  v1::Definition definition = Parse(Text(
      R"("B": {"type": "var", "description": "rows"}, "H": {"type": "const", "value": 0}, "E": {"type": "expr", "expression": "B * 2"})",
      R"("x": {"shape": ["B", "64", "E // 2", 3], "dtype": "float8_e4m3fn", "description": "in"}, "s": {"shape": null, "dtype": "int64"},
         "z": {"shape": [], "dtype": "bool", "optional": true})",
      R"("y": {"shape": ["B"], "dtype": "float4_e2m1fn_x2"})",
      R"("name": "020_moe.a-b", "op_type": "moe", "description": "d", "reference": "r", "hf_id": "kept and ignored",
         "tags": ["t"], "custom_inputs_entrypoint": "make")"));
  EXPECT_EQ(definition.name(), "020_moe.a-b");
  EXPECT_EQ(definition.op_type(), "moe");
  EXPECT_EQ(definition.description(), "d");
  EXPECT_EQ(definition.reference(), "r");
  EXPECT_EQ(definition.custom_inputs_entrypoint(), "make");
  ASSERT_EQ(definition.axes_size(), 3);
  EXPECT_TRUE(definition.axes(0).variable());
  EXPECT_EQ(definition.axes(0).description(), "rows");
  EXPECT_TRUE(definition.axes(1).has_constant());
  EXPECT_EQ(definition.axes(2).expression(), "B * 2");
  ASSERT_EQ(definition.inputs_size(), 3);
  EXPECT_THAT(definition.inputs(0).shape(), ::testing::ElementsAre("B", "64", "E // 2", "3"));
  EXPECT_EQ(definition.inputs(0).dtype(), v1::FLOAT8_E4M3FN);
  EXPECT_EQ(definition.inputs(0).description(), "in");
  EXPECT_TRUE(definition.inputs(1).scalar());
  EXPECT_FALSE(definition.inputs(2).scalar());
  EXPECT_EQ(definition.inputs(2).shape_size(), 0);
  EXPECT_EQ(definition.outputs(0).dtype(), v1::FLOAT4_E2M1FN_X2);
}

TEST(Definition, NullMeansAbsentWhereThePublicFilesWriteIt) {
  EXPECT_EQ(Parse(Text(kAxes, kInputs, kOutputs,
                       R"("name": "a", "reference": "r", "custom_inputs_entrypoint": null, "op_type": null)"))
                .custom_inputs_entrypoint(),
            "");
}

struct Bad {
  const char* name;
  std::string text;
  const char* where;  // begins with
  const char* reason;
};

class DefinitionRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(DefinitionRefuses, WithPlaceAndReason) {
  auto definition = ParseDefinition(GetParam().text, "definition.json");
  ASSERT_FALSE(definition.ok());
  EXPECT_EQ(definition.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(base::MessageOf(definition.status()),
              AllOf(StartsWith(StrCat("definition.json:", GetParam().where, ": ")), HasSubstr(GetParam().reason)));
}

std::string Axis(std::string_view axes) { return Text(axes); }
std::string Input(std::string_view tensor) { return Text(kAxes, StrCat("\"x\": ", tensor)); }
std::string Head(std::string_view head) { return Text(kAxes, kInputs, kOutputs, head); }

std::string ManyInputs() {
  std::string inputs;
  for (int i = 0; i < 64; ++i) inputs += StrCat(i > 0 ? "," : "", "\"x", i, R"(": {"shape": [], "dtype": "int8"})");
  return Text(kAxes, inputs);
}

INSTANTIATE_TEST_SUITE_P(
    Table, DefinitionRefuses,
    ::testing::Values(
        Bad{"array", "[]", "1:1: $", "must be an object"}, Bad{"syntax", "{", "1:2: $", "end of input"},
        Bad{"no_name", Head(R"("reference": "r")"), "1:1: $", "needs \"name\""},
        Bad{"no_reference", Head(R"("name": "a")"), "1:1: $", "needs \"reference\""},
        Bad{"name_type", Head(R"("name": 3, "reference": "r")"), "1:10: $.name", "must be a string, not an integer"},
        Bad{"name_slash", Head(R"("name": "a/b", "reference": "r")"), "1:10: $.name", "no name of a definition"},
        Bad{"name_dots", Head(R"("name": "..", "reference": "r")"), "1:10: $.name", "no name of a definition"},
        Bad{"name_empty", Head(R"("name": "", "reference": "r")"), "1:10: $.name", "no name of a definition"},
        Bad{"name_long", Head(StrCat(R"("reference": "r", "name": ")", std::string(129, 'n'), "\"")), "1:28: $.name",
            "no name of a definition"},
        Bad{"axes_list", R"({"name": "a", "reference": "r", "axes": [], "inputs": {}, "outputs": {}})", "1:41: $.axes",
            "must be an object, not an array"},
        Bad{"axis_kind", Axis(R"("N": {"type": "range"})"), "2:24: $.axes.N.type", "unknown kind of axis"},
        Bad{"axis_no_type", Axis(R"("N": {})"), "2:15: $.axes.N", "needs \"type\""},
        Bad{"const_float", Axis(R"("N": {"type": "const", "value": 4.0})"), "2:42: $.axes.N.value",
            "must be an integer"},
        Bad{"const_negative", Axis(R"("N": {"type": "const", "value": -4})"), "2:42: $.axes.N.value", "negative"},
        Bad{"axis_name", Axis(R"("a b": {"type": "var"})"), "2:17: $.axes[\"a b\"]", "no usable name"},
        Bad{"axis_keyword", Axis(R"("if": {"type": "var"})"), "2:16: $.axes.if", "no usable name"},
        Bad{"expr_syntax", Axis(R"("N": {"type": "expr", "expression": "2 +"})"), "2:46: $.axes.N.expression",
            "is no formula"},
        Bad{"expr_unknown", Axis(R"("NN": {"type": "var"}, "M": {"type": "expr", "expression": "N * 2"})"),
            "2:69: $.axes.M.expression", "no axis"},
        Bad{"expr_self", Axis(R"("N": {"type": "expr", "expression": "N + 1"})"), "2:15: $.axes.N",
            "depends on itself"},
        Bad{"expr_circle",
            Axis(R"("a": {"type": "expr", "expression": "b"}, "b": {"type": "expr", "expression": "a"})"),
            "2:15: $.axes.a", "depends on itself"},
        Bad{"dtype", Input(R"({"shape": ["N"], "dtype": "float31"})"), "3:43: $.inputs.x.dtype", "float31"},
        Bad{"dtype_missing", Input(R"({"shape": ["N"]})"), "3:17: $.inputs.x", "needs \"dtype\""},
        Bad{"shape_missing", Input(R"({"dtype": "int8"})"), "3:17: $.inputs.x", "needs \"shape\""},
        Bad{"shape_text", Input(R"({"shape": "N", "dtype": "int8"})"), "3:27: $.inputs.x.shape", "must be an array"},
        Bad{"shape_unknown", Input(R"({"shape": ["L"], "dtype": "int8"})"), "3:28: $.inputs.x.shape[0]", "no axis"},
        Bad{"shape_negative", Input(R"({"shape": [-1], "dtype": "int8"})"), "3:28: $.inputs.x.shape[0]", "must be"},
        Bad{"shape_float", Input(R"({"shape": [1.5], "dtype": "int8"})"), "3:28: $.inputs.x.shape[0]", "must be"},
        Bad{"shape_digits", Input(R"({"shape": ["9999999999999999999"], "dtype": "int8"})"),
            "3:28: $.inputs.x.shape[0]", "too large"},
        Bad{"rank", Input(R"({"shape": [1,1,1,1,1,1,1,1,1], "dtype": "int8"})"), "3:27: $.inputs.x.shape",
            "more than 8 dimensions"},
        Bad{"same_name", Text(kAxes, R"("N": {"shape": [], "dtype": "int8"})"), "3:17: $.inputs.N", "already"},
        Bad{"same_output", Text(kAxes, kInputs, R"("x": {"shape": [], "dtype": "int8"})"), "4:18: $.outputs.x",
            "already"},
        Bad{"no_outputs", Text(kAxes, kInputs, ""), "4:12: $.outputs", "at least one output"},
        Bad{"scalar_output", Text(kAxes, kInputs, R"("y": {"shape": null, "dtype": "int8"})"),
            "4:28: $.outputs.y.shape", "an output is a tensor"},
        Bad{"too_many", ManyInputs(), "4:18: $.outputs.y", "more than 64 inputs and outputs"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Definition, RefusesHugeFilesBeforeReadingThem) {
  auto definition = ParseDefinition(std::string(kMaxDefinitionBytes + 1, ' '), "definition.json");
  EXPECT_THAT(base::MessageOf(definition.status()), HasSubstr("the limit is 4194304"));
}

TEST(Definition, SuggestsTheNearestAxis) {
  auto definition = ParseDefinition(Text(kAxes, R"("x": {"shape": ["n"], "dtype": "int8"})"), "definition.json");
  EXPECT_EQ(base::MendOf(definition.status()), "did you mean N?");
}

TEST(Names, Grammar) {
  for (const char* good : {"a", "0", "_x", "gemm_n128_k2048", "a.b-c"}) EXPECT_TRUE(IsValidName(good)) << good;
  for (const char* bad : {"", ".a", "-a", "a/b", "a b", "a@b", "\xC3\xA9", "a\n"})
    EXPECT_FALSE(IsValidName(bad)) << bad;
  EXPECT_TRUE(IsValidName(std::string(128, 'a')));
  EXPECT_FALSE(IsValidName(std::string(129, 'a')));
}

TEST(Axes, ResolveInDefinitionOrderWhateverRefersToWhat) {
  v1::Definition definition = Parse(Text(
      R"("c": {"type": "expr", "expression": "b * 2"}, "N": {"type": "var"}, "b": {"type": "expr", "expression": "N + K"}, "K": {"type": "const", "value": 4})"));
  auto axes = ResolveAxes(definition, WorkloadOf({{"N", 3}}));
  ASSERT_TRUE(axes.ok()) << axes.status();
  ASSERT_EQ(axes->size(), 4u);
  EXPECT_EQ((*axes)[0].name(), "c");
  EXPECT_EQ((*axes)[0].value(), 14);
  EXPECT_EQ((*axes)[1].value(), 3);
  EXPECT_EQ((*axes)[2].value(), 7);
  EXPECT_EQ((*axes)[3].value(), 4);
}

TEST(Axes, RefuseMissingNegativeOverflowingAndFloat) {
  v1::Definition plain = Parse(Text());
  EXPECT_THAT(base::MessageOf(ResolveAxes(plain, WorkloadOf({})).status()), HasSubstr("has no value"));
  EXPECT_THAT(base::MessageOf(ResolveAxes(plain, WorkloadOf({{"N", -1}})).status()), HasSubstr("negative"));
  v1::Definition product = Parse(Text(R"("N": {"type": "var"}, "K": {"type": "expr", "expression": "N * N"})"));
  EXPECT_EQ(ResolveAxes(product, WorkloadOf({{"N", int64_t{1} << 40}})).status().code(),
            absl::StatusCode::kInvalidArgument);
  v1::Definition ratio = Parse(Text(R"("N": {"type": "var"}, "K": {"type": "expr", "expression": "N / 2"})"));
  EXPECT_FALSE(ResolveAxes(ratio, WorkloadOf({{"N", 4}})).ok());
  v1::Definition zero = Parse(Text(R"("N": {"type": "var"}, "K": {"type": "expr", "expression": "4 // N"})"));
  EXPECT_FALSE(ResolveAxes(zero, WorkloadOf({{"N", 0}})).ok());
}

TEST(Axes, RefuseCirclesThatWereNotParsed) {
  v1::Definition definition;
  auto& axis = *definition.add_axes();
  axis.set_name("a");
  axis.set_expression("a + 1");
  EXPECT_THAT(base::MessageOf(ResolveAxes(definition, v1::Workload()).status()), HasSubstr("depends on itself"));
}

TEST(Shapes, ResolveAndLimit) {
  std::vector<v1::NamedInt> axes(2);
  axes[0].set_name("N");
  axes[0].set_value(int64_t{1} << 38);
  axes[1].set_name("Z");
  axes[1].set_value(0);
  auto bytes = [&](std::vector<std::string> shape, v1::DType dtype) {
    v1::Tensor tensor;
    tensor.set_name("t");
    tensor.set_dtype(dtype);
    for (const std::string& entry : shape) tensor.add_shape(entry);
    return TensorBytes(tensor, axes);
  };
  EXPECT_EQ(*bytes({}, v1::FLOAT32), 4);
  EXPECT_EQ(*bytes({"3", "5"}, v1::BFLOAT16), 30);
  EXPECT_EQ(*bytes({"N"}, v1::FLOAT32), int64_t{1} << 40);
  EXPECT_EQ(*bytes({"N // 2", "2"}, v1::FLOAT32), int64_t{1} << 40);
  EXPECT_EQ(*bytes({"Z", "N", "N"}, v1::FLOAT32), 0);
  EXPECT_EQ(*bytes({"N", "N", "Z"}, v1::FLOAT32), 0);
  EXPECT_FALSE(bytes({"N"}, v1::FLOAT64).ok());
  EXPECT_FALSE(bytes({"N", "N"}, v1::INT8).ok());
  EXPECT_FALSE(bytes({"N", "N", "N"}, v1::INT8).ok());
  EXPECT_FALSE(bytes({"N * 8", "Z"}, v1::INT8).ok());  // each dimension has to be sane
  EXPECT_FALSE(bytes({"Z - 1"}, v1::INT8).ok());
  EXPECT_FALSE(bytes({"missing"}, v1::INT8).ok());
}

}  // namespace
}  // namespace solstice::catalog
