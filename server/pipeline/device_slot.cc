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
constexpr std::chrono::seconds kStartTimeout(30);
// The reference runs here; generous, for a slow emulator.
constexpr double kJudgeTimeoutS = 300;
// A runner ends a run by itself at its deadline; this much later it is killed.
constexpr double kKillGraceS = 2;

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

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

}  // namespace

StatusOr<std::unique_ptr<DeviceSlot>> DeviceSlot::Start(sandbox::Spawner* spawner, worker::Installation installation,
                                                        v1::DeviceKind kind, int ordinal, int slot_index) {
  std::unique_ptr<DeviceSlot> slot(new DeviceSlot);
  slot->spawner_ = spawner;
  slot->installation_ = std::move(installation);
  slot->kind_ = kind;
  slot->ordinal_ = ordinal;
  slot->slot_index_ = slot_index;
  SOLSTICE_RETURN_IF_ERROR(slot->EnsureJudge());
  base::MutexLock lock(slot->mutex_);
  slot->properties_ = slot->judge_->hello().device();
  return slot;
}

Status DeviceSlot::EnsureJudge() {
  {
    base::MutexLock lock(mutex_);
    if (judge_ != nullptr && judge_->alive()) return absl::OkStatus();
    judge_.reset();
  }
  SOLSTICE_ASSIGN_OR_RETURN(auto spec, worker::JudgeProcess(installation_, kind_, ordinal_));
  SOLSTICE_ASSIGN_OR_RETURN(auto judge, worker::Client::Start(*spawner_, spec, kStartTimeout));
  base::MutexLock lock(mutex_);
  judge_ = std::move(judge);
  return absl::OkStatus();
}

bool DeviceSlot::cancelled() {
  base::MutexLock lock(mutex_);
  return cancelled_ || shut_down_;
}

void DeviceSlot::Arm() {
  base::MutexLock lock(mutex_);
  cancelled_ = false;
}

void DeviceSlot::KillWorkers() {
  if (runner_ != nullptr) runner_->Kill();
  if (judge_ != nullptr && judge_busy_) judge_->Kill();
}

void DeviceSlot::Cancel() {
  base::MutexLock lock(mutex_);
  cancelled_ = true;
  KillWorkers();
}

void DeviceSlot::Shutdown() {
  base::MutexLock lock(mutex_);
  shut_down_ = true;
  KillWorkers();
}

void DeviceSlot::DropRunner() {
  base::MutexLock lock(mutex_);
  runner_.reset();
  loaded_.clear();
}

StatusOr<WorkerReply> DeviceSlot::CallJudge(WorkerRequest request, std::vector<base::UniqueFd>* descriptors,
                                            double timeout_s) {
  worker::Client* judge = nullptr;
  {
    base::MutexLock lock(mutex_);
    // Buffers are given back even after a cancel.
    const bool release = request.has_verify() && request.verify().release();
    if (shut_down_ || (cancelled_ && !release)) return base::Cancelled("cancelled");
    if (judge_ == nullptr) return base::Unavailable("judge: it is gone");
    judge_busy_ = true;
    judge = judge_.get();
  }
  auto reply = judge->Call(std::move(request), {}, descriptors, Seconds(timeout_s));
  base::MutexLock lock(mutex_);
  judge_busy_ = false;
  if (!reply.ok()) {
    judge_.reset();
    return base::Annotate(reply.status(), "judge");
  }
  return reply;
}

Status DeviceSlot::ReleaseBuffers() {
  WorkerRequest request;
  request.mutable_verify()->set_release(true);
  return CallJudge(std::move(request), nullptr, kJudgeTimeoutS).status();
}

