#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"

namespace solstice::catalog {
namespace {

using base::StrCat;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr std::string_view kDefinition = R"({"name": "scale", "reference": "r", "custom_inputs_entrypoint": "make",
  "axes": {"N": {"type": "var"}, "K": {"type": "const", "value": 4}, "T": {"type": "expr", "expression": "N * K"}},
  "inputs": {"x": {"shape": ["N"], "dtype": "float32"}, "f": {"shape": null, "dtype": "float32"},
             "i": {"shape": null, "dtype": "int32"}, "b": {"shape": null, "dtype": "bool"}},
  "outputs": {"y": {"shape": ["T"], "dtype": "float32"}}})";

const v1::Definition& Scale() {
  static const v1::Definition* definition = new v1::Definition(*ParseDefinition(kDefinition, "definition.json"));
  return *definition;
}

constexpr std::string_view kScalars =
    R"("f": {"type": "scalar", "value": 2}, "i": {"type": "scalar", "value": -7}, "b": {"type": "scalar", "value": true})";

std::string Line(std::string_view axes = R"("N": 16)", std::string_view x = R"({"type": "random"})",
                 std::string_view more = "", std::string_view uuid = "\"w\"", std::string_view scalars = kScalars) {
  return StrCat(R"({"uuid": )", uuid, R"(, "axes": {)", axes, R"(}, "inputs": {"x": )", x, ", ", scalars, "}", more,
                "}");
}

v1::Workload One(const std::string& line) {
  auto workloads = ParseWorkloads(line, "workload.jsonl", Scale());
  EXPECT_TRUE(workloads.ok()) << base::MessageOf(workloads.status());
  return workloads.ok() && workloads->size() == 1 ? workloads->front() : v1::Workload();
}

std::string Error(const std::string& text) {
  auto workloads = ParseWorkloads(text, "workload.jsonl", Scale());
  EXPECT_FALSE(workloads.ok()) << text;
  if (workloads.ok()) return "";
  EXPECT_EQ(workloads.status().code(), absl::StatusCode::kInvalidArgument);
  return base::MessageOf(workloads.status());
}

TEST(Workload, ReadsSourcesAndFillsTolerance) {
  v1::Workload workload = One(Line());
  EXPECT_EQ(workload.uuid(), "w");
  ASSERT_EQ(workload.axes_size(), 1);
  EXPECT_EQ(workload.axes(0).value(), 16);
  ASSERT_EQ(workload.inputs_size(), 4);
  EXPECT_TRUE(workload.inputs(0).random());
  EXPECT_EQ(workload.inputs(1).scalar().number(), 2.0);
  EXPECT_EQ(workload.inputs(2).scalar().integer(), -7);
  EXPECT_TRUE(workload.inputs(3).scalar().boolean());
  EXPECT_EQ(workload.tolerance().max_atol(), 1e-2);
  EXPECT_EQ(workload.tolerance().max_rtol(), 1e-2);
  EXPECT_EQ(workload.tolerance().required_matched_ratio(), 0.99);
  EXPECT_FALSE(workload.tolerance().has_max_error_cap());
  EXPECT_FALSE(workload.tolerance().allow_negative_inf());
}

TEST(Workload, ReadsToleranceAndIgnoresTheMisspeltRatio) {
  v1::Tolerance tolerance =
      One(Line(
              R"("N": 1)", R"({"type": "custom"})",
              R"(, "tolerance": {"max_atol": 0, "max_rtol": 0.5, "required_match_ratio": 0.5, "max_error_cap": 3, "allow_negative_inf": true})"))
          .tolerance();
  EXPECT_EQ(tolerance.max_atol(), 0);
  EXPECT_EQ(tolerance.max_rtol(), 0.5);
  EXPECT_EQ(tolerance.required_matched_ratio(), 0.99);
  EXPECT_TRUE(tolerance.has_max_error_cap());
  EXPECT_EQ(tolerance.max_error_cap(), 3);
  EXPECT_TRUE(tolerance.allow_negative_inf());
  EXPECT_EQ(One(Line("\"N\": 1", R"({"type": "random"})", R"(, "tolerance": null)")).tolerance().max_atol(), 1e-2);
}

