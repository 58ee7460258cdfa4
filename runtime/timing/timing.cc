#include "runtime/timing/timing.h"

#include <algorithm>

#include "runtime/base/strings.h"

namespace solstice::timing {
namespace {

// Beside the plan's operations an iteration has the clearing, and two events where those are the timer.
constexpr int64_t kOwnOperations = 3;
constexpr int kWarmUps = 4;
// A piece of a warm-up is 5 ms of an H200; when so many in a row were no faster, clocks are steady.
constexpr int kWarmUpPiece = 100;
constexpr int kSteadyPieces = 8;
// The emulator takes its time, an instrumented one most of all.
constexpr std::chrono::seconds kMostClearing(60);

Status EnqueueOne(device::Device& device, const Batch& batch, const EnqueueIteration& enqueue, int slot) {
  SOLSTICE_RETURN_IF_ERROR(device.EnqueueLaunch(*batch.trusted, batch.clear));
  SOLSTICE_RETURN_IF_ERROR(device.StartIteration());
  SOLSTICE_RETURN_IF_ERROR(enqueue(slot));
  return device.EndIteration();
}

Status Clear(device::Device& device, const Batch& batch, int times) {
  for (int i = 0; i < times; ++i) SOLSTICE_RETURN_IF_ERROR(device.EnqueueLaunch(*batch.trusted, batch.clear));
  device::RunLimits limits;
  limits.timeout = kMostClearing;
  SOLSTICE_ASSIGN_OR_RETURN(v1::internal::RunOutcome outcome, device.Synchronize(limits));
  if (outcome.kind() == v1::internal::RunOutcome::OK) return absl::OkStatus();
  return base::Internal(base::StrCat("timing: the clearing kernel failed: ", outcome.reason()));
}

}  // namespace

Status WarmUp(device::Device& device, const Batch& batch, std::chrono::nanoseconds at_most) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + at_most;
  auto fastest = std::chrono::nanoseconds::max();
  for (int no_better = 0; no_better < kSteadyPieces && Clock::now() < end;) {
    const auto started = Clock::now();
    SOLSTICE_RETURN_IF_ERROR(Clear(device, batch, kWarmUpPiece));
    const std::chrono::nanoseconds took = Clock::now() - started;
    no_better = took.count() > fastest.count() / 200 * 199 ? no_better + 1 : 0;
    fastest = std::min(fastest, took);
  }
  return absl::OkStatus();
}

BatchShape FitBatch(int64_t capacity, int64_t operations, int wanted) {
  const int64_t iterations = std::max<int64_t>(capacity / (std::max<int64_t>(operations, 0) + kOwnOperations), 2);
  BatchShape shape;
  shape.decoys = static_cast<int>(std::clamp<int64_t>(iterations - 1, 1, kDecoys));
  shape.slots = static_cast<int>(std::clamp<int64_t>(iterations - shape.decoys, 1, std::max(wanted, 1)));
  return shape;
}

Status EnqueueBatch(device::Device& device, const Batch& batch, const EnqueueIteration& enqueue) {
  if (batch.trusted == nullptr || batch.shape.slots < 1 || batch.shape.decoys < 0) {
    return base::InvalidArgument("timing: a batch without slots or without the clearing kernel");
  }
  SOLSTICE_RETURN_IF_ERROR(Clear(device, batch, kWarmUps));
  SOLSTICE_RETURN_IF_ERROR(device.BeginBatch(batch.timer));
  for (int decoy = 0; decoy < batch.shape.decoys; ++decoy) {
    SOLSTICE_RETURN_IF_ERROR(EnqueueOne(device, batch, enqueue, decoy % batch.shape.slots));
  }
  for (int slot = 0; slot < batch.shape.slots; ++slot) {
    SOLSTICE_RETURN_IF_ERROR(EnqueueOne(device, batch, enqueue, slot));
  }
  return absl::OkStatus();
}

StatusOr<v1::internal::Times> TakeTimes(device::Device& device, const Batch& batch) {
  v1::internal::Times times;
  times.set_timer(batch.timer);
  auto spans = device.TakeSpans();
  if (absl::IsDataLoss(spans.status())) {
    times.set_rejected(base::MessageOf(spans.status()));
    return times;
  }
  if (!spans.ok()) return spans.status();
  if (batch.timer == v1::TIMER_NONE) return times;
  const int iterations = batch.shape.decoys + batch.shape.slots;
  if (static_cast<int>(spans->size()) != iterations) {
    return base::Internal(base::StrCat("timing: ", spans->size(), " latencies for ", iterations, " iterations"));
  }
  for (int i = 0; i < iterations; ++i) {
    const device::Span& span = (*spans)[static_cast<size_t>(i)];
    (i < batch.shape.decoys ? times.mutable_decoy_ns() : times.mutable_latency_ns())->Add(span.end_ns - span.start_ns);
  }
  return times;
}

int64_t Median(std::vector<int64_t> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace solstice::timing