Status DeviceSlot::EnsureRunner(const Runnable& runnable, int program, RunOutcome* load_failure) {
  worker::Client* runner = nullptr;
  {
    base::MutexLock lock(mutex_);
    if (cancelled_ || shut_down_) return base::Cancelled("cancelled");
    runner = runner_.get();
  }
  if (runner == nullptr) {
    SOLSTICE_ASSIGN_OR_RETURN(auto spec, worker::RunnerJail(installation_, kind_, ordinal_, slot_index_));
    SOLSTICE_ASSIGN_OR_RETURN(auto started, worker::Client::Start(*spawner_, spec, kStartTimeout));
    base::MutexLock lock(mutex_);
    if (cancelled_ || shut_down_) return base::Cancelled("cancelled");
    runner_ = std::move(started);
    runner = runner_.get();
    loaded_.assign(runnable.programs.size(), false);
  }
  if (loaded_[static_cast<size_t>(program)]) return absl::OkStatus();
  const v1::internal::Program& compiled = runnable.programs[static_cast<size_t>(program)];
  WorkerRequest request;
  auto* load = request.mutable_load();
  load->set_program(program);
  load->set_ptx(compiled.ptx());
  load->set_cubin(compiled.cubin());
  *load->mutable_kernels() = compiled.kernels();
  SOLSTICE_ASSIGN_OR_RETURN(auto reply, runner->Call(std::move(request), {}, nullptr, Seconds(60)));
  if (reply.has_load_failure()) {
    *load_failure = reply.load_failure();
    DropRunner();
    return absl::OkStatus();
  }
  if (!reply.loaded()) return base::Internal("the runner did not load the program");
  loaded_[static_cast<size_t>(program)] = true;
  return absl::OkStatus();
}

StatusOr<RunOutcome> DeviceSlot::CallRunner(const Runnable& runnable, const v1::internal::BoundPlan& plan,
                                            const std::vector<base::UniqueFd>& descriptors, double timeout_s) {
  RunOutcome load_failure;
  SOLSTICE_RETURN_IF_ERROR(EnsureRunner(runnable, plan.program(), &load_failure));
  if (load_failure.kind() != RunOutcome::KIND_UNSPECIFIED) return load_failure;
  worker::Client* runner = nullptr;
  {
    base::MutexLock lock(mutex_);
    runner = runner_.get();
  }
  WorkerRequest request;
  auto* run = request.mutable_run();
  *run->mutable_plan() = plan;
  run->set_timeout_s(timeout_s);
  run->set_instruction_budget(runnable.instruction_budget);
  std::vector<int> fds;
  fds.reserve(descriptors.size());
  for (const auto& fd : descriptors) fds.push_back(fd.get());
  auto reply = runner->Call(std::move(request), fds, nullptr, Seconds(timeout_s + kKillGraceS));
  if (absl::IsDeadlineExceeded(reply.status())) {
    // It did not end by itself: what it did is unknown, but its time is up.
    DropRunner();
    RunOutcome outcome;
    outcome.set_kind(RunOutcome::TIMEOUT);
    outcome.set_reason(base::StrCat("no answer after ", timeout_s, " s; the runner was killed"));
    return outcome;
  }
  if (!reply.ok()) {
    DropRunner();
    return base::Annotate(reply.status(), "runner");
  }
  if (!reply->has_outcome()) return base::Internal("the runner answered with something else than an outcome");
  return reply->outcome();
}

