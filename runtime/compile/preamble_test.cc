#include "runtime/compile/preamble.h"

#include "gtest/gtest.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/scan.h"

namespace solstice::compile {
namespace {

Preamble Find(std::string_view text, const std::vector<std::string>& paths = {"kernel.cu"}) {
  return FindPreamble(text, "kernel.cu", paths);
}

TEST(Preamble, EndsAfterTheLastCostlyHeader) {
  constexpr std::string_view kText =
      "// kernel\n\n/* of two\n   lines */ #include <cuda_fp16.h>\r\n"
      "  #  include \"cooperative_groups.h\"  // groups\n"
      "#include <cuda/std/atomic>\n"
      "#include <cuda_bf16.h>\nint x;\n";
  Preamble found = Find(kText);
  EXPECT_EQ(found.text, "#include <cuda_fp16.h>\n#include \"cooperative_groups.h\"\n#include <cuda/std/atomic>\n");
  EXPECT_EQ(kText.substr(found.end), "#include <cuda_bf16.h>\nint x;\n");
  EXPECT_EQ(found.line, 7);
}

TEST(Preamble, NothingWithoutACostlyHeader) {
  for (const char* text : {"", "int x;\n", "#include <mma.h>\n#include <cuda_fp16.h>\n#include <type_traits>\n",
                           "#include <cuda_fp16.h>", "#include <cudart/x.h>\n"}) {
    EXPECT_EQ(Find(text).text, "") << text;
  }
}

TEST(Preamble, AnythingElseBeforeAHeaderEndsIt) {
  for (const char* before : {"int x;\n",
                             "#define cooperative_groups other\n",
                             "#pragma once\n",
                             "#if 1\n",
                             "#undef X\n",
                             "// goes on \\\n",
                             "\\\n",
                             "/* no end\n",
                             "#include <mma.h> int x;\n",
                             "#include <mma.h> /* two\n lines */\n",
                             "#include MACRO\n",
                             "#include <../secret.h>\n",
                             "#include </etc/passwd>\n",
                             "#include <a b.h>\n",
                             "#include \"x.h\" \\\n",
                             "\f\n",
                             "#include_next <mma.h>\n",
                             "#include <mma.h> // on \\\n",
                             "%:include <mma.h>\n",
                             "?\?=include <mma.h>\n"}) {
    EXPECT_EQ(Find(std::string(before) + "#include <cooperative_groups.h>\n").text, "") << before;
  }
  EXPECT_EQ(Find("#include <cooperative_groups.h>").text, "") << "no line end";
}

TEST(Preamble, AFileOfTheSubmissionEndsIt) {
  constexpr std::string_view kText = "#include <cuda/barrier>\n#include \"tile.h\"\n#include <cuda/ptx>\n";
  EXPECT_EQ(Find(kText, {"kernel.cu"}).line, 4);
  EXPECT_EQ(Find(kText, {"kernel.cu", "tile.h"}).line, 2);
  EXPECT_EQ(Find(kText, {"kernel.cu", "cuda/barrier"}).text, "");
  // Found relative to the including file.
  EXPECT_EQ(FindPreamble(kText, "src/kernel.cu", {"src/tile.h"}).line, 2);
}

TEST(Preamble, IsBounded) {
  std::string text;
  for (int i = 0; i < 1000; ++i) text += "#include <cuda/std/array>\n";
  EXPECT_EQ(Find(text).line, 65);
}

v1::internal::ProgramSource Source(const std::string& text, const std::vector<std::string>& options) {
  v1::internal::ProgramSource source;
  v1::SourceFile* file = source.add_sources();
  file->set_path("kernel.cu");
  file->set_content(text);
  for (const std::string& option : options) source.add_options(option);
  source.add_defines("N=4");
  source.add_name_expressions("k");
  source.set_arch("sm_100f");
  return source;
}

TEST(SharedHeaders, HoldNothingOfASubmissionButHeaderNamesAndOptions) {
  auto headers = SharedHeaders(Source("\xEF\xBB\xBF// secret\n#include <cuda/ptx>\nint secret;\n",
                                      {"-std=c++20", "-DSECRET=1", "-maxrregcount=64", "--use_fast_math"}));
  ASSERT_EQ(headers.sources_size(), 1);
  EXPECT_EQ(headers.sources(0).content(), "#include <cuda/ptx>\n");
  EXPECT_EQ(headers.arch(), "sm_100f");
  EXPECT_EQ(headers.DebugString().find("secret"), std::string::npos);
  ASSERT_EQ(headers.options_size(), 2);
  EXPECT_EQ(headers.options(0), "-std=c++20");
  EXPECT_EQ(headers.options(1), "--use_fast_math");
  EXPECT_EQ(headers.defines_size() + headers.name_expressions_size(), 0);
  // Made of themselves they are the same.
  EXPECT_EQ(SharedHeaders(headers).SerializeAsString(), headers.SerializeAsString());
}

TEST(SharedHeaders, AreEmptyWhereNothingIsWorthSharing) {
  EXPECT_TRUE(SharedHeaders(Source("#include <mma.h>\n", {})).sources().empty());
  auto source = Source("#include <cuda/ptx>\n", {});
  source.set_main_source(1);
  EXPECT_TRUE(SharedHeaders(source).sources().empty());
}

TEST(Identifiers, AllThatCouldBeAMacro) {
  auto words = Identifiers(
      "// NOT\n#if defined(A) && B2 // maybe C\nint d /* NOT */ = f(\"NOT // x\", e'z');\n#define G(h) h##_i\n");
  EXPECT_EQ(words, (std::vector<std::string_view>{"if", "defined", "A", "B2", "int", "d", "f", "e", "define", "G", "h",
                                                  "h", "_i"}));
}

}  // namespace
}  // namespace solstice::compile
