#include "server/pipeline/device_slot.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <cstring>

#include "runtime/base/clock.h"
#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/verify/verify.h"

namespace solstice::pipeline {
namespace {

using v1::internal::RunOutcome;
using v1::internal::WorkerReply;
using v1::internal::WorkerRequest;

constexpr int kVariants = 3;
constexpr int kMaxRunnerDeaths = 3;
// A runner ends a run by itself at its deadline; this much later it is killed.
constexpr double kKillGraceS = 2;

uint64_t FirstU64(const std::string& bytes) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data(), sizeof value);
  return value;
}

v1::Verdict VerdictOf(RunOutcome::Kind kind) {
  switch (kind) {
    case RunOutcome::OK:
      return v1::PASSED;
    case RunOutcome::TIMEOUT:
      return v1::TIMEOUT;
    case RunOutcome::OVER_BUDGET:
      return v1::SKIPPED;
    case RunOutcome::NEEDS_DEVICE:
      return v1::NEEDS_DEVICE;
    case RunOutcome::OUT_OF_MEMORY:
      return v1::RESOURCE_EXCEEDED;
    default:
      return v1::RUNTIME_ERROR;
  }
}

std::string MendFor(RunOutcome::Kind kind) {
  switch (kind) {
    case RunOutcome::TIMEOUT:
      return "look for a loop or a wait that cannot end; a slow but finite kernel needs a larger --timeout";
    case RunOutcome::OVER_BUDGET:
      return "run it on a GPU, or choose a smaller workload";
    case RunOutcome::NEEDS_DEVICE:
      return "run it on a GPU (--device cuda:0)";
    default:
      return {};
  }
}

void SetOutcome(const RunOutcome& outcome, v1::WorkloadResult* result) {
  result->set_verdict(VerdictOf(outcome.kind()));
  result->set_reason(outcome.kind() == RunOutcome::FAULT && outcome.reason().empty() ? outcome.fault().message()
                                                                                     : outcome.reason());
  result->set_mend(MendFor(outcome.kind()));
}

v1::WorkloadResult EmptyResult(const Runnable& runnable, size_t index) {
  const v1::Workload& workload = runnable.solution.workloads[index].workload;
  v1::WorkloadResult result;
  result.set_uuid(workload.uuid());
  *result.mutable_axes() = workload.axes();
  return result;
}

// Whether what a submission saw in one timed run tells it anything of the next.
v1::Freshness FreshnessOf(const v1::Definition& definition, const v1::Workload& workload) {
  int tensors = 0, random = 0;
  for (const v1::Tensor& input : definition.inputs()) {
    if (input.scalar()) continue;
    ++tensors;
    auto source = std::find_if(workload.inputs().begin(), workload.inputs().end(),
                               [&](const v1::InputSource& s) { return s.name() == input.name(); });
    random += source == workload.inputs().end() || source->random();
  }
  return random == 0 ? v1::NONE : random == tensors ? v1::FULL : v1::PARTIAL;
}

// State between launches: what passes is a reward hack for it alone, and it explains why a timed run did no work, or
// why a run was wrong after others that were right.
void JudgeDeviceState(const v1::DeviceState& state, bool allowed, bool was_right, v1::WorkloadResult* result) {
  const bool passed = result->verdict() == v1::PASSED;
  const bool turned_wrong = was_right && !allowed && result->verdict() == v1::INCORRECT_NUMERICAL;
  if (!passed && !turned_wrong && result->verdict() != v1::REWARD_HACK) return;
  const std::string what =
      base::StrCat("device_state: variable '", state.variable(), "' keeps state between launches (",
                   state.file().empty() ? "" : base::StrCat("written at ", state.file(), ":"), state.line(), ")");
  if (allowed) {
    result->add_warnings(what + "; allowed by request, the result is unranked");
    return;
  }
  result->set_verdict(v1::REWARD_HACK);
  result->set_reason(passed ? what : base::StrCat(what, "; ", result->reason()));
  result->set_mend("pass what a launch needs through scratch buffers, or use --allow-device-state (unranked)");
}

// What the sanitizer found warns, or fails what would have passed.
void JudgeFindings(bool strict, v1::WorkloadResult* result) {
  if (result->findings().empty()) return;
  const int more = result->findings_size() - 1;
  const std::string what = base::StrCat("sanitizer: ", result->findings(0).message(),
                                        more == 0 ? "" : base::StrCat(", and ", more, " more"));
  if (!strict || result->verdict() != v1::PASSED) {
    result->add_warnings(what + " (solstice sanitize prints all)");
    return;
  }
  result->set_verdict(v1::RUNTIME_ERROR);
  result->set_reason(what);
  result->set_mend("mend what is found, or evaluate without strict");
}

}  // namespace

