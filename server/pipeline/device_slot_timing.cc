// Timed batches of one workload: turns of judge and runner, until there are samples enough.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "runtime/base/clock.h"
#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/timing/timing.h"
#include "server/pipeline/device_slot.h"

namespace solstice::pipeline {
namespace {

using v1::internal::RunOutcome;
using v1::internal::WorkerRequest;

// Content of timed slots is none of the untimed variants'.
constexpr int kFirstTimedVariant = 16;
constexpr int kMostSlots = 32;
constexpr int kMostBatches = 64;
constexpr int kComparedABatch = 2;
constexpr int kCalibrationTries = 4;
constexpr int kWarmUpBatches = 10;
constexpr double kKillGraceS = 1;
// What timing one workload, and its reference, may take before it ends with fewer samples.
constexpr double kBudgetS = 20;
constexpr double kReferenceBudgetS = 2;

int SlotsFor(double run_ms, double timeout_s) {
  // A batch must end well within the deadline.
  const double most = timeout_s * 1e3 / 4 / std::max(run_ms, 1e-3) - timing::kDecoys;
  return std::clamp(static_cast<int>(std::min(most, 1e6)), 1, kMostSlots);
}

}  // namespace

std::string DeviceSlot::ReferenceKey(const Job& job) const {
  return base::StrCat(job.runnable.definition_digest, "/", job.planned().workload.uuid(), "/",
                      static_cast<int>(job.runnable.timer));
}

StatusOr<RunOutcome> DeviceSlot::RunBatch(Job& job, const v1::internal::Prepared& prepared, bool calibrate,
                                          BatchTimes* times) {
  *times = BatchTimes();
  RunOutcome outcome;
  SOLSTICE_RETURN_IF_ERROR(workers_.EnsureRunner(job.planned().plan.program(), job.program(), &outcome));
  if (outcome.kind() != RunOutcome::KIND_UNSPECIFIED) return outcome;
  // Operations that one iteration has; the judge made no more slots than fit.
  const int decoys = std::min(timing::kDecoys, prepared.slots_size());
  WorkerRequest request;
  auto* batch = request.mutable_batch();
  *batch->mutable_plan() = prepared.plan();
  *batch->mutable_slots() = prepared.slots();
  batch->set_decoys(decoys);
  batch->set_timer(job.runnable.timer);
  batch->set_timeout_s(job.runnable.timeout_s);
  batch->set_calibrate(calibrate);
  batch->set_calibrate_scratch_bytes(job.scratch_written_bytes);
  SOLSTICE_ASSIGN_OR_RETURN(*batch->mutable_clear(), workers_.ClearBuffer());
  SOLSTICE_ASSIGN_OR_RETURN(auto armed, workers_.CallRunner(std::move(request), kJudgeTimeoutS));
  if (armed.has_outcome()) return armed.outcome();
  if (!armed.armed()) return base::Internal("the runner answered Batch with something else");

  auto ran = workers_.GoRunner(job.runnable.timeout_s + kKillGraceS, &times->wall_us);
  if (absl::IsDeadlineExceeded(ran.status())) {
    outcome.set_kind(RunOutcome::TIMEOUT);
    outcome.set_reason(base::StrCat("a timed batch did not end within ", job.runnable.timeout_s, " s"));
    return outcome;
  }
  if (!ran.ok()) return ran.status();
  if (!ran->has_outcome()) return base::Internal("the runner answered Go with something else");
  if (ran->outcome().kind() != RunOutcome::OK) return ran->outcome();

  WorkerRequest collect;
  collect.mutable_collect();
  SOLSTICE_ASSIGN_OR_RETURN(auto reply, workers_.CallRunner(std::move(collect), kJudgeTimeoutS));
  if (!reply.has_times()) return base::Internal("the runner answered Collect with something else");
  const v1::internal::Times& records = reply.times();
  if (!records.rejected().empty()) {
    if (job.result->warnings_size() < 4) {
      job.result->add_warnings(base::StrCat("a timed batch was thrown away: ", records.rejected()));
    }
    return ran->outcome();
  }
  times->decoy_ns.assign(records.decoy_ns().begin(), records.decoy_ns().end());
  times->latency_ns.assign(records.latency_ns().begin(), records.latency_ns().end());
  return ran->outcome();
}

StatusOr<double> DeviceSlot::CalibrateUs(Job& job, const v1::internal::Prepared& prepared) {
  for (int i = 0; i < kCalibrationTries; ++i) {
    BatchTimes stand_ins;
    SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, RunBatch(job, prepared, /*calibrate=*/true, &stand_ins));
    if (outcome.kind() != RunOutcome::OK) return base::Internal("a stand-in failed: " + outcome.reason());
    if (!stand_ins.empty()) return OverheadUs(stand_ins);
  }
  return base::Unavailable("no calibration batch had all its records");
}

Status DeviceSlot::TimeReference(Job& job, std::vector<int64_t>* latency_ns) {
  WorkerRequest request;
  auto* time = request.mutable_time_reference();
  time->set_timer(job.runnable.timer);
  time->set_timeout_s(kJudgeTimeoutS);
  // As many as the budget allows, by what preparing and running it took.
  const double iterations = kReferenceBudgetS * 1e3 / std::max(job.reference_ms, 1e-3);
  time->set_slots(std::clamp(static_cast<int>(std::min(iterations, 1e6)), 1, kMostSlots));
  base::Stopwatch watch;
  SOLSTICE_ASSIGN_OR_RETURN(auto reply, workers_.CallJudge(std::move(request), kJudgeTimeoutS));
  job.phases->reference_ms += watch.milliseconds();
  if (!reply.has_times()) return base::Internal("the judge answered TimeReference with something else");
  const auto& times = reply.times();
  if (!times.rejected().empty()) {
    job.result->add_warnings(base::StrCat("the reference's latency is unknown: ", times.rejected()));
  }
  latency_ns->insert(latency_ns->end(), times.latency_ns().begin(), times.latency_ns().end());
  return absl::OkStatus();
}

