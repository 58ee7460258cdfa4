#include "runtime/compile/scan.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace solstice::compile {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(Scan, FindsLaunches) {
  EXPECT_THAT(Scan("void f() {\n  k<<<1, 2>>>();\n}\n").launches, ElementsAre(2));
  EXPECT_THAT(Scan("k <<<\n1,2>>>();\n/* x\ny */ k<<<1,1>>>();").launches, ElementsAre(1, 4));
  // Only certainly inactive branches are left out.
  EXPECT_THAT(Scan("#ifdef HOST\nk<<<1,1>>>();\n#endif").launches, ElementsAre(2));
  EXPECT_THAT(Scan("#if A > 1\nk<<<1,1>>>();\n#else\nk<<<1,1>>>();\n#endif").launches, ElementsAre(2, 4));
  EXPECT_THAT(Scan("#ifdef __CUDACC_RTC__\nk<<<1,1>>>();\n#endif").launches, ElementsAre(2));
}

TEST(Scan, SkipsTextThatIsNoCode) {
  for (const char* text : {"// k<<<1,1>>>()\n",
                           "// spliced \\\nk<<<1,1>>>()\n",
                           "/* k<<<1,1>>>() */",
                           "const char* s = \"k<<<1,1>>>\";",
                           "const char* s = R\"(k<<<1,1>>>)\";",
                           "const char* s = u8R\"x(a)\" k<<<1,1>>> )x\";",
                           "const char* s = \"\\\"<<<\";",
                           "int x = 1'000; const char* s = \"'<<<'\";",
                           "a << b; c <<= d; x<y<z;",
                           "#define LAUNCH k<<<1,1>>>()\n",
                           "#define LAUNCH \\\n  k<<<1,1>>>()\n",
                           "#if 0\nk<<<1,1>>>();\n#endif\n",
                           "#ifndef __CUDACC_RTC__\nk<<<1,1>>>();\n#endif\n",
                           "#if !defined(__CUDACC_RTC__)\nk<<<1,1>>>();\n#endif\n",
                           "#if !defined __CUDA_ARCH__ && defined(X)\nk<<<1,1>>>();\n#endif\n",
                           "#ifdef __CUDACC_RTC__\n#else\nk<<<1,1>>>();\n#endif\n",
                           "#if 1\n#elif X\nk<<<1,1>>>();\n#endif\n",
                           "#if 0\n#if X\nk<<<1,1>>>();\n#endif\n#endif\n",
                           "",
                           "\"unterminated k<<<",
                           "/* unterminated k<<<",
                           "R\"(unterminated k<<<",
                           "#",
                           "\\",
                           "'"}) {
    EXPECT_THAT(Scan(text).launches, IsEmpty()) << text;
  }
}

TEST(Scan, FindsIncludes) {
  std::string text =
      "#include <vector>\n  #  include \"a/b.cuh\" // x\n#include MACRO\n// #include <no>\n#if 0\n#include "
      "<no>\n#endif\n#include <unclosed\n";
  SourceScan scan = Scan(text);
  ASSERT_EQ(scan.includes.size(), 2u);
  EXPECT_EQ(scan.includes[0].name, "vector");
  EXPECT_TRUE(scan.includes[0].angled);
  EXPECT_EQ(scan.includes[1].name, "a/b.cuh");
  EXPECT_EQ(scan.includes[1].line, 2);
  EXPECT_FALSE(scan.includes[1].angled);
  EXPECT_EQ(text.substr(scan.includes[1].offset, 7), "a/b.cuh");
}

TEST(Scan, NamesKernels) {
  SourceScan scan = Scan(
      "extern \"C\" __global__ void a(int);\nnamespace x { namespace y::z {\ntemplate <class T, int N>\n"
      "__global__ __launch_bounds__(128, 2) void b(T*) { if (1) { } }\n} __global__ void c() {} }\n"
      "static __global__ void __launch_bounds__(64) d() {}\n__device__ int e(int) { return 1; }\n");
  ASSERT_EQ(scan.kernels.size(), 4u);
  EXPECT_EQ(scan.kernels[0].name, "a");
  EXPECT_FALSE(scan.kernels[0].is_template);
  EXPECT_EQ(scan.kernels[1].name, "x::y::z::b");
  EXPECT_TRUE(scan.kernels[1].is_template);
  EXPECT_EQ(scan.kernels[1].line, 4);
  EXPECT_EQ(scan.kernels[2].name, "x::c");
  EXPECT_EQ(scan.kernels[3].name, "d");
}

TEST(ResolvePath, StaysInside) {
  EXPECT_EQ(ResolvePath("a/b.cuh", "c.cuh"), "a/c.cuh");
  EXPECT_EQ(ResolvePath("a/b.cuh", "../c.cuh"), "c.cuh");
  EXPECT_EQ(ResolvePath("k.cu", "./x/./y.h"), "x/y.h");
  EXPECT_EQ(ResolvePath("k.cu", "../x.h"), "");
  EXPECT_EQ(ResolvePath("k.cu", "/etc/passwd"), "");
}

}  // namespace
}  // namespace solstice::compile