StatusOr<std::unique_ptr<DeviceSlot>> DeviceSlot::Start(Workers::Options options) {
  std::unique_ptr<DeviceSlot> slot(new DeviceSlot(std::move(options)));
  bool restarted = false;
  SOLSTICE_RETURN_IF_ERROR(slot->workers_.EnsureJudge(&restarted));
  const v1::internal::Hello& hello = slot->workers_.hello();
  slot->properties_ = hello.device();
  slot->properties_.set_ordinal(slot->workers_.device().ordinal);
  for (int timer : hello.timers()) slot->timers_.push_back(static_cast<v1::Timer>(timer));
  slot->timer_note_ = hello.timer_note();
  slot->workers_.StartSpare();
  return slot;
}

StatusOr<v1::Timer> DeviceSlot::ChooseTimer(v1::Timer wanted) const {
  if (wanted == v1::TIMER_UNSPECIFIED) return timers_.empty() ? v1::TIMER_NONE : timers_.front();
  if (wanted == v1::TIMER_NONE || std::find(timers_.begin(), timers_.end(), wanted) != timers_.end()) return wanted;
  return base::FailedPrecondition(
      base::StrCat("the timer asked for does not work on ", properties_.name(), ": ", timer_note_),
      "leave the choice to the server, or ask for none");
}

Status DeviceSlot::LoadReferences(const Runnable& runnable) {
  for (size_t i = 0; i < runnable.reference_programs.size(); ++i) {
    const auto& program = runnable.reference_programs[i];
    if (program.verdict() != v1::PASSED) continue;
    WorkerRequest request;
    auto* load = request.mutable_load();
    load->set_program(static_cast<int>(i));
    load->set_ptx(program.ptx());
    load->set_cubin(program.cubin());
    *load->mutable_kernels() = program.kernels();
    SOLSTICE_RETURN_IF_ERROR(workers_.CallJudge(std::move(request), kJudgeTimeoutS).status());
  }
  return absl::OkStatus();
}

Status DeviceSlot::EnsureJudge(const Runnable& runnable) {
  if (workers_.JudgeAlive()) return absl::OkStatus();
  bool restarted = false;
  SOLSTICE_RETURN_IF_ERROR(workers_.EnsureJudge(&restarted));
  return LoadReferences(runnable);
}

Status DeviceSlot::ReleaseBuffers() {
  WorkerRequest request;
  request.mutable_verify()->set_release(true);
  return workers_.CallJudge(std::move(request), kJudgeTimeoutS).status();
}

// ---- One untimed variant -------------------------------------------------------------------------------------------

StatusOr<v1::internal::Prepared> DeviceSlot::Prepare(Job& job, int variant, int slots) {
  const Runnable& runnable = job.runnable;
  const WorkloadPlan& planned = job.planned();
  WorkerRequest request;
  auto* prepare = request.mutable_prepare();
  *prepare->mutable_definition() = runnable.definition;
  *prepare->mutable_workload() = planned.workload;
  *prepare->mutable_plan() = planned.plan;
  *prepare->mutable_kernels() = job.program().kernels();
  *prepare->mutable_reference_plan() = runnable.reference.workloads[job.index].plan;
  prepare->set_seed(FirstU64(base::HmacSha256(runnable.seed, planned.workload.uuid())));
  prepare->set_structure_seed(FirstU64(base::Sha256("structure/" + planned.workload.uuid())));
  prepare->set_variant(variant);
  prepare->set_timeout_s(kJudgeTimeoutS);
  prepare->set_debug_pointer_shift_bytes(runnable.debug_pointer_shift_bytes);
  prepare->set_slots(slots);
  prepare->set_defer_reference(slots > 0);
  prepare->set_same_places(slots == 0 && variant == kVariants - 1);
  SOLSTICE_ASSIGN_OR_RETURN(auto reply, workers_.CallJudge(std::move(request), kJudgeTimeoutS + 30));
  if (!reply.has_prepared()) return base::Internal("the judge answered Prepare with something else");
  v1::internal::Prepared prepared = std::move(*reply.mutable_prepared());
  if (prepared.verdict() != v1::VERDICT_UNSPECIFIED && prepared.verdict() != v1::PASSED) {
    job.result->set_verdict(prepared.verdict());
    job.result->set_reason(prepared.reason());
    job.result->set_mend(prepared.mend());
  } else if (prepared.slots_size() == 0) {
    return base::Internal("the judge prepared no slot");
  }
  return prepared;
}

