// What the compiler makes of CUDA's own headers, against plain loops: testdata/*.cu became the .ptx beside it.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/base/file.h"
#include "runtime/device/emulator/emulator_test_support.h"

namespace solstice::device {
namespace {

using ::testing::HasSubstr;
using Words = std::vector<uint32_t>;

std::string TextOf(const std::string& name) {
  auto text = base::ReadFile(SOLSTICE_SOURCE_DIR "/runtime/device/emulator/testdata/" + name, 1 << 20);
  EXPECT_TRUE(text.ok());
  return text.ok() ? *text : "";
}

// cuda::pipeline and cuda::memcpy_async: cp.async and mbarriers of the library.
TEST(Library, PipelineOfAsynchronousCopies) {
  Machine machine(TextOf("pipeline.ptx"));
  constexpr int kRows = 37, kColumns = 256;
  std::vector<float> x(kRows * kColumns), expected(kColumns);
  for (int i = 0; i < kRows * kColumns; ++i) {
    x[i] = static_cast<float>(i * 31 % 1009);
    expected[i % kColumns] += x[i];
  }
  const Address px = machine.Buffer(x, "x"), py = machine.Buffer(std::vector<float>(kColumns));
  const RunOutcome outcome = machine.Run("sum_columns", 2, 128, {Argument(px), Argument(py), Argument(kRows)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  EXPECT_EQ(machine.Read<float>(py, kColumns), expected);
}

TEST(Library, BarriersAndAtomics) {
  Machine machine(TextOf("pipeline.ptx"));
  for (const int threads : {32, 96, 256}) {
    uint32_t odd = 0;
    for (int t = 1; t < threads; t += 2) odd += static_cast<uint32_t>(t);
    const Address py = machine.Buffer(Words(3)), pz = machine.Buffer(std::vector<uint64_t>(1));
    const RunOutcome outcome = machine.Run("barriers", 3, threads, {Argument(py), Argument(pz)});
    ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
    EXPECT_EQ(machine.Read<uint32_t>(py, 3), Words(3, 32 * odd));
    EXPECT_EQ(machine.Read<uint64_t>(pz, 1)[0], 32 * odd);
  }
}

// cub's radix sort, scan and reduction of a block.
TEST(Library, BlockPrimitives) {
  Machine machine(TextOf("blocks.ptx"));
  Words x(256);
  for (uint32_t i = 0; i < 256; ++i) x[i] = (i * 2654435761u) ^ (i % 7 << 29);
  const Address px = machine.Buffer(x, "x"), py = machine.Buffer(Words(256)), pz = machine.Buffer(Words(128)),
                ps = machine.Buffer(Words(1));
  const RunOutcome outcome = machine.Run("blocks", 1, 128, {Argument(px), Argument(py), Argument(pz), Argument(ps)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  Words sorted = x, sums(x.begin(), x.begin() + 128);
  std::sort(sorted.begin(), sorted.end());
  EXPECT_EQ(machine.Read<uint32_t>(ps, 1)[0], *std::max_element(sums.begin(), sums.end()));
  std::partial_sum(sums.begin(), sums.end(), sums.begin());
  EXPECT_EQ(machine.Read<uint32_t>(py, 256), sorted);
  EXPECT_EQ(machine.Read<uint32_t>(pz, 128), sums);
}

int Fibonacci(int n) { return n < 2 ? n : Fibonacci(n - 1) + Fibonacci(n - 2); }

int Language(int i, int n) {
  uint32_t r = static_cast<uint32_t>(i * ((i * 7 + n) & 15));
  switch ((i + n) % 9) {
    case 0:
      r += 3;
      break;
    case 1:
      r *= 5;
      break;
    case 2:
      r ^= 0x55;
      break;
    case 3:
      r = static_cast<uint32_t>(__builtin_popcount(r));
      break;
    case 4: {
      uint32_t reversed = 0;
      for (int bit = 0; bit < 32; ++bit) reversed |= (r >> bit & 1) << (31 - bit);
      r = reversed >> 5;
      break;
    }
    case 5:
      r -= static_cast<uint32_t>(n);
      break;
    case 6:
      r = r << 2 | 1;
      break;
    case 7:
      r = ~r;
      break;
    default:
      r = r == 0 ? 32 : static_cast<uint32_t>(__builtin_clz(r));
  }
  const int x = i & 15;
  const int called[] = {2 * x, x * x, -x, Fibonacci(x)};
  return static_cast<int>(r + static_cast<uint32_t>(called[i & 3]));
}

// Recursion, function pointers, a switch, local arrays, printf, assert, the clock and a sleep.
TEST(Library, Language) {
  Machine machine(TextOf("language.ptx"));
  const int n = 5, threads = 2 * 96;
  const Address py = machine.Buffer(std::vector<int>(threads));
  const RunOutcome outcome = machine.Run("language", 2, 96, {Argument(py), Argument(n)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  const std::vector<int> got = machine.Read<int>(py, threads);
  for (int i = 0; i < threads; ++i) EXPECT_EQ(got[i], Language(i, n)) << i;
  EXPECT_EQ(outcome.device_output(), base::StrCat("first ", Language(0, n), " done  1.50\n"));
}

// The code of a small float format that is nearest to x, ties to even, the largest one beyond.
uint32_t Nearest(float x, int mantissa, int bias, uint32_t largest, uint32_t sign) {
  auto value = [&](uint32_t code) {
    const int exponent = static_cast<int>(code >> mantissa);
    const uint32_t fraction = code & ((1u << mantissa) - 1);
    return exponent == 0 ? std::ldexp(static_cast<double>(fraction), 1 - bias - mantissa)
                         : std::ldexp(static_cast<double>(fraction + (1u << mantissa)), exponent - bias - mantissa);
  };
  const double magnitude = std::fabs(x);
  uint32_t best = 0;
  for (uint32_t code = 1; code <= largest; ++code) {
    const double closer = std::fabs(value(code) - magnitude) - std::fabs(value(best) - magnitude);
    if (closer < 0 || (closer == 0 && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(x) ? sign : 0);
}

float ValueOf(uint32_t code, int mantissa, int bias, uint32_t sign) {
  const uint32_t magnitude = code & (sign - 1);
  const int exponent = static_cast<int>(magnitude >> mantissa);
  const double fraction = magnitude & ((1u << mantissa) - 1);
  const double value = exponent == 0 ? std::ldexp(fraction, 1 - bias - mantissa)
                                     : std::ldexp(fraction + std::ldexp(1, mantissa), exponent - bias - mantissa);
  return static_cast<float>(code & sign ? -value : value);
}

// To the eight bits of precision of bf16, ties to even.
double ToBrain(double x) {
  int exponent;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8);
}

uint32_t BrainBits(double x) { return __builtin_bit_cast(uint32_t, static_cast<float>(x)) >> 16; }

// cuda_fp8.h, cuda_fp4.h and cuda_bf16.h, for a GPU that converts in hardware.
TEST(Library, NarrowFormats) {
  Machine machine(TextOf("narrow.ptx"));
  std::vector<float> x(128);
  for (int i = 0; i < 128; ++i) x[i] = static_cast<float>(i * 29 % 128 - 60) * std::ldexp(0.375f, i % 13 - 6);
  const Address px = machine.Buffer(x, "x"), py = machine.Buffer(Words(64 * 8));
  const RunOutcome outcome = machine.Run("narrow", 1, 64, {Argument(px), Argument(py)});
  ASSERT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason();
  const Words got = machine.Read<uint32_t>(py, 64 * 8);
  for (int i = 0; i < 64; ++i) {
    const float a = x[i], b = x[i + 64];
    const uint32_t p[] = {Nearest(a, 3, 7, 0x7e, 0x80), Nearest(b, 3, 7, 0x7e, 0x80)};
    const uint32_t q[] = {Nearest(a, 2, 15, 0x7b, 0x80), Nearest(b, 2, 15, 0x7b, 0x80)};
    const uint32_t f[] = {Nearest(a, 1, 1, 0x7, 0x8), Nearest(b, 1, 1, 0x7, 0x8)};
    auto sum = [](const uint32_t(&codes)[2], int mantissa, int bias, uint32_t sign) {
      return static_cast<uint32_t>(
          F(ValueOf(codes[0], mantissa, bias, sign) + ValueOf(codes[1], mantissa, bias, sign)));
    };
    int exponent;
    const bool power = std::frexp(std::fabs(a), &exponent) == 0.5;  // a = 0.5 * 2^exponent
    const uint32_t scale = a == 0 ? 0 : static_cast<uint32_t>(exponent + 127 - (power ? 1 : 0));
    auto fused = [](float v) {
      const double h = ToBrain(v);
      return BrainBits(std::max(ToBrain(h * h - h), 0.0));
    };
    const uint32_t expected[] = {p[1] << 8 | p[0],
                                 q[1] << 8 | q[0],
                                 f[1] << 4 | f[0],
                                 sum(p, 3, 7, 0x80),
                                 sum(q, 2, 15, 0x80),
                                 sum(f, 1, 1, 8),
                                 scale,
                                 fused(b) << 16 | fused(a)};
    for (int k = 0; k < 8; ++k) EXPECT_EQ(got[i * 8 + k], expected[k]) << a << " " << b << " " << k;
  }
}

}  // namespace
}  // namespace solstice::device
