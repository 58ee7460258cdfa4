// What the turns of a timed measurement (turns.h) are on a device: messages to its judge and its runner.
#include <spdlog/spdlog.h>

#include <algorithm>

#include "runtime/base/clock.h"
#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/timing/statistics.h"
#include "runtime/timing/timing.h"
#include "server/pipeline/device_slot.h"
#include "server/pipeline/turns.h"

namespace solstice::pipeline {
namespace {

using v1::internal::RunOutcome;
using v1::internal::WorkerRequest;

constexpr int kMostSlots = 32;
constexpr size_t kMostKeptSamples = 4096;
constexpr int kCalibrationTries = 4;
constexpr double kKillGraceS = 1;
// What timing a workload's reference may take.
constexpr double kReferenceBudgetS = 2;

int SlotsFor(double run_ms, double timeout_s) {
  // A batch must end well within the deadline.
  const double most = timeout_s * 1e3 / 4 / std::max(run_ms, 1e-3) - timing::kDecoys;
  return std::clamp(static_cast<int>(std::min(most, 1e6)), 1, kMostSlots);
}

void KeepSamples(const std::vector<int64_t>& latency_ns, v1::WorkloadResult* result) {
  const size_t kept = std::min(latency_ns.size(), kMostKeptSamples);
  result->mutable_samples_ns()->Assign(latency_ns.begin(), latency_ns.begin() + static_cast<std::ptrdiff_t>(kept));
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

class DeviceSlot::SlotTurns : public Turns {
 public:
  SlotTurns(DeviceSlot& slot, Job& job) : slot_(slot), job_(job) {}

  StatusOr<int> Prepare(int variant, int slots) override {
    SOLSTICE_RETURN_IF_ERROR(slot_.EnsureJudge(job_.runnable));
    SOLSTICE_ASSIGN_OR_RETURN(prepared_, slot_.Prepare(job_, variant, slots));
    return prepared_.slots_size();
  }
  Status TimeReference(std::vector<int64_t>* latency_ns) override { return slot_.TimeReference(job_, latency_ns); }
  StatusOr<bool> Run(BatchTimes* times) override {
    SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, slot_.RunBatch(job_, prepared_, /*calibrate=*/false, times));
    if (outcome.kind() == RunOutcome::OK) return true;
    SOLSTICE_RETURN_IF_ERROR(slot_.Fail(job_, outcome));
    return false;
  }
  StatusOr<bool> Verify(const std::vector<int>& compare) override {
    SOLSTICE_ASSIGN_OR_RETURN(const bool passed, slot_.Verify(job_, compare));
    v1::WorkloadResult* result = job_.result;
    if (!passed && result->verdict() == v1::INCORRECT_NUMERICAL) {
      result->set_verdict(v1::REWARD_HACK);
      result->set_reason("a timed run gave a wrong answer, though the untimed runs were right: " + result->reason());
    }
    return passed;
  }
  StatusOr<double> Calibrate() override { return slot_.CalibrateUs(job_, prepared_); }
  uint64_t Secret() override { return base::RandomU64(); }
  double Seconds() override { return watch_.milliseconds() * 1e-3; }

 private:
  DeviceSlot& slot_;
  Job& job_;
  v1::internal::Prepared prepared_;
  base::Stopwatch watch_;
};

Status DeviceSlot::TimeWorkload(Job& job) {
  v1::WorkloadResult* result = job.result;
  auto known = reference_ns_.find(ReferenceKey(job));
  MeasureOptions options;
  options.slots = SlotsFor(job.run_ms, job.runnable.timeout_s);
  options.fresh_runner = !runner_warm_;
  options.time_reference = known == reference_ns_.end();
  options.quick_reference = job.reference_ms * kMostSlots < kReferenceBudgetS * 1e3;
  SlotTurns turns(*this, job);
  SOLSTICE_ASSIGN_OR_RETURN(const Measured measured, pipeline::Measure(turns, options));
  // Fail() drops the runner.
  runner_warm_ = workers_.HasRunner() && (runner_warm_ || measured.total > 0);
  result->set_timed_compared(measured.compared);
  result->set_timed_total(measured.total);
  if (!measured.reference_ns.empty()) {
    result->set_reference_latency_ns(timing::Median(measured.reference_ns));
    reference_ns_[ReferenceKey(job)] = result->reference_latency_ns();
  } else if (!options.time_reference) {
    result->set_reference_latency_ns(known->second);
  }
  const Measurement& measurement = measured.measurement;
  if (measurement.Refuted()) {
    result->set_verdict(v1::REWARD_HACK);
    result->set_reason(kJudgeClock + measurement.finding());
    result->set_mend("each launch must do the whole work of its own iteration, and nothing of another's");
  }
  if (!measured.passed) return absl::OkStatus();
  if (measurement.samples() == 0) {
    result->add_warnings("no latency: every timed batch was thrown away");
    return absl::OkStatus();
  }
  *result->mutable_statistics() = measurement.statistics();
  result->set_latency_ns(result->statistics().median_ns());
  result->set_latency_samples(measurement.samples());
  result->set_clock_excess_ns(measurement.excess_ns());
  if (job.runnable.keep_samples) KeepSamples(measurement.latency_ns(), result);
  if (measurement.samples() < timing::kLeastSamples) {
    result->add_warnings(base::StrCat("the latency is the median of ", measurement.samples(), " runs, not of ",
                                      timing::kLeastSamples, ": the budget for timing was used up"));
  }
  return absl::OkStatus();
}

}  // namespace solstice::pipeline
