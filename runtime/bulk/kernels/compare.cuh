// Comparison of two tensors by the rules of runtime/verify: what decides, and the numbers. Words for what fails are the
// host's.
#pragma once

#include "runtime/bulk/kernels/memory.cuh"
#include "runtime/core/float_formats.h"
#include "runtime/verify/element.h"

namespace solstice::bulk {

// What one thread found. The type of CompareResult, but errors as numbers.
class Tally {
 public:
  Tally(const CompareParameters& p) : rule_{p.atol, p.rtol, p.allow_negative_inf != 0} {}

  // True if the element passes. int64 as it is stored; all else as double, which holds it exactly. One text for both
  // and no overloads: this is what takes time to compile.
  bool Element(bool is_int64, uint64_t actual, uint64_t expected) {
    double error, size;
    if (is_int64) {
      error = verify::Difference(static_cast<int64_t>(actual), static_cast<int64_t>(expected));
      size = fabs(static_cast<double>(static_cast<int64_t>(expected)));
      actual_nonzero_ |= actual != 0;
      expected_nonzero_ |= expected != 0;
    } else {
      const double a = __builtin_bit_cast(double, actual), e = __builtin_bit_cast(double, expected);
      error = verify::Difference(a, e);
      size = fabs(e);
      actual_nonzero_ |= a != 0;
      expected_nonzero_ |= e != 0;
      if (!verify::Finite(error) && !(verify::Finite(a) && verify::Finite(e))) {
        if (verify::IsValidExpected(rule_, e) && a == e) return true;  // both -inf
        not_finite_ = true;
        ++mismatched_;
        return false;
      }
    }
    if (error > max_absolute_) max_absolute_ = error;
    // Divided only where it may raise the maximum: floor_ is a little below it.
    const double denominator = verify::Denominator(size);
    if (error > floor_ * denominator) RaiseRelative(error / denominator);
    if (verify::Matches(rule_, error, size)) return true;
    ++mismatched_;
    return false;
  }

  // Every thread of the block must call it. The fields of CompareResult in order.
  void Merge(CompareResult* result) {
    const uint64_t found[6] = {mismatched_,
                               __builtin_bit_cast(uint64_t, max_absolute_),
                               __builtin_bit_cast(uint64_t, max_relative_),
                               not_finite_,
                               actual_nonzero_,
                               expected_nonzero_};
    uint64_t* fields = &result->mismatched;
#pragma unroll 1
    for (int i = 0; i < 6; ++i) {
      const uint64_t all = BlockReduce(found[i], i == 0);
      if (threadIdx.x != 0) continue;
      if (i == 0) {
        AddTo(&fields[i], all);
      } else {
        RaiseTo(&fields[i], all);
      }
    }
  }

 private:
  void RaiseRelative(double error) {
    if (!(error > max_relative_)) return;
    max_relative_ = error;
    floor_ = error * (1 - 0x1p-40);
  }

  verify::ElementRule rule_;
  uint64_t mismatched_ = 0;
  double max_absolute_ = 0, max_relative_ = 0, floor_ = 0;
  bool not_finite_ = false, actual_nonzero_ = false, expected_nonzero_ = false;
};

// ---- Reading -----------------------------------------------------------------------------------------------------

inline float Float16Bits(DataType dtype, uint32_t bits) {
  if (dtype == DataType::kBfloat16) return core::Bfloat16ToFloat(static_cast<uint16_t>(bits));
  if (dtype == DataType::kInt16) return static_cast<float>(static_cast<int16_t>(bits));
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(static_cast<uint16_t>(bits)));
  return value;
}

// Types of at most eight bits; `bits` is a byte, or a nibble.
inline float Float8Bits(DataType dtype, uint32_t bits) {
  const uint8_t byte = static_cast<uint8_t>(bits);
  switch (dtype) {
    case DataType::kFloat8E4m3:
      return core::E4m3ToFloat(byte);
    case DataType::kFloat8E5m2:
      return Float16Bits(DataType::kFloat16, bits << 8);
    case DataType::kFloat4E2m1:
      return core::E2m1ToFloat(byte);
    case DataType::kInt8:
      return static_cast<float>(static_cast<int8_t>(byte));
    case DataType::kUint8:
      return static_cast<float>(byte);
    default:  // kBool
      return byte != 0 ? 1.0f : 0.0f;
  }
}

inline int BitsOf(DataType dtype) {
  switch (dtype) {
    case DataType::kFloat64:
    case DataType::kInt64:
      return 64;
    case DataType::kFloat32:
    case DataType::kInt32:
      return 32;
    case DataType::kFloat16:
    case DataType::kBfloat16:
    case DataType::kInt16:
      return 16;
    case DataType::kFloat4E2m1:
      return 4;
    default:
      return 8;
  }
}

// Every type of up to eight bits, decoded once a block.
struct ByteTable {
  float value[256];
};
__noinline__ void FillTable(DataType dtype, ByteTable* table) {
  for (int i = static_cast<int>(threadIdx.x); i < 256; i += static_cast<int>(blockDim.x)) {
    table->value[i] = Float8Bits(dtype, static_cast<uint32_t>(i));
  }
  __syncthreads();
}

inline uint64_t Join(uint32_t low, uint32_t high) { return static_cast<uint64_t>(high) << 32 | low; }

