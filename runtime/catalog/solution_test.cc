#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"

namespace solstice::catalog {
namespace {

using base::StrCat;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::string_view kSpec = R"("language": "cuda")";
constexpr std::string_view kSources = R"([{"path": "kernel.cu", "content": "code"}])";

std::string Text(std::string_view spec = kSpec, std::string_view sources = kSources,
                 std::string_view head = R"("name": "mine", "definition": "rmsnorm_h128")") {
  return StrCat("{", head, ", \"spec\": {", spec, "}, \"sources\": ", sources, "}");
}

TEST(Solution, ReadsEveryField) {
  auto solution = ParseSolution(
      Text(
          R"json("languages": ["cuda_cpp"], "target_hardware": ["H200"], "entry_point": "main.cu::run", "dependencies": [],
              "destination_passing_style": true, "options": ["-std=c++20"],
              "compile_options": {"cuda_cflags": ["--use_fast_math"], "cflags": [], "ld_flags": null},
              "launch_plan": ["let a = 1", "launch k grid=(1) block=(1)"])json",
          R"([{"path": "./lib/tile.cuh", "content": "t"}, {"path": "main.cu", "content": "m\u00e9"}])",
          R"("name": "mine", "definition": "rmsnorm_h128@0123456789ab", "author": "a", "description": "d", "other": 1)"),
      "solution.json");
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->name(), "mine");
  EXPECT_EQ(solution->definition(), "rmsnorm_h128@0123456789ab");
  EXPECT_EQ(solution->author(), "a");
  EXPECT_EQ(solution->description(), "d");
  EXPECT_THAT(solution->options(), ElementsAre("-std=c++20", "--use_fast_math"));
  EXPECT_THAT(solution->launch_plan(), ElementsAre("let a = 1", "launch k grid=(1) block=(1)"));
  ASSERT_EQ(solution->sources_size(), 2);
  EXPECT_EQ(solution->sources(0).path(), "main.cu");  // the entry point's file comes first
  EXPECT_EQ(solution->sources(0).content(), "m\xC3\xA9");
  EXPECT_EQ(solution->sources(1).path(), "lib/tile.cuh");
}

TEST(Solution, NeedsLittle) {
  auto solution = ParseSolution(Text(R"("language": "CUDA C++")", kSources, R"("name": "m")"), "solution.json");
  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(solution->definition(), "");
  EXPECT_EQ(solution->launch_plan_size(), 0);
  EXPECT_EQ(solution->sources(0).content(), "code");
}

struct Bad {
  const char* name;
  std::string text;
  const char* path;
  const char* reason;
};

class SolutionRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(SolutionRefuses, WithPlaceAndReason) {
  auto solution = ParseSolution(GetParam().text, "solution.json");
  ASSERT_FALSE(solution.ok());
  EXPECT_EQ(solution.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(base::MessageOf(solution.status()),
              AllOf(StartsWith("solution.json:1:"), HasSubstr(StrCat(": ", GetParam().path, ": ")),
                    HasSubstr(GetParam().reason)));
}

std::string Spec(std::string_view more) { return Text(StrCat(kSpec, ", ", more)); }
std::string Sources(std::string_view sources) { return Text(kSpec, sources); }

INSTANTIATE_TEST_SUITE_P(
    Table, SolutionRefuses,
    ::testing::Values(
        Bad{"array", "[]", "$", "must be an object"},
        Bad{"no_spec", R"({"name": "m", "sources": []})", "$", "needs \"spec\""},
        Bad{"no_sources", R"({"name": "m", "spec": {"language": "cuda"}})", "$", "needs \"sources\""},
        Bad{"triton", Text(R"("language": "triton")"), "$.spec.language", "solutions are CUDA C++"},
        Bad{"python", Text(R"("languages": ["cuda_cpp", "python"])"), "$.spec.languages[1]", "solutions are CUDA C++"},
        Bad{"languages_empty", Text(R"("languages": [])"), "$.spec.languages", "is empty"},
        Bad{"language_missing", Text(""), "$.spec", "needs \"language\""},
        Bad{"definition", Text(kSpec, kSources, R"("name": "m", "definition": "a/b")"), "$.definition", "no name"},
        Bad{"digest_short", Text(kSpec, kSources, R"("name": "m", "definition": "a@12")"), "$.definition", "no name"},
        Bad{"digest_letters", Text(kSpec, kSources, R"("name": "m", "definition": "a@0123456789AB")"), "$.definition",
            "no name"},
        Bad{"options_text", Spec(R"("options": "-O3")"), "$.spec.options", "must be an array"},
        Bad{"options_number", Spec(R"("options": [3])"), "$.spec.options[0]", "must be a string"},
        Bad{"host_flags", Spec(R"("compile_options": {"cflags": ["-O3"]})"), "$.spec.compile_options.cflags",
            "no host compiler"},
        Bad{"plan_text", Spec(R"("launch_plan": "launch k")"), "$.spec.launch_plan", "must be an array"},
        Bad{"plan_break", Spec(R"("launch_plan": ["launch k\n#include \"/etc/hostname\""])"), "$.spec.launch_plan[0]",
            "line break"},
        Bad{"plan_long", Spec(StrCat(R"("launch_plan": [")", std::string(4097, 'x'), "\"]")), "$.spec.launch_plan[0]",
            "the limit is 4096"},
        Bad{"entry", Spec(R"("entry_point": "other.cu::run")"), "$.spec.entry_point", "no source is called"},
        Bad{"sources_empty", Sources("[]"), "$.sources", "at least one"},
        Bad{"source_path", Sources(R"([{"path": "../k.cu", "content": ""}])"), "$.sources[0].path", "holds"},
        Bad{"source_quote", Sources(R"([{"path": "a\"b.cu", "content": ""}])"), "$.sources[0].path", "quote"},
        Bad{"source_twice", Sources(R"([{"path": "k.cu", "content": ""}, {"path": "./k.cu", "content": ""}])"),
            "$.sources[1].path", "twice"},
        Bad{"source_no_content", Sources(R"([{"path": "k.cu"}])"), "$.sources[0]", "needs \"content\""},
        Bad{"source_number", Sources(R"([{"path": "k.cu", "content": 1}])"), "$.sources[0].content",
            "must be a string"},
        Bad{"source_large",
            Sources(StrCat(R"([{"path": "k.cu", "content": ")", std::string((1 << 20) + 1, 'x'), "\"}]")), "$.sources",
            "larger than 1048576"}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace solstice::catalog
