#include <gtest/gtest.h>

#include "runtime/plan/plan_test_support.h"
#include "runtime/plan/statement.h"

namespace solstice::plan {
namespace {

constexpr char kLaunch[] = "launch k grid=(1) block=(1)";

TEST(ExtractPlanLines, FindsLinesWithTheirNumbers) {
  std::vector<PlanLine> lines = ExtractPlanLines(
      "a.cu", "\xEF\xBB\xBF//@ let a = 1\r\n\n// not this //@\n  \t//@launch k\nint x; //@ nor this\n//@");
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0].file, "a.cu");
  EXPECT_EQ(lines[0].line, 1);
  EXPECT_EQ(lines[0].text, " let a = 1");
  EXPECT_EQ(lines[1].line, 4);
  EXPECT_EQ(lines[1].text, "launch k");
  EXPECT_EQ(lines[2].line, 6);
  EXPECT_EQ(lines[2].text, "");
  EXPECT_TRUE(ExtractPlanLines("a.cu", "").empty());
}

TEST(PlanLines, TakesTheLaunchPlanOrTheSources) {
  v1::Solution solution;
  EXPECT_TRUE(absl::IsInvalidArgument(PlanLines(solution).status()));
  v1::SourceFile* source = solution.add_sources();
  source->set_path("a.cu");
  source->set_content("//@ launch a\n");
  source = solution.add_sources();
  source->set_path("b.cuh");
  source->set_content("\n//@ launch b\n");
  StatusOr<std::vector<PlanLine>> lines = PlanLines(solution);
  ASSERT_TRUE(lines.ok());
  ASSERT_EQ(lines->size(), 2u);
  EXPECT_EQ((*lines)[1].file, "b.cuh");
  EXPECT_EQ((*lines)[1].line, 2);
  solution.add_launch_plan("launch c");
  lines = PlanLines(solution);
  ASSERT_TRUE(lines.ok());
  ASSERT_EQ(lines->size(), 1u);
  EXPECT_EQ((*lines)[0].file, "launch_plan");
  EXPECT_EQ((*lines)[0].line, 1);
  solution.set_launch_plan(0, "//@ launch c");
  EXPECT_EQ(Explain(PlanLines(solution).status()),
            "launch_plan:1: the line starts with //@ | leave //@ out in launch_plan");
  solution.set_launch_plan(0, "  ");
  EXPECT_TRUE(absl::IsInvalidArgument(PlanLines(solution).status()));
  for (int i = 0; i < kMaxPlanLines; ++i) solution.add_launch_plan("");
  EXPECT_EQ(Explain(PlanLines(solution).status()), "launch_plan: the plan has more than 1024 lines");
}

TEST(Parse, ReadsEveryStatement) {
  v1::Definition definition = TestDefinition();
  StatusOr<Plan> plan = Plan::Parse(Lines(R"( let rows = 4

 scratch partial = M * 4
 memset partial 0 bytes=M * 2 when=(M > 2)
 define TILE = 64 if M > 64 else 32
 launch  ops::k<float,rows>  grid = ( ceil_div(M, rows) , 2 )
   block=(256) shared=(1024)
   when=(M <= 4)
   args=(x, y, partial,
         i32(M), f32( min(alpha, 1) ), count)
 launch k block=(1,1,1) grid=(M) when=(else))"),
                                    &definition);
  ASSERT_TRUE(plan.ok()) << plan.status();
  const auto& statements = plan->statements();
  ASSERT_EQ(statements.size(), 6u);
  EXPECT_EQ(statements[0]->name, "rows");
  EXPECT_EQ(statements[0]->value->text(), "4");
  EXPECT_EQ(statements[1]->kind, Statement::Kind::kScratch);
  EXPECT_EQ(statements[1]->line, 3);
  EXPECT_EQ(statements[2]->bytes->text(), "M * 2");
  EXPECT_EQ(statements[2]->condition->text(), "M > 2");
  EXPECT_EQ(statements[3]->value->text(), "64 if M > 64 else 32");
  const Statement& launch = *statements[4];
  EXPECT_EQ(launch.line, 6);
  EXPECT_EQ(launch.name, "ops::k<float,rows>");
  ASSERT_EQ(launch.grid.size(), 2u);
  EXPECT_EQ(launch.grid[0].text(), "ceil_div(M, rows)");
  EXPECT_EQ(launch.shared->text(), "1024");
  ASSERT_EQ(launch.args.size(), 6u);
  EXPECT_EQ(launch.args[2].text, "partial");
  EXPECT_EQ(launch.args[4].type, "f32");
  EXPECT_EQ(launch.args[4].formula->text(), "min(alpha, 1)");
  EXPECT_EQ(launch.args[5].type, "");
  EXPECT_EQ(statements[5]->when, Statement::When::kElse);
  EXPECT_EQ(statements[5]->block.size(), 3u);
}