StatusOr<bool> DeviceSlot::RunVariant(const Runnable& runnable, size_t index, int variant, SlotPhases* phases,
                                      v1::WorkloadResult* result) {
  const WorkloadPlan& planned = runnable.solution.workloads[index];
  WorkerRequest request;
  auto* prepare = request.mutable_prepare();
  *prepare->mutable_definition() = runnable.definition;
  *prepare->mutable_workload() = planned.workload;
  *prepare->mutable_plan() = planned.plan;
  *prepare->mutable_kernels() = runnable.programs[static_cast<size_t>(planned.plan.program())].kernels();
  *prepare->mutable_reference_plan() = runnable.reference.workloads[index].plan;
  prepare->set_seed(FirstU64(base::HmacSha256(runnable.seed, planned.workload.uuid())));
  prepare->set_structure_seed(FirstU64(base::Sha256("structure/" + planned.workload.uuid())));
  prepare->set_variant(variant);
  prepare->set_timeout_s(kJudgeTimeoutS);
  prepare->set_debug_pointer_shift_bytes(runnable.debug_pointer_shift_bytes);
  std::vector<base::UniqueFd> descriptors;
  base::Stopwatch prepare_watch;
  SOLSTICE_ASSIGN_OR_RETURN(auto reply, CallJudge(std::move(request), &descriptors, kJudgeTimeoutS + 30));
  phases->prepare_ms += prepare_watch.milliseconds();
  if (!reply.has_prepared()) return base::Internal("the judge answered Prepare with something else");
  const auto& prepared = reply.prepared();
  if (prepared.verdict() != v1::VERDICT_UNSPECIFIED && prepared.verdict() != v1::PASSED) {
    result->set_verdict(prepared.verdict());
    result->set_reason(prepared.reason());
    result->set_mend(prepared.mend());
    return false;
  }

  const double left_s = runnable.timeout_s - result->run_milliseconds() * 1e-3;
  base::Stopwatch run_watch;
  auto outcome = CallRunner(runnable, prepared.plan(), descriptors, std::max(left_s, 0.05));
  phases->run_ms += run_watch.milliseconds();
  descriptors.clear();
  if (!outcome.ok()) {
    Status released = ReleaseBuffers();
    if (!released.ok()) spdlog::warn("{}", base::MessageOf(released));
    return outcome.status();
  }
  result->set_run_milliseconds(result->run_milliseconds() + outcome->milliseconds());
  result->set_instructions(result->instructions() + outcome->instructions());
  if (result->device_output().empty()) result->set_device_output(outcome->device_output());
  if (outcome->kind() != RunOutcome::OK) {
    SetOutcome(*outcome, result);
    if (outcome->kind() == RunOutcome::FAULT || outcome->kind() == RunOutcome::TIMEOUT) ++runner_deaths_;
    // A device that faulted is not used again.
    DropRunner();
    SOLSTICE_RETURN_IF_ERROR(ReleaseBuffers());
    return false;
  }

  WorkerRequest verify;
  verify.mutable_verify();
  base::Stopwatch verify_watch;
  SOLSTICE_ASSIGN_OR_RETURN(auto verified_reply, CallJudge(std::move(verify), nullptr, kJudgeTimeoutS));
  phases->verify_ms += verify_watch.milliseconds();
  if (!verified_reply.has_verified()) return base::Internal("the judge answered Verify with something else");
  const auto& verified = verified_reply.verified();
  for (const auto& output : verified.outputs()) {
    auto* outputs = result->mutable_outputs();
    auto same =
        std::find_if(outputs->begin(), outputs->end(), [&](const auto& o) { return o.name() == output.name(); });
    if (same == outputs->end()) {
      *outputs->Add() = output;
    } else {
      verify::MergeComparison(output, &*same);
    }
  }
  result->set_verdict(verified.verdict());
  result->set_reason(verified.reason());
  result->set_mend(verified.mend());
  return verified.verdict() == v1::PASSED;
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

  for (int variant = 0; variant < kVariants; ++variant) {
    SOLSTICE_ASSIGN_OR_RETURN(bool goes_on, RunVariant(runnable, index, variant, phases, &result));
    if (!goes_on) break;
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
  if (result.verdict() == v1::PASSED && !program.device_state().empty()) {
    const auto& state = program.device_state(0);
    std::string what =
        base::StrCat("device_state: variable '", state.variable(), "' keeps state between launches (",
                     state.file().empty() ? "" : base::StrCat("written at ", state.file(), ":"), state.line(), ")");
    if (runnable.allow_device_state) {
      result.add_warnings(what + "; allowed by request, the result is unranked");
    } else {
      return reject(v1::REWARD_HACK, what,
                    "pass what a launch needs through scratch buffers, or use --allow-device-state (unranked)");
    }
  }
  return result;
}

Status DeviceSlot::Run(const Runnable& runnable, const OnResult& on_result, const OnProgress& on_progress,
                       SlotPhases* phases) {
  runner_deaths_ = 0;
  DropRunner();
  SOLSTICE_RETURN_IF_ERROR(EnsureJudge());
  for (size_t i = 0; i < runnable.reference_programs.size(); ++i) {
    const auto& program = runnable.reference_programs[i];
    if (program.verdict() != v1::PASSED) continue;
    WorkerRequest request;
    auto* load = request.mutable_load();
    load->set_program(static_cast<int>(i));
    load->set_ptx(program.ptx());
    load->set_cubin(program.cubin());
    *load->mutable_kernels() = program.kernels();
    SOLSTICE_RETURN_IF_ERROR(CallJudge(std::move(request), nullptr, kJudgeTimeoutS).status());
  }
  const size_t count = runnable.solution.workloads.size();
  for (size_t i = 0; i < count; ++i) {
    if (cancelled()) return base::Cancelled("cancelled");
    on_progress("run", runnable.solution.workloads[i].workload.uuid(), static_cast<int>(i));
    auto result = RunWorkload(runnable, i, phases);
    if (!result.ok() && cancelled()) result = base::Cancelled("cancelled");
    if (!result.ok()) {
      DropRunner();
      return result.status();
    }
    SOLSTICE_RETURN_IF_ERROR(on_result(*result));
  }
  DropRunner();
  return absl::OkStatus();
}

}  // namespace solstice::pipeline
