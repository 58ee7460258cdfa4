// What the trusted kernels are launched with and what they leave. Host and device compile this same text: numbers of
// fixed size only, addresses as uint64_t. Each kernel takes one of these structs by value.
#pragma once

#include <cstdint>

namespace solstice::bulk {

// The values of v1::DType.
enum class DataType : int32_t {
  kFloat64 = 1,
  kFloat32 = 2,
  kFloat16 = 3,
  kBfloat16 = 4,
  kFloat8E4m3 = 5,
  kFloat8E5m2 = 6,
  kFloat4E2m1 = 7,
  kInt64 = 8,
  kInt32 = 9,
  kInt16 = 10,
  kInt8 = 11,
  kUint8 = 12,
  kBool = 13,
};

inline constexpr int kThreads = 256;  // of a block, but for solstice_slices

// solstice_content fills or checks: with words of (seed, stream), or a repeated pattern.
struct ContentParameters {
  uint64_t seed = 0, stream = 0;
  uint64_t pattern = 0;  // 8 bytes, where `is_pattern`
  uint64_t address = 0;
  int64_t bytes = 0;
  uint64_t damage = 0;  // a DamageResult; 0: fills
  int32_t is_pattern = 0;
  int32_t unused = 0;
};

struct DamageResult {
  uint64_t bytes;
  uint64_t from_end;  // bytes - offset of the first damaged one; 0 if there is none
  uint64_t end;       // offset of the last damaged one + 1
};

struct FingerprintParameters {
  uint64_t key = 0;
  uint64_t address = 0;
  int64_t bytes = 0;
  uint64_t result = 0;  // a FingerprintResult
};

struct FingerprintResult {
  uint64_t sum[2];
};

// solstice_normals, solstice_softmax, solstice_elements, solstice_mend_coins.
struct InputParameters {
  uint64_t seed = 0, stream = 0;
  uint64_t hole_stream = 0;  // of a perturbed causal mask
  uint64_t address = 0;
  int64_t values = 0;  // elements; for four bits twice as many
  int64_t last_dimension = 1;
  uint64_t one = 0, lowest = 0;  // bits of masks' values; zero's are 0
  double scale = 1;              // generate::WeightScale
  uint64_t result = 0;           // coins: a CoinResult
  int32_t distribution = 0;
  DataType dtype = DataType::kFloat32;
  int32_t perturbed = 0;
  int32_t element_bytes = 0;
};

struct CoinResult {
  uint64_t heads;
};

// solstice_compare, solstice_locate, solstice_slices.
struct CompareParameters {
  uint64_t actual = 0, expected = 0;
  int64_t values = 0;
  double atol = 0, rtol = 0;
  int64_t slice = 1;    // solstice_slices: values of one
  uint64_t result = 0;  // a CompareResult; of solstice_locate, kLocated positions for each segment
  int64_t segment = 0;  // solstice_locate: values of one; a multiple of 32
  DataType dtype = DataType::kFloat32;
  int32_t allow_negative_inf = 0;
};

struct CompareResult {
  uint64_t mismatched;
  uint64_t max_absolute, max_relative;  // bits of the errors of finite values
  // Set where there is one.
  uint64_t not_finite, actual_nonzero, expected_nonzero;
  uint64_t worst_slice_mismatched;  // solstice_slices
};

// solstice_stand_in writes to these, in whole chunks of sixteen bytes.
struct StandInParameters {
  static constexpr int kMostRanges = 64;
  int64_t count = 0;
  struct {
    uint64_t address;
    int64_t bytes;
  } ranges[kMostRanges] = {};
};

inline constexpr int kLocated = 8;  // first mismatches of a segment, -1 where there are fewer

}  // namespace solstice::bulk