struct Case {
  const char* text;
  const char* expected;
};

TEST(Parse, Errors) {
  const Case kCases[] = {
      {"", "plan.cu: the plan has no launch | add launch KERNEL grid=(...) block=(...) args=(...)"},
      {"let a = 1", "plan.cu: the plan has no launch | add launch KERNEL grid=(...) block=(...) args=(...)"},
      {"lanch k grid=(1)", "plan.cu:1: \"lanch k grid=(1)\" starts no statement | did you mean \"launch\"?"},
      {"x = 4",
       "plan.cu:1: \"x = 4\" starts no statement | a statement starts with let, scratch, memset, define or launch"},
      {"Launch k grid=(1)", "plan.cu:1: \"Launch k grid=(1)\" starts no statement | did you mean \"launch\"?"},
      {"let a = 1\x01", "plan.cu:1: control character \"\\x01\" | a plan line is one line of printable text"},
      {"let", "plan.cu:1: let: no \"=\" after the name | write let NAME = FORMULA"},
      {"let a == 1", "plan.cu:1: let: no \"=\" after the name | write let NAME = FORMULA"},
      {"let 4 = 1", "plan.cu:1: let: \"4\" is not a name | write let NAME = FORMULA"},
      {"let a b = 1", "plan.cu:1: let: \"a b\" is not a name | write let NAME = FORMULA"},
      {"let a =", "plan.cu:1: let a: \"\": column 1: the formula is empty"},
      {"let a = 1 +", "plan.cu:1: let a: \"1 +\": column 4: the formula ends where a value is expected"},
      {"let a = 1 << 2",
       "plan.cu:1: let a: \"1 << 2\": column 3: \"<<\" is not an operator of formulas | write x * 2**n"},
      {"let M = 1", "plan.cu:1: let M: \"M\" is an axis of the definition | choose another name"},
      {"let x = 1", "plan.cu:1: let x: \"x\" is an input of the definition | choose another name"},
      {"let y = 1", "plan.cu:1: let y: \"y\" is an output of the definition | choose another name"},
      {"let alpha = 1", "plan.cu:1: let alpha: \"alpha\" is an input of the definition | choose another name"},
      {"let min = 1", "plan.cu:1: let min: \"min\" is a word of formulas | choose another name"},
      {"let else = 1", "plan.cu:1: let else: \"else\" is a word of formulas | choose another name"},
      {"let arch = 1", "plan.cu:1: let arch: \"arch\" is a property of the device | choose another name"},
      {"let a = 1\nlet a = 2", "plan.cu:2: let a: \"a\" is already a let | choose another name"},
      {"let a = 1\nscratch a = 2", "plan.cu:2: scratch a: \"a\" is already a let | choose another name"},
      {"scratch a = 1\nlet a = 2", "plan.cu:2: let a: \"a\" is already a scratch buffer | choose another name"},
      {"let a = celi(1.5)", "plan.cu:1: let a: \"celi(1.5)\": unknown function \"celi\" | did you mean \"ceil\"?"},
      {"let a = occupancy(k, 1, 1)",
       "plan.cu:1: let a: \"occupancy(k, 1, 1)\": occupancy() is not known before compiling | use it in grid=, block=, "
       "shared=, args= and memset only"},
      {"scratch a = occupancy(k, 1, 1)",
       "plan.cu:1: scratch a: \"occupancy(k, 1, 1)\": occupancy() is not known before compiling | use it in grid=, "
       "block=, shared=, args= and memset only"},
      {"define A = 1\ndefine A = 2",
       "plan.cu:2: define A: \"A\" is defined twice | choose the value with a if condition else b"},
      {"define __CUDA_ARCH__ = 1",
       "plan.cu:1: define __CUDA_ARCH__: \"__CUDA_ARCH__\" is reserved for the compiler | choose a name without "
       "leading "
       "underscores"},
      {"define _A = 1",
       "plan.cu:1: define _A: \"_A\" is reserved for the compiler | choose a name without leading underscores"},
      {"define A(x) = 1", "plan.cu:1: define: \"A(x)\" is not a name | write define NAME = FORMULA"},
      {"define A = unsigned int",
       "plan.cu:1: define A: \"unsigned int\": column 10: unexpected \"int\" where an operator or the end is expected"},
      {"define A = \"x\"", "plan.cu:1: define A: \"\\\"x\\\"\": column 1: unexpected character \"\\\"\""},
      {"memset", "plan.cu:1: memset: no buffer name | write memset BUFFER BYTE"},
      {"memset y", "plan.cu:1: memset y: \"\": column 1: the formula is empty"},
      {"memset x 0", "plan.cu:1: memset: input \"x\" is read-only | memset outputs and scratch buffers only"},
      {"memset z 0", "plan.cu:1: memset: unknown name \"z\" | did you mean \"x\"?"},
      {"memset y = 0", "plan.cu:1: memset y: \"= 0\": column 1: \"=\" is not an operator of formulas | equality is =="},
      {"memset y 0 size=4", "plan.cu:1: memset: unknown attribute \"size\" | there are bytes, when"},
      {"memset y 0 bytes=", "plan.cu:1: memset y: bytes: \"\": column 1: the formula is empty"},
      {"memset y 0 when=M", "plan.cu:1: when= is not followed by parentheses | write when=(CONDITION) or when=(else)"},
      {"memset y 0 when=(else)",
       "plan.cu:1: memset y: when=(else) follows no launch or memset with a condition | put it right after the "
       "alternatives that have when=(CONDITION)"},
      {"launch", "plan.cu:1: launch: no kernel name | write launch KERNEL grid=(...) block=(...) args=(...)"},
      {"launch grid=(1) block=(1)",
       "plan.cu:1: launch: no kernel name | write launch KERNEL grid=(...) block=(...) args=(...)"},
      {"launch k block=(1)",
       "plan.cu:1: launch k: grid=(...) is missing | add grid=(x), grid=(x, y) or grid=(x, y, z)"},
      {"launch k grid=(1)",
       "plan.cu:1: launch k: block=(...) is missing | add block=(x), block=(x, y) or block=(x, y, z)"},
      {"launch k grid=() block=(1)", "plan.cu:1: launch k: grid has 0 values | give 1 to 3: x, y, z"},
      {"launch k grid=(1,2,3,4) block=(1)", "plan.cu:1: launch k: grid has 4 values | give 1 to 3: x, y, z"},
      {"launch k grid=(1,) block=(1)", "plan.cu:1: launch k: grid: \"\": column 1: the formula is empty"},
      {"launch k grid=1 block=(1)", "plan.cu:1: grid= is not followed by parentheses | write grid=(...)"},
      {"launch k grid=(1)+1 block=(1)", "plan.cu:1: grid= is not followed by parentheses | write grid=(...)"},
      {"launch k grid=(1 block=(1)", "plan.cu:1: grid=( is not closed | add \")\""},
      {"launch k grid=(1) grid=(2) block=(1)", "plan.cu:1: grid= is given twice"},
      {"launch k grids=(1) block=(1)", "plan.cu:1: launch: unknown attribute \"grids\" | did you mean \"grid\"?"},
      {"launch k grid=(1) fast block=(1)", "plan.cu:1: unexpected \"fast block=(1)\" where NAME=(...) is expected"},
      {"launch k grid=(1) block=(1) cluster=(2)", "plan.cu:1: cluster= is not supported yet by this version"},
      {"launch k grid=(1) block=(1) cooperative=(True)",
       "plan.cu:1: cooperative= is not supported yet by this version"},
      {"launch k grid=(1) block=(1) cooperative", "plan.cu:1: cooperative is not supported yet by this version"},
      {"launch k grid=(1) block=(1) programmatic=(True)",
       "plan.cu:1: programmatic= is not supported yet by this version"},
      {"tensor_map t = x", "plan.cu:1: tensor_map is not supported yet by this version"},
      {"launch k grid=(1) block=(1) args=(struct(i32(1), i32(2)))",
       "plan.cu:1: launch k: argument 1: struct(...) is not supported yet by this version"},
      {"launch k grid=(1) block=(1) args=(x, pointers(x, y))",
       "plan.cu:1: launch k: argument 2: pointers(...) is not supported yet by this version"},
      {"launch k grid=(1) block=(1) args=(tensor_map(x))",
       "plan.cu:1: launch k: argument 1: tensor_map(...) is not supported yet by this version"},
      {"launch other.cu:k<4> grid=(1) block=(1)",
       "plan.cu:1: launch \"other.cu:k<4>\": naming the source of a kernel is not supported yet by this version | "
       "leave "
       "FILE: out; kernels are taken from the first source and what it includes"},
      {"launch k grid=(1) block=(1) args=(x,,y)", "plan.cu:1: launch k: argument 2 is empty"},
      {"launch k grid=(1) block=(1) args=(x, y,)", "plan.cu:1: launch k: argument 3 is empty"},
      {"launch k grid=(1) block=(1) args=(xs)",
       "plan.cu:1: launch k: argument 1: unknown name \"xs\" | did you mean \"x\"?"},
      {"launch k grid=(1) block=(1) args=(hidden_states)",
       "plan.cu:1: launch k: argument 1: unknown name \"hidden_states\" | there are x, w, idx, alpha, count, flag, "
       "tiny, "
       "y"},
      {"launch k grid=(1) block=(1) args=(M)",
       "plan.cu:1: launch k: argument 1: \"M\" is a number, not a buffer | pass it by value with the kernel's type: "
       "i32(M) or i64(M)"},
      {"launch k grid=(1) block=(1) args=(p)\nscratch p = 4",
       "plan.cu:1: launch k: argument 1: scratch buffer \"p\" is used above its scratch line | move the scratch line "
       "up"},
      {"launch k grid=(1) block=(1) args=(tiny)",
       "plan.cu:1: launch k: argument 1: scalar input \"tiny\" has dtype float8_e4m3fn, which no value type carries | "
       "convert it: f32(tiny)"},
      {"launch k grid=(1) block=(1) args=(4)",
       "plan.cu:1: launch k: argument 1: \"4\" is neither a buffer nor a typed value | give values their type: i32(4)"},
      {"launch k grid=(1) block=(1) args=(min(M, 4))",
       "plan.cu:1: launch k: argument 1: \"min(M, 4)\" is neither a buffer nor a typed value | give values their type: "
       "i32(min(M, 4))"},
      {"launch k grid=(1) block=(1) args=(int32(M))",
       "plan.cu:1: launch k: argument 1: \"int32(M)\" is neither a buffer nor a typed value | did you mean \"i32\"?"},
      {"launch k grid=(1) block=(1) args=(&x)",
       "plan.cu:1: launch k: argument 1: \"&x\" is neither a buffer nor a typed value | give values their type: "
       "i32(&x)"},
      {"launch k grid=(1) block=(1) args=(i32())",
       "plan.cu:1: launch k: argument 1: \"\": column 1: the formula is empty"},
      {"launch k grid=(1) block=(1) args=(i32(M) + 1)",
       "plan.cu:1: launch k: argument 1: \"i32(M) + 1\" is neither a buffer nor a typed value | give values their "
       "type: "
       "i32(i32(M) + 1)"},
      {"launch k grid=(1) block=(1)\n   args=(x,\n   i32(1 +), y)",
       "plan.cu:3: launch k: argument 2: \"1 +\": column 4: the formula ends where a value is expected"},
      {"launch k grid=(1) block=(1) args=(x)\nlauch k grid=(1) block=(1)",
       "plan.cu:2: unexpected \"lauch k grid=(1) block=(\" where NAME=(...) is expected | this line continues the "
       "statement above it; if it should start one, did you mean \"launch\"?"},
      {"launch k<occupancy(k, 1, 1)> grid=(1) block=(1)",
       "plan.cu:1: launch: occupancy() is not known before compiling | use it in grid=, block=, shared=, args= and "
       "memset only"},
      {"launch k grid=(1) block=(1) when=(else)",
       "plan.cu:1: launch k: when=(else) follows no launch or memset with a condition | put it right after the "
       "alternatives that have when=(CONDITION)"},
      {"launch k grid=(1) block=(1) when=(M > 1)\nlaunch k grid=(1) block=(1)\nlaunch k grid=(1) block=(1) when=(else)",
       "plan.cu:3: launch k: when=(else) follows no launch or memset with a condition | put it right after the "
       "alternatives that have when=(CONDITION)"},
  };
  for (const Case& c : kCases) EXPECT_EQ(ParseError(c.text), c.expected) << c.text;
}