StatusOr<RunOutcome> DeviceSlot::RunOnce(Job& job, const v1::internal::Prepared& prepared, bool sanitize) {
  RunOutcome outcome;
  SOLSTICE_RETURN_IF_ERROR(workers_.EnsureRunner(job.planned().plan.program(), job.program(), &outcome));
  if (outcome.kind() != RunOutcome::KIND_UNSPECIFIED) return outcome;
  const double left_s = std::max(job.runnable.timeout_s - job.result->run_milliseconds() * 1e-3, 0.05);
  WorkerRequest request;
  auto* run = request.mutable_run();
  *run->mutable_plan() = prepared.plan();
  *run->mutable_slot() = prepared.slots(0);
  run->set_timeout_s(left_s);
  run->set_instruction_budget(job.runnable.instruction_budget);
  run->set_sanitize(sanitize);
  base::Stopwatch watch;
  auto reply = workers_.CallRunner(std::move(request), left_s + kKillGraceS);
  if (absl::IsDeadlineExceeded(reply.status())) {
    // It did not end by itself: what it did is unknown, but its time is up.
    outcome.set_kind(RunOutcome::TIMEOUT);
    outcome.set_reason(base::StrCat("no answer after ", left_s, " s; the runner was killed"));
    return outcome;
  }
  if (!reply.ok()) return reply.status();
  if (!reply->has_outcome()) return base::Internal("the runner answered with something else than an outcome");
  job.phases->run_ms += watch.milliseconds();
  return reply->outcome();
}

Status DeviceSlot::Fail(Job& job, const RunOutcome& outcome) {
  SetOutcome(outcome, job.result);
  if (outcome.kind() == RunOutcome::FAULT || outcome.kind() == RunOutcome::TIMEOUT) ++runner_deaths_;
  // A device that faulted is not used again. Nothing measures now, and the next workload needs another runner.
  workers_.DropRunner();
  workers_.StartSpare();
  runner_warm_ = false;
  return ReleaseBuffers();
}

StatusOr<bool> DeviceSlot::Verify(Job& job, const std::vector<int>& compare) {
  WorkerRequest request;
  auto* verify = request.mutable_verify();
  for (int slot : compare) verify->add_compare(slot);
  SOLSTICE_ASSIGN_OR_RETURN(auto reply, workers_.CallJudge(std::move(request), kJudgeTimeoutS));
  if (!reply.has_verified()) return base::Internal("the judge answered Verify with something else");
  const auto& verified = reply.verified();
  job.scratch_written_bytes = verified.scratch_written_bytes();
  for (const auto& output : verified.outputs()) {
    auto* outputs = job.result->mutable_outputs();
    auto same =
        std::find_if(outputs->begin(), outputs->end(), [&](const auto& o) { return o.name() == output.name(); });
    if (same == outputs->end()) {
      *outputs->Add() = output;
    } else {
      verify::MergeComparison(output, &*same);
    }
  }
  job.result->set_verdict(verified.verdict());
  job.result->set_reason(verified.reason());
  job.result->set_mend(verified.mend());
  return verified.verdict() == v1::PASSED;
}

StatusOr<bool> DeviceSlot::RunVariant(Job& job, int variant) {
  base::Stopwatch prepare_watch;
  SOLSTICE_ASSIGN_OR_RETURN(auto prepared, Prepare(job, variant, 0));
  const double prepare_ms = prepare_watch.milliseconds();
  job.phases->prepare_ms += prepare_ms;
  if (prepared.slots_size() == 0) return false;
  job.operations = prepared.plan().operations_size();
  job.reference_ms = job.reference_ms == 0 ? prepare_ms : std::min(job.reference_ms, prepare_ms);

  // Once is enough: what is found does not depend on values, but for branches.
  auto outcome = RunOnce(job, prepared, variant == 0 && properties_.kind() == v1::EMULATOR);
  if (!outcome.ok()) {
    Status released = ReleaseBuffers();
    if (!released.ok()) spdlog::warn("{}", base::MessageOf(released));
    return outcome.status();
  }
  v1::WorkloadResult* result = job.result;
  result->set_run_milliseconds(result->run_milliseconds() + outcome->milliseconds());
  result->set_instructions(result->instructions() + outcome->instructions());
  if (result->device_output().empty()) result->set_device_output(outcome->device_output());
  result->mutable_findings()->MergeFrom(outcome->findings());
  if (outcome->kind() != RunOutcome::OK) {
    SOLSTICE_RETURN_IF_ERROR(Fail(job, *outcome));
    return false;
  }
  job.run_ms = job.run_ms == 0 ? outcome->milliseconds() : std::min(job.run_ms, outcome->milliseconds());
  base::Stopwatch verify_watch;
  SOLSTICE_ASSIGN_OR_RETURN(bool passed, Verify(job, {}));
  job.phases->verify_ms += verify_watch.milliseconds();
  return passed;
}