TEST(Workload, UnwrapsTraces) {
  std::string line = StrCat(R"({"definition": "scale", "solution": null, "workload": )", Line(), "}");
  EXPECT_EQ(One(line).uuid(), "w");
}

TEST(Workload, IgnoresUnknownNamesWithOneNoteEach) {
  std::string scalars = StrCat(kScalars, R"(, "bias": {"type": "anything"})");
  std::string text = StrCat(Line("\"N\": 1, \"joint\": 0", R"({"type": "random"})", "", "\"a\"", scalars), "\n",
                            Line("\"N\": 2, \"joint\": 1", R"({"type": "random"})", "", "\"b\"", scalars));
  std::vector<std::string> notes;
  auto workloads = ParseWorkloads(text, "workload.jsonl", Scale(), &notes);
  ASSERT_TRUE(workloads.ok()) << workloads.status();
  EXPECT_EQ(workloads->size(), 2u);
  EXPECT_EQ(workloads->front().inputs_size(), 4);
  EXPECT_THAT(notes, ElementsAre(HasSubstr("axis \"joint\""), HasSubstr("input \"bias\"")));
}

TEST(Workload, MayRepeatWhatTheDefinitionFixes) { EXPECT_EQ(One(Line("\"N\": 2, \"K\": 4, \"T\": 8")).axes_size(), 1); }

TEST(Workload, AcceptsBlankLinesCarriageReturnsAndAMark) {
  std::string text =
      StrCat("\xEF\xBB\xBF\r\n", Line(), "\r\n\n  \t\n", Line("\"N\": 0", R"({"type": "random"})", "", "\"v\""));
  auto workloads = ParseWorkloads(text, "workload.jsonl", Scale());
  EXPECT_FALSE(workloads.ok());  // a mark on a line of its own is no workload
  text = StrCat("\xEF\xBB\xBF", Line(), "\r\n\n  \t\n", Line("\"N\": 0", R"({"type": "random"})", "", "\"v\""));
  workloads = ParseWorkloads(text, "workload.jsonl", Scale());
  ASSERT_TRUE(workloads.ok()) << workloads.status();
  EXPECT_EQ(workloads->size(), 2u);
  EXPECT_THAT(*ParseWorkloads("", "workload.jsonl", Scale()), IsEmpty());
}

TEST(Workload, UuidsDifferByCase) {
  std::string text = StrCat(Line("\"N\": 1", R"({"type": "random"})", "", "\"same\""), "\n",
                            Line("\"N\": 1", R"({"type": "random"})", "", "\"Same\""));
  EXPECT_EQ(ParseWorkloads(text, "workload.jsonl", Scale())->size(), 2u);
  EXPECT_THAT(Error(StrCat(text, "\n\n", Line("\"N\": 2", R"({"type": "random"})", "", "\"same\""))),
              AllOf(StartsWith("workload.jsonl:4:10: $.uuid: "), HasSubstr("lines 1 and 4")));
}

struct Bad {
  const char* name;
  std::string line;
  const char* path;
  const char* reason;
};

class WorkloadRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(WorkloadRefuses, WithPlaceAndReason) {
  // On line 3 of a file, after a good one and a blank.
  std::string good = Line("\"N\": 1", R"({"type": "random"})", "", "\"good\"");
  EXPECT_THAT(Error(StrCat(good, "\n\n", GetParam().line)),
              AllOf(StartsWith("workload.jsonl:3:"), HasSubstr(StrCat(": ", GetParam().path, ": ")),
                    HasSubstr(GetParam().reason)));
}

