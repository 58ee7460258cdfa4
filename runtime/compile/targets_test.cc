// Every target that the service compiles for, with code that is that target's own. Nothing here is run.
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/strings.h"
#include "runtime/compile/test_compiler.h"

namespace solstice::compile {
namespace {

using ::testing::HasSubstr;

constexpr char kHopper[] = "wgmma.fence.sync.aligned;";
constexpr char kBlackwell[] = "tcgen05.fence::before_thread_sync;";

struct Target {
  const char *arch, *own, *foreign;
  int number;
  bool specific;  // of one chip: "a", not "f"
};

const Target kTargets[] = {{"sm_90a", kHopper, kBlackwell, 900, true},
                           {"sm_100a", kBlackwell, kHopper, 1000, true},
                           {"sm_100f", kBlackwell, kHopper, 1000, false},
                           {"sm_103a", kBlackwell, kHopper, 1030, true},
                           {"sm_103f", kBlackwell, kHopper, 1030, false}};

v1::internal::Program Compile(const Target& target, const char* instruction) {
  TestRequest request;
  request.arch = target.arch;
  request.text = base::StrCat("static_assert(__CUDA_ARCH__ == ", target.number, ");\n",
                              "#if defined(__CUDA_ARCH_SPECIFIC__) || defined(__CUDA_ARCH_FEAT_SM90_ALL)\n",
                              "constexpr bool specific = true;\n#else\nconstexpr bool specific = false;\n#endif\n",
                              "static_assert(specific == ", target.specific, ");\n",
                              "extern \"C\" __global__ void __launch_bounds__(128) k(float* y) {\n  asm volatile(\"",
                              instruction, "\" ::: \"memory\");\n  y[threadIdx.x] = 1;\n}\n");
  return CompileTest(request);
}

TEST(Targets, EachCompilesItsOwnInstructionsAndNoOthers) {
  for (const Target& target : kTargets) {
    SCOPED_TRACE(target.arch);
    EXPECT_TRUE(CheckArch(target.arch).ok());
    v1::internal::Program own = Compile(target, target.own);
    EXPECT_EQ(own.verdict(), v1::PASSED) << own.reason() << "\n" << own.log();
    EXPECT_THAT(own.ptx(), HasSubstr(base::StrCat(".target ", target.arch)));
    EXPECT_THAT(own.ptx(), HasSubstr(target.own));
    EXPECT_EQ(own.arch(), target.arch);
    EXPECT_FALSE(own.cubin().empty());
    v1::internal::Program foreign = Compile(target, target.foreign);
    EXPECT_EQ(foreign.verdict(), v1::COMPILE_ERROR);
    EXPECT_THAT(foreign.reason(), HasSubstr(target.arch));
  }
}

TEST(Targets, OthersAreRefused) {
  for (const char* arch : {"", "sm_90", "sm_100", "sm_90f", "sm_103", "sm_120a", "compute_90a", "sm_90a "}) {
    EXPECT_EQ(CheckArch(arch).code(), absl::StatusCode::kInvalidArgument) << arch;
  }
}

}  // namespace
}  // namespace solstice::compile
