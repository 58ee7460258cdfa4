#include "runtime/compile/cubin.h"

#include <cstring>

#include "gtest/gtest.h"
#include "runtime/compile/test_compiler.h"

namespace solstice::compile {
namespace {

const std::string& RealCubin() {
  static const std::string* cubin = new std::string(
      CompileTest(
          "__constant__ int c[8] = {1};\n__global__ void m(float* y) { y[0] = y[1] / y[2] + c[threadIdx.x]; }\n" +
          kAffine)
          .cubin());
  return *cubin;
}

TEST(ReadCubin, FindsEveryKernel) {
  auto kernels = ReadCubin(RealCubin());
  ASSERT_TRUE(kernels.ok()) << kernels.status();
  ASSERT_EQ(kernels->size(), 2u);
  ASSERT_EQ(kernels->count("k"), 1u);
  ASSERT_EQ(kernels->count("_Z1mPf"), 1u);
  EXPECT_GT(kernels->at("k").registers, 0);
  EXPECT_GT(kernels->at("_Z1mPf").registers, 0);
  EXPECT_EQ(kernels->at("k").constant_bytes, 32);
}

TEST(ReadCubin, RefusesWhatIsNone) {
  for (const std::string& text : {std::string(),
                                  std::string("\x7f"
                                              "ELF"),
                                  std::string(64, '\0'),
                                  std::string("\x7f"
                                              "ELF\2\1") +
                                      std::string(58, '\xff')}) {
    EXPECT_EQ(ReadCubin(text).status().code(), absl::StatusCode::kDataLoss);
  }
}

// Neither crashes nor reads outside (the sanitizer builds watch).
TEST(ReadCubin, SurvivesTruncation) {
  const std::string& cubin = RealCubin();
  for (size_t size = 0; size < cubin.size(); size += 1 + size / 97) {
    std::string part(cubin.data(), size);
    (void)ReadCubin(part).ok();
  }
}

TEST(ReadCubin, SurvivesMutation) {
  uint64_t state = 88172645463325252u;
  auto next = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
  };
  const std::string& cubin = RealCubin();
  ASSERT_GT(cubin.size(), 64u);
  uint64_t table = 0;
  std::memcpy(&table, cubin.data() + 0x28, 8);
  int parsed = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string copy = cubin;
    for (int i = 0; i < 8; ++i) {
      // Half of the damage goes where the structure is.
      size_t at = i % 2 == 0 ? next() % copy.size() : std::min<size_t>(table + next() % 2048, copy.size() - 1);
      if (i % 4 == 3) at = next() % 64;
      copy[at] = static_cast<char>(next());
    }
    parsed += ReadCubin(copy).ok();
  }
  EXPECT_LT(parsed, 3000);
}

TEST(ReadPtxasLog, ReadsSpillsAndShared) {
  auto reports = ReadPtxasLog(
      "ptxas info    : 8 bytes gmem\nptxas info    : Compiling entry function 'k' for 'sm_90a'\nptxas info    : "
      "Function properties for k\n"
      "ptxas         .     24 bytes stack frame, 20 bytes spill stores, 28 bytes spill loads\nptxas info    : Used 24 "
      "registers, used 1 barriers, 24 bytes cumulative stack size, 400 bytes smem\n"
      "ptxas info    : Function properties for helper\nptxas         .     8 bytes stack frame, 0 bytes spill stores, "
      "0 bytes spill loads\n");
  ASSERT_EQ(reports.count("k"), 1u);
  EXPECT_EQ(reports["k"].registers, 24);
  EXPECT_EQ(reports["k"].stack_bytes, 24);
  EXPECT_EQ(reports["k"].spill_store_bytes, 20);
  EXPECT_EQ(reports["k"].spill_load_bytes, 28);
  EXPECT_EQ(reports["k"].shared_bytes, 400);
  EXPECT_EQ(reports["helper"].stack_bytes, 8);
  EXPECT_TRUE(ReadPtxasLog("").empty());
  EXPECT_TRUE(ReadPtxasLog("Used 5 registers\n10 bytes stack frame").empty());
}

}  // namespace
}  // namespace solstice::compile