// The value in the low bits of `low`, or in both words, as Tally::Element takes it.
inline uint64_t Decode(DataType dtype, int bits, const ByteTable& table, uint32_t low, uint32_t high) {
  if (bits == 64) return Join(low, high);
  double value;
  if (bits == 16) {
    value = Float16Bits(dtype, low & 0xffffu);
  } else if (bits <= 8) {
    value = table.value[low & ((1u << bits) - 1)];
  } else if (dtype == DataType::kFloat32) {
    value = __builtin_bit_cast(float, low);
  } else {
    value = static_cast<int32_t>(low);
  }
  return __builtin_bit_cast(uint64_t, value);
}

// ---- Kernels -----------------------------------------------------------------------------------------------------

// Loops rather than copies of Tally::Element.
inline void CompareChunk(DataType dtype, int bits, const ByteTable& table, Chunk actual, Chunk expected, Tally* tally) {
  const int step = bits == 64 ? 2 : 1;  // words
#pragma unroll 1
  for (int w = 0; w < 4; w += step) {
    uint32_t a = actual.word[0], e = expected.word[0];
#pragma unroll 1
    for (int done = 0; done < 32; done += bits) {
      tally->Element(dtype == DataType::kInt64, Decode(dtype, bits, table, a, actual.word[1]),
                     Decode(dtype, bits, table, e, expected.word[1]));
      a >>= bits & 31;
      e >>= bits & 31;
    }
#pragma unroll
    for (int k = 0; k < 3; ++k) {
      actual.word[k] = step == 1 ? actual.word[k + 1] : actual.word[(k + 2) & 3];
      expected.word[k] = step == 1 ? expected.word[k + 1] : expected.word[(k + 2) & 3];
    }
  }
}

extern "C" __global__ void __launch_bounds__(kThreads) solstice_compare(const CompareParameters p) {
  __shared__ ByteTable table;
  const int bits = BitsOf(p.dtype);
  if (bits <= 8) FillTable(p.dtype, &table);
  const int64_t bytes = bits == 4 ? p.values / 2 : p.values * (bits / 8);
  Tally tally(p);
  for (int64_t at = 16 * GlobalThread(); at < bytes; at += 16 * AllThreads()) {
    // Zeros behind the end match and are no values.
    const Chunk actual = Load(p.actual + static_cast<uint64_t>(at), bytes - at);
    const Chunk expected = Load(p.expected + static_cast<uint64_t>(at), bytes - at);
    CompareChunk(p.dtype, bits, table, actual, expected, &tally);
  }
  tally.Merge(reinterpret_cast<CompareResult*>(p.result));
}

// The bytes of value number `position`, its nibble first.
inline uint64_t BitsAt(uint64_t address, int bits, int64_t position) {
  const int64_t first = bits == 4 ? position / 2 : position * (bits / 8);
  const uint8_t* bytes = reinterpret_cast<const uint8_t*>(address) + first;
  uint64_t all = 0;
#pragma unroll 1
  for (int done = 0; done < bits; done += 8) all |= static_cast<uint64_t>(*bytes++) << done;
  return bits == 4 && position % 2 != 0 ? all >> 4 : all;
}

// Whether value number `position` passes. For the kernels below, which seldom run.
__noinline__ bool MatchesAt(const CompareParameters* p, const ByteTable* table, int64_t position) {
  const int bits = BitsOf(p->dtype);
  uint64_t values[2] = {};  // actual, expected
#pragma unroll 1
  for (int i = 0; i < 2; ++i) {
    const uint64_t stored = BitsAt(i == 0 ? p->expected : p->actual, bits, position);
    values[1] = values[0];
    values[0] = Decode(p->dtype, bits, *table, static_cast<uint32_t>(stored), static_cast<uint32_t>(stored >> 32));
  }
  Tally tally(*p);
  return tally.Element(p->dtype == DataType::kInt64, values[0], values[1]);
}

// A warp finds the first mismatches of its segment, in order.
extern "C" __global__ void __launch_bounds__(kThreads) solstice_locate(const CompareParameters p) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const int64_t segment = GlobalThread() / 32;
  __shared__ ByteTable table;
  FillTable(p.dtype, &table);
  int64_t* out = reinterpret_cast<int64_t*>(p.result) + segment * kLocated;
  int64_t end = (segment + 1) * p.segment;
  if (end > p.values) end = p.values;
  int found = 0;
  for (int64_t first = segment * p.segment; first < end && found < kLocated; first += 32) {
    const bool wrong = first + lane < end && !MatchesAt(&p, &table, first + lane);
    const uint32_t all = __ballot_sync(0xffffffffu, wrong);
    const int place = found + __popc(all & ((1u << lane) - 1));
    if (wrong && place < kLocated) out[place] = first + lane;
    found += __popc(all);
  }
  if (lane >= found && lane < kLocated) out[lane] = -1;
}

// A block counts the mismatches of one slice after another.
extern "C" __global__ void __launch_bounds__(kThreads) solstice_slices(const CompareParameters p) {
  __shared__ ByteTable table;
  FillTable(p.dtype, &table);
  uint64_t worst = 0;
  const int64_t slices = p.values / p.slice;
  for (int64_t slice = blockIdx.x; slice < slices; slice += gridDim.x) {
    uint64_t mismatched = 0;
    for (int64_t i = threadIdx.x; i < p.slice; i += blockDim.x) {
      if (!MatchesAt(&p, &table, slice * p.slice + i)) ++mismatched;
    }
    const uint64_t sum = BlockReduce(mismatched, true);
    if (sum > worst) worst = sum;
  }
  if (threadIdx.x == 0) RaiseTo(&reinterpret_cast<CompareResult*>(p.result)->worst_slice_mismatched, worst);
}

}  // namespace solstice::bulk