std::string Axes(std::string_view axes) { return Line(axes); }
std::string Source(std::string_view source) { return Line("\"N\": 4", source); }
std::string Blob(std::string_view path) {
  return Source(StrCat(R"({"type": "safetensors", "path": ")", path, R"(", "tensor_key": "x"})"));
}
std::string Tolerance(std::string_view tolerance) {
  return Line("\"N\": 4", R"({"type": "random"})", StrCat(R"(, "tolerance": )", tolerance));
}
std::string Uuid(std::string_view uuid) { return Line("\"N\": 4", R"({"type": "random"})", "", uuid); }
std::string Scalar(std::string_view scalars) { return Line("\"N\": 4", R"({"type": "random"})", "", "\"w\"", scalars); }

INSTANTIATE_TEST_SUITE_P(
    Table, WorkloadRefuses,
    ::testing::Values(
        Bad{"array", "[]", "$", "must be a workload object, not an array"},
        Bad{"no_uuid", R"({"axes": {"N": 1}, "inputs": {}})", "$", "needs \"uuid\""},
        Bad{"no_axes", R"({"uuid": "w", "inputs": {}})", "$", "needs \"axes\""},
        Bad{"no_inputs", R"({"uuid": "w", "axes": {"N": 1}})", "$", "needs \"inputs\""},
        Bad{"uuid_number", Uuid("7"), "$.uuid", "must be a string"},
        Bad{"uuid_empty", Uuid("\"\""), "$.uuid", "is empty"},
        Bad{"uuid_trailing", Uuid("\"same \""), "$.uuid", "space"},
        Bad{"uuid_leading", Uuid("\" w\""), "$.uuid", "space"},
        Bad{"uuid_control", Uuid("\"a\\nb\""), "$.uuid", "control"},
        Bad{"uuid_c1", Uuid("\"a\\u0085b\""), "$.uuid", "control"},
        Bad{"uuid_long", Uuid(StrCat("\"", std::string(129, 'u'), "\"")), "$.uuid", "longer than 128"},
        Bad{"axis_missing", Axes(""), "$.axes", "needs axis \"N\""},
        Bad{"axis_negative", Axes("\"N\": -1"), "$.axes.N", "negative"},
        Bad{"axis_float", Axes("\"N\": 16.0"), "$.axes.N", "integer without fraction"},
        Bad{"axis_fraction", Axes("\"N\": 16.5"), "$.axes.N", "integer without fraction"},
        Bad{"axis_text", Axes("\"N\": \"16\""), "$.axes.N", "not a string"},
        Bad{"axis_bool", Axes("\"N\": true"), "$.axes.N", "not a boolean"},
        Bad{"axis_null", Axes("\"N\": null"), "$.axes.N", "not null"},
        Bad{"axis_huge", Axes("\"N\": 1000000000000000000000"), "$.axes.N", "64 bits"},
        Bad{"axis_exa", Axes("\"N\": 1152921504606846976"), "$.axes", "larger than"},
        Bad{"axis_overflow", Axes("\"N\": 9223372036854775807"), "$.axes", "T"},
        Bad{"axis_constant", Axes("\"N\": 1, \"K\": 5"), "$.axes.K", "fixes this axis at 4"},
        Bad{"axis_expression", Axes("\"N\": 1, \"T\": 5"), "$.axes.T", "computes this axis as 4"},
        Bad{"source_type", Source(R"({"type": "pickle", "path": "a.pkl"})"), "$.inputs.x.type", "unknown input source"},
        Bad{"source_no_type", Source("{}"), "$.inputs.x", "needs \"type\""},
        Bad{"source_text", Source("\"random\""), "$.inputs.x", "must be an object"},
        Bad{"scalar_tensor", Source(R"({"type": "scalar", "value": 1})"), "$.inputs.x.type", "is a tensor"},
        Bad{"input_missing", Scalar(R"("f": {"type": "random"})"), "$.inputs", "needs input \"i\""},
        Bad{"scalar_bool", Scalar(R"("f": {"type": "scalar", "value": true})"), "$.inputs.f.value", "must be a number"},
        Bad{"scalar_missing", Scalar(R"("f": {"type": "scalar"})"), "$.inputs.f", "needs \"value\""},
        Bad{"scalar_float", Scalar(R"("f": {"type": "random"}, "i": {"type": "scalar", "value": 1.0})"),
            "$.inputs.i.value", "integer without fraction"},
        Bad{"scalar_range", Scalar(R"("f": {"type": "random"}, "i": {"type": "scalar", "value": 2147483648})"),
            "$.inputs.i.value", "does not fit int32"},
        Bad{"scalar_int_bool",
            Scalar(R"("f": {"type": "random"}, "i": {"type": "random"}, "b": {"type": "scalar", "value": 1})"),
            "$.inputs.b.value", "true or false"},
        Bad{"scalar_blob", Scalar(R"("f": {"type": "safetensors", "path": "a", "tensor_key": "x"})"), "$.inputs.f.type",
            "is a scalar"},
        Bad{"path_empty", Blob(""), "$.inputs.x.path", "is empty"},
        Bad{"path_up", Blob("../x"), "$.inputs.x.path", "holds \"..\""},
        Bad{"path_inner_up", Blob("blob/../../x"), "$.inputs.x.path", "holds"},
        Bad{"path_absolute", Blob("/etc/passwd"), "$.inputs.x.path", "is absolute"},
        Bad{"path_slash", Blob("blob/x/"), "$.inputs.x.path", "ends in a slash"},
        Bad{"path_url", Blob("file:///etc/passwd"), "$.inputs.x.path", "is a URL"},
        Bad{"path_backslash", Blob("blob\\\\x"), "$.inputs.x.path", "backslash"},
        Bad{"path_nul", Blob("blob/x\\u0000.png"), "$.inputs.x.path", "control character"},
        Bad{"path_home", Blob("~/x"), "$.inputs.x.path", "~"},
        Bad{"path_dot", Blob("."), "$.inputs.x.path", "names no file"},
        Bad{"path_dots", Blob("./."), "$.inputs.x.path", "names no file"},
        Bad{"path_long", Blob(std::string(1025, 'p')), "$.inputs.x.path", "longer than 1024"},
        Bad{"key_empty", Source(R"({"type": "safetensors", "path": "a", "tensor_key": ""})"), "$.inputs.x.tensor_key",
            "is empty"},
        Bad{"tolerance_text", Tolerance("\"tight\""), "$.tolerance", "must be an object"},
        Bad{"atol_negative", Tolerance(R"({"max_atol": -1})"), "$.tolerance.max_atol", "finite and not negative"},
        Bad{"atol_overflow", Tolerance(R"({"max_atol": 1e999})"), "$.tolerance.max_atol", "overflows"},
        Bad{"rtol_nan", Tolerance(R"({"max_rtol": NaN})"), "$.tolerance.max_rtol", "invalid literal"},
        Bad{"rtol_text", Tolerance(R"({"max_rtol": "1"})"), "$.tolerance.max_rtol", "must be a number"},
        Bad{"ratio_zero", Tolerance(R"({"required_matched_ratio": 0})"), "$.tolerance.required_matched_ratio",
            "at most 1"},
        Bad{"ratio_large", Tolerance(R"({"required_matched_ratio": 1.01})"), "$.tolerance.required_matched_ratio",
            "at most 1"},
        Bad{"ratio_negative", Tolerance(R"({"required_matched_ratio": -5})"), "$.tolerance.required_matched_ratio",
            "not negative"},
        Bad{"cap_negative", Tolerance(R"({"max_error_cap": -1})"), "$.tolerance.max_error_cap", "not negative"},
        Bad{"inf_number", Tolerance(R"({"allow_negative_inf": 1})"), "$.tolerance.allow_negative_inf",
            "true or false"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST(Workload, CustomNeedsAnEntrypoint) {
  v1::Definition definition = Scale();
  definition.clear_custom_inputs_entrypoint();
  auto workloads = ParseWorkloads(Source(R"({"type": "custom"})"), "workload.jsonl", definition);
  EXPECT_THAT(base::MessageOf(workloads.status()), HasSubstr("custom_inputs_entrypoint"));
}

TEST(Workload, NormalisesPlainPaths) {
  EXPECT_EQ(One(Blob("./blob//a/./x.safetensors")).inputs(0).safetensors().path(), "blob/a/x.safetensors");
}

TEST(Workload, LimitsCountAndSize) {
  std::string text;
  for (int i = 0; i <= kMaxWorkloads; ++i) {
    text += StrCat(Line("\"N\": 1", R"({"type": "random"})", "", StrCat("\"", i, "\"")), "\n");
  }
  EXPECT_THAT(Error(text), HasSubstr("more than 4096 workloads"));
  EXPECT_THAT(Error(std::string(kMaxWorkloadBytes + 1, ' ')), HasSubstr("the limit is"));
}

// The malformed files of tests/cases: refused with file, line and column, but for the two that are fine.
struct Malformed {
  const char* file;
  int accepted;       // workloads; -1: refused
  const char* error;  // begins with, after the file's name
};

class MalformedFiles : public ::testing::TestWithParam<Malformed> {};

TEST_P(MalformedFiles, EndAsTheCaseSays) {
  std::string folder = SOLSTICE_SOURCE_DIR "/tests/cases/20_bad_workload_files/";
  auto definition = ParseDefinition(*base::ReadFile(folder + "definition.json", 1 << 20), "definition.json");
  ASSERT_TRUE(definition.ok());
  auto text = base::ReadFile(StrCat(folder, "malformed/", GetParam().file), 1 << 20);
  ASSERT_TRUE(text.ok()) << text.status();
  auto workloads = ParseWorkloads(*text, GetParam().file, *definition);
  if (GetParam().accepted >= 0) {
    ASSERT_TRUE(workloads.ok()) << workloads.status();
    EXPECT_EQ(static_cast<int>(workloads->size()), GetParam().accepted);
  } else {
    EXPECT_THAT(base::MessageOf(workloads.status()), StartsWith(StrCat(GetParam().file, ":", GetParam().error)));
  }
}

INSTANTIATE_TEST_SUITE_P(Table, MalformedFiles,
                         ::testing::Values(Malformed{"array_file.json", -1, "1:1: $: "},
                                           Malformed{"axis_types.jsonl", -1, "1:27: $.axes.N: "},
                                           Malformed{"blank_and_crlf.jsonl", 2, ""}, Malformed{"bom.jsonl", 1, ""},
                                           Malformed{"deep_nesting.jsonl", -1, "1:"},
                                           Malformed{"duplicate_keys.jsonl", -1, "1:29: $.axes: "},
                                           Malformed{"duplicate_uuid.jsonl", -1, "2:10: $.uuid: "},
                                           Malformed{"infinite_tolerance.jsonl", -1, "1:90: $.tolerance.max_atol: "},
                                           Malformed{"input_names.jsonl", -1, "1:41: $.inputs: "},
                                           Malformed{"invalid_utf8.jsonl", -1, "1:10: $.uuid: "},
                                           Malformed{"lone_surrogate.jsonl", -1, "1:16: $.uuid: "},
                                           Malformed{"nan_tolerance.jsonl", -1, "1:86: $.tolerance.max_atol: "},
                                           Malformed{"trailing_comma.jsonl", -1, "1:28: $.axes.N: "},
                                           Malformed{"truncated.jsonl", -1, "2:26: $.axes.N: "},
                                           Malformed{"two_objects_one_line.jsonl", -1, "1:62: $: "}));

}  // namespace
}  // namespace solstice::catalog