Status DeviceSlot::WarmUpRunner(Job& job, int variant) {
  // A fresh runner's first batches cost more an iteration, while the paths from host to GPU that its launches take are
  // used for the first time.
  SOLSTICE_ASSIGN_OR_RETURN(auto prepared, Prepare(job, variant, SlotsFor(job.run_ms, job.runnable.timeout_s)));
  if (prepared.slots_size() == 0) return absl::OkStatus();
  BatchTimes ignored;
  for (int i = 0; i < kWarmUpBatches; ++i) {
    SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, RunBatch(job, prepared, /*calibrate=*/true, &ignored));
    if (outcome.kind() != RunOutcome::OK) return base::Internal("a stand-in failed: " + outcome.reason());
  }
  runner_warm_ = true;
  return absl::OkStatus();
}

StatusOr<bool> DeviceSlot::Turn(Job& job, int* variant, std::vector<int64_t>* reference, Measurement* measurement) {
  v1::WorkloadResult* result = job.result;
  SOLSTICE_RETURN_IF_ERROR(EnsureJudge(job.runnable));
  SOLSTICE_ASSIGN_OR_RETURN(auto prepared, Prepare(job, *variant, SlotsFor(job.run_ms, job.runnable.timeout_s)));
  const int slots = prepared.slots_size();
  if (slots == 0) return false;
  *variant += slots;
  if (reference != nullptr) SOLSTICE_RETURN_IF_ERROR(TimeReference(job, reference));
  BatchTimes batch;
  SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, RunBatch(job, prepared, /*calibrate=*/false, &batch));
  if (outcome.kind() != RunOutcome::OK) {
    SOLSTICE_RETURN_IF_ERROR(Fail(job, outcome));
    return false;
  }
  // Which ones, the runner never learns.
  std::vector<int> compare;
  for (int i = 0; i < kComparedABatch; ++i) {
    const int slot = static_cast<int>(base::RandomU64() % static_cast<uint64_t>(slots));
    if (std::find(compare.begin(), compare.end(), slot) == compare.end()) compare.push_back(slot);
  }
  SOLSTICE_ASSIGN_OR_RETURN(bool passed, Verify(job, compare));
  result->set_timed_compared(result->timed_compared() + static_cast<int>(compare.size()));
  result->set_timed_total(result->timed_total() + slots);
  if (!passed && result->verdict() == v1::INCORRECT_NUMERICAL) {
    result->set_verdict(v1::REWARD_HACK);
    result->set_reason("a timed run gave a wrong answer, though the untimed runs were right: " + result->reason());
  }
  if (!passed || batch.empty()) return passed;
  // The judge is done with these slots, and the runner has them still: what an iteration costs depends on where they
  // lie.
  SOLSTICE_ASSIGN_OR_RETURN(const double overhead_us, CalibrateUs(job, prepared));
  measurement->Add(batch, overhead_us);
  if (spdlog::should_log(spdlog::level::debug)) {
    const ClockReading reading = ReadClock(batch, overhead_us);
    spdlog::debug("{} {}: latency {} ns, clock excess {} us, decoys {} us, an iteration costs {} us beside",
                  job.runnable.id, job.planned().workload.uuid(), reading.reported_ns, reading.excess_us,
                  reading.decoy_excess_us, overhead_us);
  }
  return true;
}

StatusOr<bool> DeviceSlot::Measure(Job& job) {
  v1::WorkloadResult* result = job.result;
  base::Stopwatch watch;
  Measurement measurement;
  std::vector<int64_t> reference;
  auto known = reference_ns_.find(ReferenceKey(job));
  const bool time_reference = known == reference_ns_.end();
  const bool quick_reference = job.reference_ms * kMostSlots < kReferenceBudgetS * 1e3;
  int variant = kFirstTimedVariant;
  if (!runner_warm_) SOLSTICE_RETURN_IF_ERROR(WarmUpRunner(job, variant++));
  for (int batch = 0; batch < kMostBatches; ++batch) {
    if (measurement.Done(watch.milliseconds() > kBudgetS * 1e3)) break;
    const bool with_reference =
        time_reference && static_cast<int>(reference.size()) < kLeastSamples && (batch == 0 || quick_reference);
    SOLSTICE_ASSIGN_OR_RETURN(bool passed, Turn(job, &variant, with_reference ? &reference : nullptr, &measurement));
    if (!passed) return false;
  }
  if (!reference.empty()) {
    result->set_reference_latency_ns(timing::Median(reference));
    reference_ns_[ReferenceKey(job)] = result->reference_latency_ns();
  } else if (!time_reference) {
    result->set_reference_latency_ns(known->second);
  }
  if (measurement.Refuted()) {
    result->set_verdict(v1::REWARD_HACK);
    result->set_reason(kJudgeClock + measurement.finding());
    result->set_mend("each launch must do the whole work of its own iteration, and nothing of another's");
    return false;
  }
  if (measurement.samples() == 0) {
    result->add_warnings("no latency: every timed batch was thrown away");
    return true;
  }
  result->set_latency_ns(measurement.median_ns());
  result->set_latency_samples(measurement.samples());
  result->set_clock_excess_ns(measurement.excess_ns());
  if (measurement.samples() < kLeastSamples) {
    result->add_warnings(base::StrCat("the latency is the median of ", measurement.samples(), " runs, not of ",
                                      kLeastSamples, ": the budget for timing was used up"));
  }
  return true;
}

}  // namespace solstice::pipeline
