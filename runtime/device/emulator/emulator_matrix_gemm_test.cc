// Matrix products written in CUDA, with nvcuda::wmma and with inline assembly, against plain loops.
#include <functional>
#include <type_traits>

#include "runtime/base/file.h"
#include "runtime/device/emulator/emulator_test_support.h"
#include "runtime/device/emulator/float_bits.h"

namespace solstice::device {
namespace {

constexpr int kSize = 64;

std::string TestData(const std::string& name) {
  auto text =
      base::ReadFile(std::string(SOLSTICE_SOURCE_DIR) + "/runtime/device/emulator/testdata/" + name + ".ptx", 1 << 20);
  EXPECT_TRUE(text.ok()) << text.status().ToString();
  return text.ok() ? *text : "";
}

// Small integers, so that every sum is exact in any order.
int ValueAt(int matrix, int row, int column) { return (row * 7 + column * 13 + matrix * 5 + row * column) % 9 - 4; }

template <typename T>
T Encode(int value) {
  if constexpr (std::is_same_v<T, uint16_t>) return DoubleToHalf(value);
  return static_cast<T>(value);
}

// c[i, j] = scale * the sum of a[i, l] b[l, j], or b[j, l].
template <typename T, typename C>
void CheckGemm(
    const std::string& file, const std::string& entry, int rows, int columns, int threads, int scale, bool transposed,
    std::function<T(int)> encode = Encode<T>,
    std::function<double(C)> decode = [](C x) { return static_cast<double>(x); }) {
  SCOPED_TRACE(entry);
  Machine machine(TestData(file));
  std::vector<T> a, b;
  for (int i = 0; i < kSize * kSize; ++i) {
    a.push_back(encode(ValueAt(0, i / kSize, i % kSize)));
    b.push_back(encode(ValueAt(1, i / kSize, i % kSize)));
  }
  const Address pa = machine.Buffer(a), pb = machine.Buffer(b), pc = machine.Buffer(std::vector<C>(kSize * kSize));
  LaunchParameters launch;
  launch.entry = entry;
  launch.grid[0] = kSize / columns;
  launch.grid[1] = kSize / rows;
  launch.block[0] = threads;
  launch.arguments = {Argument(pa), Argument(pb), Argument(pc)};
  const RunOutcome outcome = machine.Launch(launch);
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  const std::vector<C> c = machine.Read<C>(pc, kSize * kSize);
  for (int i = 0; i < kSize; ++i) {
    for (int j = 0; j < kSize; ++j) {
      int sum = 0;
      for (int l = 0; l < kSize; ++l) sum += ValueAt(0, i, l) * (transposed ? ValueAt(1, j, l) : ValueAt(1, l, j));
      ASSERT_EQ(decode(c[i * kSize + j]), scale * sum) << i << ", " << j;
    }
  }
}

const auto kFromHalf = [](uint16_t x) { return static_cast<double>(HalfToFloat(x)); };
const auto kToBrain = [](int x) { return DoubleToBrain(x); };

TEST(MatrixGemm, Wmma) {
  CheckGemm<uint16_t, float>("wmma_gemm", "wmma_half", 16, 16, 32, 2, false);
  CheckGemm<uint16_t, float>("wmma_gemm", "wmma_brain", 16, 16, 32, 2, true, kToBrain);
  CheckGemm<int8_t, int32_t>("wmma_gemm", "wmma_byte", 16, 16, 32, 2, true);
  CheckGemm<uint16_t, uint16_t>("wmma_gemm", "wmma_narrow", 8, 32, 32, 2, false, Encode<uint16_t>, kFromHalf);
  CheckGemm<float, float>("wmma_gemm", "wmma_tf32", 16, 16, 32, 2, true);
  CheckGemm<double, double>("wmma_gemm", "wmma_double", 8, 8, 32, 2, true);
}

TEST(MatrixGemm, InlineAssembly) {
  CheckGemm<uint16_t, uint16_t>("mma_gemm", "mma_half", 64, 64, 128, 1, true, Encode<uint16_t>, kFromHalf);
  CheckGemm<int8_t, int32_t>("mma_gemm", "mma_byte", 16, 8, 32, 1, true);
}

}  // namespace
}  // namespace solstice::device
