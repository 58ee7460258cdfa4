#include "runtime/bulk/kernel_compare.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/bulk/host_work.h"
#include "runtime/bulk/kernels/names.h"
#include "runtime/bulk/launches.h"
#include "runtime/core/dtype.h"

namespace solstice::bulk {
namespace {

constexpr std::chrono::seconds kTimeout(120);
constexpr int64_t kMostSegments = 4096;

static_assert(static_cast<int>(DataType::kFloat64) == v1::FLOAT64 &&
              static_cast<int>(DataType::kFloat32) == v1::FLOAT32 &&
              static_cast<int>(DataType::kFloat16) == v1::FLOAT16 &&
              static_cast<int>(DataType::kBfloat16) == v1::BFLOAT16 &&
              static_cast<int>(DataType::kFloat8E4m3) == v1::FLOAT8_E4M3FN &&
              static_cast<int>(DataType::kFloat8E5m2) == v1::FLOAT8_E5M2 &&
              static_cast<int>(DataType::kFloat4E2m1) == v1::FLOAT4_E2M1FN_X2 &&
              static_cast<int>(DataType::kInt64) == v1::INT64 && static_cast<int>(DataType::kInt32) == v1::INT32 &&
              static_cast<int>(DataType::kInt16) == v1::INT16 && static_cast<int>(DataType::kInt8) == v1::INT8 &&
              static_cast<int>(DataType::kUint8) == v1::UINT8 && static_cast<int>(DataType::kBool) == v1::BOOL);

double AsDouble(uint64_t bits) { return __builtin_bit_cast(double, bits); }

// What the kernel counted, but for failures' places and slices.
verify::Tally TallyOf(const CompareResult& result, int64_t values) {
  verify::Tally tally;
  tally.values = values;
  tally.matched = values - static_cast<int64_t>(result.mismatched);
  tally.max_absolute_error = AsDouble(result.max_absolute);
  tally.max_relative_error = AsDouble(result.max_relative);
  tally.bad_actual = result.not_finite != 0 ? 1 : 0;  // whose fault it is, the host says
  tally.actual_all_zero = result.actual_nonzero == 0;
  if (result.expected_nonzero != 0) tally.first_nonzero_expected.position = 0;  // somewhere
  return tally;
}

}  // namespace

Status RunQueued(device::Device* device) {
  device::RunLimits limits;
  limits.timeout = kTimeout;
  SOLSTICE_ASSIGN_OR_RETURN(v1::internal::RunOutcome outcome, device->Synchronize(limits));
  if (outcome.kind() == v1::internal::RunOutcome::OK) return absl::OkStatus();
  return base::Internal(base::StrCat("the judge's own kernels failed: ", outcome.reason()));
}

Status KernelCompare::Queue(const v1::Tensor& tensor, const std::vector<int64_t>& shape, const v1::Tolerance& tolerance,
                            device::Address actual, device::Address expected, verify::TensorComparison* comparison) {
  const verify::Layout layout = verify::LayoutOf(tensor, shape);
  if (!layout.possible || layout.values == 0) {
    *comparison = verify::CompareTensor(tensor, shape, tolerance, {}, {});
    return absl::OkStatus();
  }
  SOLSTICE_RETURN_IF_ERROR(CheckSize(layout.bytes));
  const verify::ElementRule rule = verify::RulesFor(tensor.dtype(), tolerance).element;
  SOLSTICE_ASSIGN_OR_RETURN(int64_t place, arena_.Take());
  CompareParameters p;
  p.actual = actual;
  p.expected = expected;
  p.values = layout.values;
  p.atol = rule.atol;
  p.rtol = rule.rtol;
  p.slice = layout.slice;
  p.result = arena_.AddressOf(place);
  p.dtype = static_cast<DataType>(tensor.dtype());
  p.allow_negative_inf = rule.allow_negative_inf;
  pending_.push_back({tensor, shape, tolerance, layout, p, place, comparison});
  return device_.EnqueueLaunch(module_, MakeLaunch(kCompareEntry, device_.properties(), (layout.bytes + 15) / 16, p));
}

Status KernelCompare::Finish() {
  for (const Pending& pending : std::exchange(pending_, {})) {
    SOLSTICE_ASSIGN_OR_RETURN(bool done, Judge(pending));
    if (done) continue;
    SOLSTICE_ASSIGN_OR_RETURN(*pending.comparison,
                              CompareOnHost(device_, pending.tensor, pending.shape, pending.tolerance,
                                            pending.parameters.actual, pending.parameters.expected));
  }
  return absl::OkStatus();
}

StatusOr<bool> KernelCompare::Judge(const Pending& pending) {
  const verify::Rules rules = verify::RulesFor(pending.tensor.dtype(), pending.tolerance);
  verify::Tally tally = TallyOf(arena_.Get<CompareResult>(pending.place), pending.layout.values);
  if (verify::FindFault(rules, false, tally) != verify::Fault::kNone) return false;
  const int64_t mismatched = tally.values - tally.matched;
  if (mismatched > 0) {
    // Slices are counted only if all mismatches in one would be too many for it.
    const double least = static_cast<double>(pending.layout.slice - mismatched);
    if (pending.layout.sliced && !(least / static_cast<double>(pending.layout.slice) >= rules.slice_ratio())) {
      SOLSTICE_RETURN_IF_ERROR(CountSlices(pending, &tally));
      if (verify::FindFault(rules, true, tally) != verify::Fault::kNone) return false;
    }
    SOLSTICE_RETURN_IF_ERROR(LocateFailures(pending, &tally));
  }
  *pending.comparison = {};
  pending.comparison->numbers.set_name(pending.tensor.name());
  verify::FillNumbers(pending.tensor, pending.shape, tally, &pending.comparison->numbers);
  return true;
}

Status KernelCompare::CountSlices(const Pending& pending, verify::Tally* tally) {
  SOLSTICE_ASSIGN_OR_RETURN(device::Address scratch, Scratch(sizeof(CompareResult)));
  CompareParameters p = pending.parameters;
  p.result = scratch;
  SOLSTICE_RETURN_IF_ERROR(device_.EnqueueMemset(scratch, 0, sizeof(CompareResult)));
  // A block a slice, and no more threads than it has values.
  const int64_t slices = p.values / p.slice;
  device::LaunchParameters launch = MakeLaunch(kSlicesEntry, device_.properties(), slices * kThreads, p);
  launch.block[0] = p.slice >= 2 * kThreads ? kThreads : 32;
  SOLSTICE_RETURN_IF_ERROR(device_.EnqueueLaunch(module_, launch));
  SOLSTICE_RETURN_IF_ERROR(RunQueued(&device_));
  CompareResult result;
  SOLSTICE_RETURN_IF_ERROR(device_.CopyOut({reinterpret_cast<uint8_t*>(&result), sizeof result}, scratch));
  tally->worst_slice_ratio =
      static_cast<double>(p.slice - static_cast<int64_t>(result.worst_slice_mismatched)) / static_cast<double>(p.slice);
  return absl::OkStatus();
}

Status KernelCompare::LocateFailures(const Pending& pending, verify::Tally* tally) {
  CompareParameters p = pending.parameters;
  // Whole blocks of warps, a segment each.
  constexpr int64_t kWarps = kThreads / 32;
  const int64_t wanted = std::clamp<int64_t>((p.values + 1023) / 1024, 1, kMostSegments);
  const int64_t segments = (wanted + kWarps - 1) / kWarps * kWarps;
  p.segment = ((p.values + segments - 1) / segments + 31) / 32 * 32;
  const int64_t bytes = segments * kLocated * static_cast<int64_t>(sizeof(int64_t));
  SOLSTICE_ASSIGN_OR_RETURN(p.result, Scratch(bytes));
  device::LaunchParameters launch = MakeLaunch(kLocateEntry, device_.properties(), 1, p);
  launch.grid[0] = segments / kWarps;
  SOLSTICE_RETURN_IF_ERROR(device_.EnqueueLaunch(module_, launch));
  SOLSTICE_RETURN_IF_ERROR(RunQueued(&device_));
  std::vector<int64_t> positions(static_cast<size_t>(segments * kLocated));
  SOLSTICE_RETURN_IF_ERROR(
      device_.CopyOut({reinterpret_cast<uint8_t*>(positions.data()), static_cast<size_t>(bytes)}, p.result));
  for (int64_t position : positions) {
    if (position < 0) continue;
    if (tally->first_failures.size() == verify::kMostFailures) break;
    SOLSTICE_ASSIGN_OR_RETURN(verify::Failure failure, ReadAt(pending, position));
    tally->first_failures.push_back(failure);
  }
  return absl::OkStatus();
}

StatusOr<verify::Failure> KernelCompare::ReadAt(const Pending& pending, int64_t position) {
  const v1::DType dtype = pending.tensor.dtype();
  const int64_t bytes = core::ElementBytes(dtype), packed = core::ValuesPerElement(dtype);
  const device::Address offset = static_cast<device::Address>(position / packed * bytes);
  uint8_t actual[8] = {}, expected[8] = {};
  SOLSTICE_RETURN_IF_ERROR(device_.CopyOut({actual, static_cast<size_t>(bytes)}, pending.parameters.actual + offset));
  SOLSTICE_RETURN_IF_ERROR(
      device_.CopyOut({expected, static_cast<size_t>(bytes)}, pending.parameters.expected + offset));
  verify::Failure failure = verify::ReadFailure(dtype, actual, expected, position % packed);
  failure.position = position;
  return failure;
}

StatusOr<device::Address> KernelCompare::Scratch(int64_t bytes) {
  if (scratch_ == nullptr || scratch_->bytes() < bytes) {
    const int64_t granularity = device_.granularity();
    const int64_t mapped = (bytes + granularity - 1) / granularity * granularity;
    scratch_.reset();
    SOLSTICE_ASSIGN_OR_RETURN(scratch_, device_.Allocate(mapped, {"scratch", 0, mapped, "judge's"}));
  }
  return scratch_->address();
}

}  // namespace solstice::bulk