TEST(Parse, RefusesNamesThatAreNoNameExpressions) {
  for (const char* name :
       {"k;", "k(1)", "k<", "k<4", "k<1 +>", "k<\"a\">", "k l", "4",
        "user::ops::affine<float, 4, true>); }; static_assert(false, \"injected\"); namespace z { (void)(0"}) {
    std::string error = ParseError(std::string("launch ") + name + " grid=(1) block=(1)");
    EXPECT_EQ(error.substr(0, 18), "plan.cu:1: launch:") << name << error;
  }
  // A line break cannot even be written in a line.
  v1::Definition definition = TestDefinition();
  EXPECT_FALSE(
      Plan::Parse({{"launch_plan", 1, "launch k<4>\n#include \"/etc/hostname\" grid=(1) block=(1)"}}, &definition)
          .ok());
}

TEST(Parse, Limits) {
  auto repeat = [](const std::string& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) {
      std::string line = text;
      if (size_t at = line.find('#'); at != std::string::npos) line.replace(at, 1, std::to_string(i));
      out += line;
    }
    return out;
  };
  EXPECT_EQ(ParseError(repeat("launch k grid=(1) block=(1)\n", 256)), "");
  EXPECT_EQ(ParseError(repeat("launch k grid=(1) block=(1)\n", 257)),
            "plan.cu:257: the plan has more than 256 launches");
  EXPECT_EQ(ParseError(repeat("let a# = 1\n", 64) + kLaunch), "");
  EXPECT_EQ(ParseError(repeat("let a# = 1\n", 65) + kLaunch), "plan.cu:65: let a64: the plan has more than 64 lets");
  EXPECT_EQ(ParseError(repeat("scratch a# = 1\n", 33) + kLaunch),
            "plan.cu:33: scratch a32: the plan has more than 32 scratch buffers");
  EXPECT_EQ(ParseError(repeat("define A# = 1\n", 65) + kLaunch),
            "plan.cu:65: define A64: the plan has more than 64 defines");
  EXPECT_EQ(ParseError(std::string(kLaunch) + " args=(x" + repeat(", x", 255) + ")"), "");
  EXPECT_EQ(ParseError(std::string(kLaunch) + " args=(x" + repeat(", x", 256) + ")"),
            "plan.cu:1: launch k: 257 arguments, more than 256");
  EXPECT_EQ(ParseError(repeat("\n", 1024)), "plan.cu: the plan has more than 1024 lines");
  EXPECT_EQ(ParseError("let a = " + std::string(20000, '1')).substr(0, 42),
            "plan.cu:1: the line has 20008 bytes, more ");
  EXPECT_NE(ParseError("let a = 1\n" + repeat("+ 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1 + 1\n", 200))
                .find("more than 4096"),
            std::string::npos);
  EXPECT_NE(ParseError("let a = 1\n" + repeat(std::string(1000, ' ') + "+ " + std::string(1000, '1') + "\n", 200))
                .find("more than 65536"),
            std::string::npos);
  EXPECT_NE(ParseError("let a = " + std::string(4000, '(')).find("nested more than 64"), std::string::npos);
}

TEST(Parse, WithoutADefinitionChecksWhatThePlanDeclares) {
  EXPECT_TRUE(Plan::Parse(Lines("launch k grid=(M) block=(1) args=(anything, i32(M))"), nullptr).ok());
  EXPECT_EQ(Explain(Plan::Parse(Lines("let a = 1\nlet a = 1"), nullptr).status()),
            "plan.cu:2: let a: \"a\" is already a let | choose another name");
}

TEST(Parse, StatementsDoNotContinueIntoAnotherFile) {
  std::vector<PlanLine> lines = {{"a.cu", 1, "launch k grid=(1) block=(1)"}, {"b.cu", 3, "args=(x)"}};
  EXPECT_EQ(
      Explain(Plan::Parse(lines, nullptr).status()),
      "b.cu:3: \"args=(x)\" starts no statement | a statement starts with let, scratch, memset, define or launch");
}

}  // namespace
}  // namespace solstice::plan
