#include "runtime/compile/diagnose.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/strings.h"

namespace solstice::compile {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr char kLog[] =
    "kernel.cu(2): warning #177-D: variable \"a\" was declared but never referenced\n  int a;\n      ^\n\n"
    "inc/x.cuh(7): error: identifier \"q\" is undefined\n  q;\n  ^\n\n1 error detected in the compilation of "
    "\"kernel.cu\".\n";

TEST(ParseDiagnostics, FindsPlaceAndSeverity) {
  auto list = ParseDiagnostics(kLog);
  ASSERT_EQ(list.size(), 2u);
  EXPECT_FALSE(list[0].error);
  EXPECT_EQ(list[0].file, "kernel.cu");
  EXPECT_EQ(list[0].line, 2);
  EXPECT_TRUE(list[1].error);
  EXPECT_EQ(list[1].file, "inc/x.cuh");
  EXPECT_EQ(list[1].message, "identifier \"q\" is undefined");
  EXPECT_EQ(list[0].block.size() + list[1].block.size(), sizeof kLog - 1);
  auto link = ParseDiagnostics(
      "ptxas application ptx input, line 23; error   : Unknown modifier '.bar'\nptxas fatal   : Ptx assembly "
      "aborted\nptxas info    : 0 bytes gmem\n");
  ASSERT_EQ(link.size(), 2u);
  EXPECT_TRUE(link[0].in_ptx);
  EXPECT_EQ(link[0].line, 23);
  EXPECT_EQ(link[0].message, "Unknown modifier '.bar'");
}

TEST(CutLog, KeepsErrorsHeadAndTail) {
  CutText whole = CutLog(kLog, 4096);
  EXPECT_EQ(whole.text, kLog);
  EXPECT_EQ(whole.dropped, 0);
  std::string log;
  for (int i = 0; i < 500; ++i)
    log += base::StrCat("k.cu(", i, "): warning #177-D: \xC3\xA4\xC3\xA4 unused ", i, "\n\n");
  log += "k.cu(999): error: the one that counts\n\n";
  for (int i = 0; i < 100; ++i) log += base::StrCat("k.cu(", i, "): warning #1-D: last\n");
  for (int64_t limit : {0, 10, 63, 64, 100, 777, 1000, 4097}) {
    CutText cut = CutLog(log, limit);
    EXPECT_LE(static_cast<int64_t>(cut.text.size()), limit);
    EXPECT_TRUE(base::IsValidUtf8(cut.text)) << limit;
    EXPECT_EQ(cut.bytes, static_cast<int64_t>(log.size()));
    EXPECT_GT(cut.dropped, 0);
    if (limit < 777) continue;
    EXPECT_THAT(cut.text, StartsWith("k.cu(999): error: the one that counts"));
    EXPECT_THAT(cut.text, HasSubstr(base::StrCat("[... ", cut.dropped, " bytes dropped ...]")));
    std::string marker = base::StrCat("\n[... ", cut.dropped, " bytes dropped ...]\n");
    EXPECT_EQ(cut.text.size() - marker.size() + cut.dropped, log.size());
    EXPECT_THAT(cut.text, ::testing::EndsWith("last\n"));
  }
}

TEST(ScrubLog, HidesFoldersAndHeaderQuarrels) {
  std::string log =
      "/opt/cuda/include/cccl/cuda/std/cmath(356): warning #47-D: incompatible redefinition of macro \"NAN\" (declared "
      "at line 1)\n  x\n\n"
      "/opt/cuda/include/cuda_bf16.h(3): error: bad\n  see /opt/cuda/include/x.h\n"
      "kernel.cu(1): warning #47-D: incompatible redefinition of macro \"N\" (declared at line 1)\n";
  std::string scrubbed = ScrubLog(log, {"/opt/cuda/include", "/opt/cuda/include/cccl"});
  EXPECT_THAT(scrubbed, StartsWith("cuda_bf16.h(3): error: bad\n  see x.h\n"));
  EXPECT_THAT(scrubbed, HasSubstr("kernel.cu(1): warning #47-D"));
  EXPECT_THAT(scrubbed, Not(HasSubstr("/opt")));
}

TEST(ExplainLink, ResolvesPtxLines) {
  std::string ptx =
      ".version 9.0\n.entry k()\n{\n\t.loc\t1 4 0\n\tret;\n\t.loc\t2 9 3\n\tfoo.bar;\n}\n.entry "
      "l()\n{\n\tfoo;\n}\n\t.file\t1 \"k.cu\"\n\t.file\t2 \"h.cuh\"\n";
  EXPECT_EQ(SourceOfPtxLine(ptx, 7), "h.cuh:9");
  EXPECT_EQ(SourceOfPtxLine(ptx, 5), "k.cu:4");
  EXPECT_EQ(SourceOfPtxLine(ptx, 11), "");
  EXPECT_EQ(SourceOfPtxLine("", 7), "");
  Explanation e =
      ExplainLink("ptxas application ptx input, line 7; error   : Unknown modifier '.bar'\n", ptx, "sm_90a");
  EXPECT_EQ(e.reason, "h.cuh:9: Unknown modifier '.bar' (target sm_90a)");
}

TEST(NormalisePtxPaths, OnlyFileLines) {
  EXPECT_EQ(NormalisePtxPaths("\t.file\t1 \"/src/k.cu\"\n.b8 \"/src/k.cu\"\n\t.file\t2 \"/t/include/cccl/a\", 1, 2",
                              "/src", {"/t/include", "/t/include/cccl"}),
            "\t.file\t1 \"k.cu\"\n.b8 \"/src/k.cu\"\n\t.file\t2 \"/toolkit/include/a\", 1, 2");
}

TEST(ReplaceInvalidUtf8, KeepsTheRest) { EXPECT_EQ(ReplaceInvalidUtf8("a\xC3\xA4\xFFz\xC3"), "a\xC3\xA4?z?"); }

}  // namespace
}  // namespace solstice::compile