StatusOr<v1::WorkloadResult> DeviceSlot::RunWorkload(const Runnable& runnable, size_t index, SlotPhases* phases) {
  v1::WorkloadResult result = EmptyResult(runnable, index);
  const WorkloadPlan& planned = runnable.solution.workloads[index];
  const WorkloadPlan& reference = runnable.reference.workloads[index];
  auto reject = [&](v1::Verdict verdict, const std::string& reason, const std::string& mend) {
    result.set_verdict(verdict);
    result.set_reason(reason);
    result.set_mend(mend);
    return result;
  };
  if (planned.rejection.rejected()) {
    return reject(planned.rejection.verdict, planned.rejection.reason, planned.rejection.mend);
  }
  const auto& program = runnable.programs[static_cast<size_t>(planned.plan.program())];
  if (program.verdict() != v1::PASSED) return reject(program.verdict(), program.reason(), program.mend());
  if (reference.rejection.rejected()) {
    return reject(v1::INVALID_REFERENCE, "the definition's reference: " + reference.rejection.reason,
                  reference.rejection.mend);
  }
  const auto& reference_program = runnable.reference_programs[static_cast<size_t>(reference.plan.program())];
  if (reference_program.verdict() != v1::PASSED) {
    return reject(v1::INVALID_REFERENCE, "the definition's reference: " + reference_program.reason(),
                  reference_program.mend());
  }
  if (runner_deaths_ >= kMaxRunnerDeaths) {
    return reject(v1::SKIPPED, base::StrCat("not run: ", kMaxRunnerDeaths, " workloads before it ended their process"),
                  "mend those first");
  }

  Job job{runnable, index, phases, &result};
  bool goes_on = true;
  int right = 0;
  for (int variant = 0; variant < kVariants && goes_on; ++variant) {
    SOLSTICE_RETURN_IF_ERROR(EnsureJudge(runnable));
    SOLSTICE_ASSIGN_OR_RETURN(goes_on, RunVariant(job, variant));
    if (goes_on) ++right;
  }
  if (goes_on && job.operations > 0 && runnable.timer != v1::TIMER_NONE) {
    base::Stopwatch watch;
    result.set_freshness(FreshnessOf(runnable.definition, planned.workload));
    SOLSTICE_RETURN_IF_ERROR(TimeWorkload(job));
    phases->time_ms += watch.milliseconds();
  }
  if (!result.outputs().empty()) {
    result.set_compared(true);
    result.set_matched_ratio(1);
    for (const auto& output : result.outputs()) {
      result.set_max_absolute_error(std::max(result.max_absolute_error(), output.max_absolute_error()));
      result.set_max_relative_error(std::max(result.max_relative_error(), output.max_relative_error()));
      result.set_matched_ratio(std::min(result.matched_ratio(), output.matched_ratio()));
    }
  }
  if (!program.device_state().empty()) {
    JudgeDeviceState(program.device_state(0), runnable.allow_device_state, right > 0, &result);
  }
  JudgeFindings(runnable.strict, &result);
  // A latency is published for right answers only.
  if (result.verdict() != v1::PASSED) {
    result.clear_latency_ns();
    result.clear_latency_samples();
    result.clear_statistics();
    result.clear_samples_ns();
  }
  return result;
}

Status DeviceSlot::Run(const Runnable& runnable, const OnResult& on_result, const OnProgress& on_progress,
                       SlotPhases* phases) {
  runner_deaths_ = 0;
  runner_warm_ = false;
  workers_.DropRunner();
  const double waited_ms = workers_.runner_wait_ms();
  bool restarted = false;
  SOLSTICE_RETURN_IF_ERROR(workers_.EnsureJudge(&restarted));
  SOLSTICE_RETURN_IF_ERROR(LoadReferences(runnable));
  auto judge_all = [&]() -> Status {
    const size_t count = runnable.solution.workloads.size();
    for (size_t i = 0; i < count; ++i) {
      if (workers_.cancelled()) return base::Cancelled("cancelled");
      on_progress("run", runnable.solution.workloads[i].workload.uuid(), static_cast<int>(i));
      auto result = RunWorkload(runnable, i, phases);
      if (!result.ok() && workers_.cancelled()) return base::Cancelled("cancelled");
      if (!result.ok()) return result.status();
      SOLSTICE_RETURN_IF_ERROR(on_result(*result));
    }
    return absl::OkStatus();
  };
  Status status = judge_all();
  phases->runner_ms += workers_.runner_wait_ms() - waited_ms;
  // Still under the lease: nothing measures now.
  workers_.DropRunner();
  workers_.StartSpare();
  return status;
}

}  // namespace solstice::pipeline
