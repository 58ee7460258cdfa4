// The ten kernels of the comparison: launch geometry, arguments in order, and what their inputs hold. A kernel's source
// is kernels/NAME.cu and its entry has the same name. Sizes are chosen for tens of microseconds on an H200, far above
// what a launch costs.

#ifndef SOLSTICE_TESTS_DEVICE_NVCC_COMPARE_KERNELS_H_
#define SOLSTICE_TESTS_DEVICE_NVCC_COMPARE_KERNELS_H_

#include <cstddef>
#include <vector>

namespace nvcc_compare {

enum class Fill {
  kOutput,     // poisoned before the launch, compared after it
  kF32,        // uniform in [-1, 1)
  kBf16,       // uniform in [-1, 1)
  kF16,        // uniform in [-1, 1)
  kBits,       // any bits
  kPositions,  // int32, 0, 1, 2 ...
};

struct Argument {
  enum Kind { kBuffer, kInt, kFloat } kind;
  Fill fill;
  size_t bytes;
  double value;
};

inline Argument Buffer(Fill fill, size_t bytes) { return {Argument::kBuffer, fill, bytes, 0}; }
inline Argument Output(size_t bytes) { return {Argument::kBuffer, Fill::kOutput, bytes, 0}; }
inline Argument Int(int value) { return {Argument::kInt, Fill::kBits, 0, static_cast<double>(value)}; }
inline Argument Float(float value) { return {Argument::kFloat, Fill::kBits, 0, value}; }

struct Kernel {
  const char* name;
  unsigned grid[3];
  unsigned block[3];
  std::vector<Argument> arguments;
};

inline std::vector<Kernel> Kernels() {
  constexpr size_t kMiB = 1 << 20;
  return {
      {"rmsnorm",
       {4096, 1, 1},
       {32, 4, 1},
       {Buffer(Fill::kBf16, 64 * kMiB), Buffer(Fill::kBf16, 4096), Output(64 * kMiB), Int(16384), Float(1e-6f)}},
      {"fused_add_rmsnorm",
       {8192, 1, 1},
       {256, 1, 1},
       {Buffer(Fill::kBf16, 64 * kMiB), Buffer(Fill::kBf16, 64 * kMiB), Buffer(Fill::kBf16, 8192), Output(64 * kMiB),
        Output(64 * kMiB), Int(2048), Float(1e-5f)}},
      {"softmax", {8192, 1, 1}, {256, 1, 1}, {Buffer(Fill::kF32, 128 * kMiB), Output(128 * kMiB), Int(4096)}},
      {"transpose",
       {128, 128, 1},
       {32, 8, 1},
       {Buffer(Fill::kF32, 64 * kMiB), Output(64 * kMiB), Int(4096), Int(4096)}},
      {"reduce", {528, 1, 1}, {512, 1, 1}, {Buffer(Fill::kF32, 256 * kMiB), Output(528 * 4), Int(16 * kMiB)}},
      {"gelu", {32768, 1, 1}, {256, 1, 1}, {Buffer(Fill::kBf16, 128 * kMiB), Output(128 * kMiB), Int(8 * kMiB)}},
      {"gemm_f32",
       {16, 16, 1},
       {256, 1, 1},
       {Buffer(Fill::kF32, 4 * kMiB), Buffer(Fill::kF32, 4 * kMiB), Output(4 * kMiB), Int(1024), Int(1024)}},
      {"gemm_mma",
       {32, 32, 1},
       {128, 1, 1},
       {Buffer(Fill::kF16, 8 * kMiB), Buffer(Fill::kF16, 8 * kMiB), Output(8 * kMiB), Int(2048), Int(2048)}},
      {"rope",
       {8192, 1, 1},
       {64, 4, 1},
       {Buffer(Fill::kBf16, 64 * kMiB), Buffer(Fill::kPositions, 8192 * 4), Output(64 * kMiB), Int(32)}},
      {"histogram", {1056, 1, 1}, {256, 1, 1}, {Buffer(Fill::kBits, 64 * kMiB), Output(1056 * 1024), Int(4 * kMiB)}},
  };
}

}  // namespace nvcc_compare

#endif  // SOLSTICE_TESTS_DEVICE_NVCC_COMPARE_KERNELS_H_
