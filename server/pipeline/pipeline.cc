#include "server/pipeline/pipeline.h"

#include <spdlog/spdlog.h>

#include <atomic>
#include <future>
#include <map>
#include <thread>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/plan/plan.h"
#include "runtime/verify/verify.h"
#include "server/pipeline/compile_stage.h"
#include "server/pipeline/compiler_pool.h"
#include "server/pipeline/device_slot.h"
#include "server/pipeline/devices.h"
#include "server/pipeline/host.h"
#include "server/pipeline/identity.h"
#include "server/pipeline/programs.h"
#include "server/pipeline/start_slots.h"
#include "server/queue/queue.h"
#include "server/state/transition.h"

namespace solstice::pipeline {
namespace {

constexpr std::chrono::seconds kPollInterval(1);
constexpr std::chrono::seconds kProbeTimeout(20);  // below a client's patience for Server.GetInfo

// An evaluation between its stages.
struct Job {
  Runnable runnable;
  v1::Evaluation result;  // what Complete will store, filled as stages end
  std::string cache_key;
  bool covers_all = false;
  int64_t started_ns = 0;
};

v1::ErrorStatus ErrorOf(const Status& status) {
  v1::ErrorStatus error;
  error.set_code(static_cast<int>(status.code()));
  error.set_reason(base::MessageOf(status));
  error.set_mend(base::MendOf(status));
  return error;
}

// Whether the same request would end so again. The definition's fault is no fact about the submission, and what ran
// into a limit of time or of the compiler may pass on a quieter machine.
bool IsRepeatable(const v1::Evaluation& result) {
  for (const auto& workload : result.workloads()) {
    if (workload.verdict() == v1::TIMEOUT || workload.verdict() == v1::INVALID_REFERENCE) return false;
    if (workload.verdict() == v1::COMPILE_ERROR && workload.reason().rfind("compile ", 0) == 0) return false;
    if (workload.verdict() == v1::REWARD_HACK && workload.reason().rfind(kJudgeClock, 0) == 0) return false;
  }
  return true;
}

bool MatchesDevice(v1::DeviceKind wanted, int ordinal, const v1::DeviceProperties& device) {
  if (wanted != v1::DEVICE_KIND_UNSPECIFIED && wanted != device.kind()) return false;
  return ordinal < 0 || ordinal == device.ordinal();
}

// The emulator has no latencies: its protocol has one name whatever was asked for.
v1::Timer ProtocolTimer(const v1::DeviceProperties& device, v1::Timer timer) {
  return device.kind() == v1::EMULATOR ? v1::TIMER_UNSPECIFIED : timer;
}

int WantedOrdinal(const v1::EvaluationOptions& options) {
  return options.has_device_ordinal() ? options.device_ordinal() : -1;
}

class PipelineImpl : public Pipeline {
 public:
  PipelineImpl(const Options& options, const catalog::Catalog* catalog, state::Evaluations* evaluations,
               store::Store* store, const base::Clock* clock)
      : options_(options),
        catalog_(catalog),
        evaluations_(evaluations),
        store_(store),
        clock_(clock),
        host_([this] { return worker::ProbeHost(*spawner_, installation_, kProbeTimeout); }, clock),
        compile_queue_(options.queue_capacity),
        ready_queue_(options.queue_capacity) {}

  ~PipelineImpl() override { Shutdown(); }

  Status Start() {
    Status prepared = Prepare();
    // A file of ours: NOT_FOUND is kept for devices.
    if (absl::IsNotFound(prepared)) return base::FailedPrecondition(base::MessageOf(prepared), base::MendOf(prepared));
    SOLSTICE_RETURN_IF_ERROR(prepared);
    SOLSTICE_ASSIGN_OR_RETURN(DeviceChoice choice, ChooseDevices(options_.devices, host_.probe()));
    for (const std::string& note : choice.notes) spdlog::warn("{}", note);
    Status started = StartSlots(choice.devices);
    if (absl::IsNotFound(started)) return base::FailedPrecondition(base::MessageOf(started), base::MendOf(started));
    SOLSTICE_RETURN_IF_ERROR(started);
    environment_ = spawner_->Enforced();
    for (const DeviceSpec& device : choice.devices) {
      if (!device.pageable_memory_access) continue;
      environment_.push_back("pageable-memory-access=on");
      break;
    }
    if (options_.debug_pointer_shift_bytes != 0) {
      // Part of every result key, so that no result of such a server is taken for an honest one.
      environment_.push_back(base::StrCat("debug-pointer-shift=", options_.debug_pointer_shift_bytes));
    }
    for (int i = 0; i < options_.compile_workers; ++i) threads_.emplace_back([this] { CompileLoop(); });
    for (auto& runner : runners_) {
      threads_.emplace_back([this, pointer = runner.get()] { RunLoop(*pointer); });
    }
    return absl::OkStatus();
  }

  Status Admit(const v1::EvaluationOptions& options) override {
    if (options.timeout_s() > options_.max_timeout_s) {
      return base::InvalidArgument(
          base::StrCat("options.timeout_s: ", options.timeout_s(), " s, this server allows ", options_.max_timeout_s));
    }
    const DeviceSlot* slot = FindDevice(options);
    if (slot != nullptr) SOLSTICE_RETURN_IF_ERROR(slot->ChooseTimer(options.timer()).status());
    if (slot == nullptr) {
      std::vector<std::string> names;
      for (const auto& runner : runners_) {
        const v1::DeviceProperties& device = runner->slot->properties();
        names.push_back(DeviceLabel(device.kind(), device.ordinal()));
      }
      return base::FailedPrecondition("no device here suits the request",
                                      base::StrCat("this server has: ", base::Join(names, ", ")));
    }
    if (compile_queue_.Full()) {
      return base::ResourceExhausted(base::StrCat("the queue is full (", options_.queue_capacity, " evaluations)"),
                                     "try again in a few seconds");
    }
    return absl::OkStatus();
  }

  void Enqueue(const v1::Evaluation& evaluation) override {
    queue::Entry entry;
    entry.tenant = evaluation.tenant();
    entry.id = evaluation.id();
    entry.attempt = evaluation.attempt();
    Status status = compile_queue_.Push(std::move(entry), /*force=*/true);
    // Only after Shutdown: the store still has it, and the next start takes it up.
    if (!status.ok()) spdlog::info("{} stays queued in the store: {}", evaluation.id(), base::MessageOf(status));
  }

  void Cancel(const std::string& tenant, const std::string& id) override {
    compile_queue_.Remove(tenant, id);
    ready_queue_.Remove(tenant, id);
    {
      base::MutexLock lock(mutex_);
      jobs_.erase(id);
    }
    pool_->Kill(id);
    for (auto& runner : runners_) {
      base::MutexLock lock(runner->mutex);
      if (runner->current == id) runner->slot->Cancel();
    }
  }

  StatusOr<v1::CompileResponse> Compile(const std::string& tenant, const v1::CompileRequest& request) override;

  v1::ServerInfo Info(bool probe) override {
    if (probe && running_.load() == 0 && !shut_down_.load()) host_.LookAgain();
    v1::ServerInfo info;
    info.set_toolkit_root(installation_.toolkit_root);
    info.set_header_pack(installation_.header_pack);
    host_.Describe(&info);
    info.set_build_id(options_.build_id);
    info.set_protocol(kProtocol);
    *info.mutable_toolchain() = pool_->toolchain();
    for (const auto& runner : runners_) *info.add_devices() = runner->slot->properties();
    for (const auto& item : environment_) info.add_environment(item);
    info.set_queued(compile_queue_.size() + ready_queue_.size());
    info.set_running(running_.load());
    info.set_definitions(static_cast<int>(catalog_->All().size()));
    return info;
  }

  void Shutdown() override {
    if (shut_down_.exchange(true)) return;
    compile_queue_.Close();
    ready_queue_.Close();
    if (pool_ != nullptr) pool_->Shutdown();
    for (auto& runner : runners_) runner->slot->Shutdown();
    for (auto& thread : threads_) thread.join();
    threads_.clear();
  }

 private:
  struct Runner {
    DeviceSpec spec;
    std::unique_ptr<DeviceSlot> slot;
    base::Mutex mutex;
    std::string current SOLSTICE_GUARDED_BY(mutex);
  };

  // What does not depend on the choice of devices; the host is looked at meanwhile.
  Status Prepare() {
    SOLSTICE_ASSIGN_OR_RETURN(server_key_, state::ServerKey(store_));
    SOLSTICE_ASSIGN_OR_RETURN(installation_, worker::FindInstallation());
    SOLSTICE_ASSIGN_OR_RETURN(spawner_, sandbox::Spawner::Create({}));
    auto look = std::async(std::launch::async, [this] { host_.Look(); });
    auto pool = CompilerPool::Start(spawner_.get(), installation_, store_, options_.compile_workers,
                                    options_.compile_timeout_s);
    look.get();
    SOLSTICE_ASSIGN_OR_RETURN(pool_, std::move(pool));
    return absl::OkStatus();
  }

  Status StartSlots(const std::vector<DeviceSpec>& devices) {
    SOLSTICE_ASSIGN_OR_RETURN(auto slots,
                              StartDeviceSlots(spawner_.get(), installation_, *pool_, host_.probe(), devices));
    for (size_t i = 0; i < devices.size(); ++i) {
      auto runner = std::make_unique<Runner>();
      runner->spec = devices[i];
      runner->slot = std::move(slots[i]);
      runners_.push_back(std::move(runner));
    }
    return absl::OkStatus();
  }

  const DeviceSlot* FindDevice(const v1::EvaluationOptions& options) const {
    for (const auto& runner : runners_) {
      if (MatchesDevice(options.device_kind(), WantedOrdinal(options), runner->slot->properties())) {
        return runner->slot.get();
      }
    }
    return nullptr;
  }

  void CompileLoop();
  void RunLoop(Runner& runner);
  Status CompileOne(const queue::Entry& entry);
  Status RunOne(Runner& runner, Job& job);
  StatusOr<bool> AnswerFromCache(const queue::Entry& entry, const v1::Evaluation& evaluation, const std::string& key,
                                 const v1::DeviceProperties& device);
  Status Finish(const Runner& runner, Job& job);
  // What to do after a stage's Status: nothing when the evaluation was cancelled or we shut down, else give up the
  // attempt.
  void HandleFailure(const std::string& tenant, const std::string& id, int attempt, const Status& status);

  const Options options_;
  const catalog::Catalog* const catalog_;
  state::Evaluations* const evaluations_;
  store::Store* const store_;
  const base::Clock* const clock_;
  std::string server_key_;
  worker::Installation installation_;
  std::unique_ptr<sandbox::Spawner> spawner_;
  Host host_;
  std::unique_ptr<CompilerPool> pool_;
  std::vector<std::unique_ptr<Runner>> runners_;
  std::vector<std::string> environment_;
  queue::Queue compile_queue_, ready_queue_;
  std::atomic<int> running_{0};
  std::atomic<bool> shut_down_{false};
  base::Mutex mutex_;
  std::map<std::string, std::unique_ptr<Job>> jobs_ SOLSTICE_GUARDED_BY(mutex_);  // WAITING, by id
  std::vector<std::thread> threads_;
};

void PipelineImpl::HandleFailure(const std::string& tenant, const std::string& id, int attempt, const Status& status) {
  if (shut_down_.load()) return;
  auto evaluation = evaluations_->Get(tenant, id);
  if (!evaluation.ok() || state::IsFinal(evaluation->state()) || evaluation->attempt() != attempt) return;
  spdlog::warn("{} attempt {} given up: {}", id, attempt, base::MessageOf(status));
  auto next = evaluations_->GiveUpAttempt(tenant, id, attempt, ErrorOf(status), options_.max_attempts);
  if (!next.ok()) {
    spdlog::error("{}: cannot record the failure: {}", id, base::MessageOf(next.status()));
  } else if (next->state() == v1::QUEUED) {
    Enqueue(*next);
  }
}

void PipelineImpl::CompileLoop() {
  while (!shut_down_.load()) {
    auto entry = compile_queue_.Pop([](const queue::Entry&) { return true; }, kPollInterval);
    if (!entry.has_value()) continue;
    running_.fetch_add(1);
    Status status = CompileOne(*entry);
    running_.fetch_sub(1);
    if (!status.ok()) HandleFailure(entry->tenant, entry->id, entry->attempt, status);
  }
}

StatusOr<bool> PipelineImpl::AnswerFromCache(const queue::Entry& entry, const v1::Evaluation& evaluation,
                                             const std::string& key, const v1::DeviceProperties& device) {
  auto found = evaluations_->CachedResult(entry.tenant, key);
  if (absl::IsNotFound(found.status())) return false;
  if (!found.ok()) return found.status();
  v1::Evaluation result = *found;
  result.set_cached(true);
  *result.mutable_device() = device;
  result.clear_phases();
  result.mutable_phases()->set_total_ms(static_cast<double>(clock_->NowUnixNs() -
                                                            evaluation.created().seconds() * 1000000000 -
                                                            evaluation.created().nanos()) *
                                        1e-6);
  return evaluations_->Complete(entry.tenant, entry.id, entry.attempt, result, "").status().ok();
}

Status PipelineImpl::CompileOne(const queue::Entry& entry) {
  SOLSTICE_ASSIGN_OR_RETURN(auto evaluation, evaluations_->Get(entry.tenant, entry.id));
  if (evaluation.state() != v1::QUEUED || evaluation.attempt() != entry.attempt) return absl::OkStatus();
  CompileStageInput input;
  input.tenant = entry.tenant;
  input.id = entry.id;
  input.attempt = entry.attempt;
  SOLSTICE_ASSIGN_OR_RETURN(input.submission, evaluations_->Submission(entry.tenant, entry.id));
  SOLSTICE_ASSIGN_OR_RETURN(input.bundle, evaluations_->Bundle(entry.tenant, input.submission.definition_digest()));
  const v1::EvaluationOptions& options = input.submission.options();
  const DeviceSlot* slot = FindDevice(options);
  if (slot == nullptr) return base::FailedPrecondition("the device that this evaluation was accepted for is gone");
  input.device = slot->properties();

  auto job = std::make_unique<Job>();
  job->started_ns = clock_->NowUnixNs();
  input.workloads = ChooseWorkloads(input.bundle, options, input.device.kind() == v1::EMULATOR, &job->covers_all);
  const double timeout_s = options.timeout_s() > 0 ? options.timeout_s() : options_.default_timeout_s;
  SOLSTICE_ASSIGN_OR_RETURN(const v1::Timer timer, slot->ChooseTimer(options.timer()));
  ResultIdentity identity{evaluation.solution_digest(),
                          input.bundle.digest(),
                          input.workloads,
                          options,
                          ProtocolName(ProtocolTimer(input.device, timer)),
                          timeout_s,
                          options_.instruction_budget,
                          input.device,
                          pool_->toolchain(),
                          options_.build_id,
                          environment_};
  const std::string key = ResultKey(identity);
  if (!options.no_cache()) {
    SOLSTICE_ASSIGN_OR_RETURN(bool answered, AnswerFromCache(entry, evaluation, key, input.device));
    if (answered) return absl::OkStatus();
    job->cache_key = key;
  }

  SOLSTICE_RETURN_IF_ERROR(evaluations_->Advance(entry.tenant, entry.id, entry.attempt, v1::COMPILING).status());
  base::Stopwatch watch(*clock_);
  SOLSTICE_ASSIGN_OR_RETURN(auto output, RunCompileStage(*pool_, input));
  job->runnable = std::move(output.runnable);
  job->runnable.timeout_s = timeout_s;
  job->runnable.timer = timer;
  job->runnable.definition_digest = input.bundle.digest();
  job->runnable.debug_pointer_shift_bytes = options_.debug_pointer_shift_bytes;
  job->runnable.instruction_budget = input.device.kind() == v1::EMULATOR ? options_.instruction_budget : 0;
  job->runnable.seed = base::HmacSha256(server_key_, base::StrCat(entry.id, "/", entry.attempt));
  v1::Evaluation& result = job->result;
  *result.mutable_compile() = output.report;
  *result.mutable_device() = input.device;
  result.set_seed(base::Hex(job->runnable.seed));
  result.set_result_key(key);
  result.set_protocol(identity.protocol);
  for (const auto& item : environment_) result.add_environment(item);
  const int64_t created_ns = evaluation.created().seconds() * 1000000000 + evaluation.created().nanos();
  result.mutable_phases()->set_queued_ms(static_cast<double>(job->started_ns - created_ns) * 1e-6);
  result.mutable_phases()->set_compile_ms(watch.milliseconds());
  job->started_ns = created_ns;
  SOLSTICE_RETURN_IF_ERROR(evaluations_->AppendCompile(entry.tenant, entry.id, entry.attempt, output.report));
  SOLSTICE_RETURN_IF_ERROR(evaluations_->Advance(entry.tenant, entry.id, entry.attempt, v1::WAITING).status());
  {
    base::MutexLock lock(mutex_);
    jobs_[entry.id] = std::move(job);
  }
  queue::Entry ready = entry;
  ready.device_kind = options.device_kind();
  ready.device_ordinal = WantedOrdinal(options);
  // Refused only after Close: recovery takes it up.
  ready_queue_.Push(std::move(ready), /*force=*/true).IgnoreError();
  return absl::OkStatus();
}

void PipelineImpl::RunLoop(Runner& runner) {
  const v1::DeviceProperties device = runner.slot->properties();
  while (!shut_down_.load()) {
    auto entry = ready_queue_.Pop(
        [&](const queue::Entry& e) { return MatchesDevice(e.device_kind, e.device_ordinal, device); }, kPollInterval);
    if (!entry.has_value()) continue;
    std::unique_ptr<Job> job;
    {
      base::MutexLock lock(mutex_);
      auto found = jobs_.find(entry->id);
      if (found != jobs_.end()) {
        job = std::move(found->second);
        jobs_.erase(found);
      }
    }
    if (job == nullptr) continue;  // cancelled
    running_.fetch_add(1);
    {
      base::MutexLock lock(runner.mutex);
      runner.slot->Arm();
      runner.current = entry->id;
    }
    Status status = RunOne(runner, *job);
    {
      base::MutexLock lock(runner.mutex);
      runner.current.clear();
    }
    running_.fetch_sub(1);
    if (!status.ok()) HandleFailure(entry->tenant, entry->id, entry->attempt, status);
  }
}

Status PipelineImpl::RunOne(Runner& runner, Job& job) {
  const Runnable& runnable = job.runnable;
  SOLSTICE_RETURN_IF_ERROR(evaluations_->Advance(runnable.tenant, runnable.id, runnable.attempt, v1::RUNNING).status());
  SlotPhases phases;
  const int total = static_cast<int>(runnable.solution.workloads.size());
  auto on_result = [&](const v1::WorkloadResult& result) {
    *job.result.add_workloads() = result;
    return evaluations_->AppendWorkload(runnable.tenant, runnable.id, runnable.attempt, result);
  };
  auto on_progress = [&](const char* stage, const std::string& workload, int done) {
    v1::Progress progress;
    progress.set_stage(stage);
    progress.set_workload(workload);
    progress.set_done(done);
    progress.set_total(total);
    evaluations_->PublishProgress(runnable.tenant, runnable.id, progress);
  };
  SOLSTICE_RETURN_IF_ERROR(runner.slot->Run(runnable, on_result, on_progress, &phases));
  auto* times = job.result.mutable_phases();
  times->set_prepare_ms(phases.prepare_ms);
  times->set_run_ms(phases.run_ms);
  times->set_verify_ms(phases.verify_ms);
  times->set_time_ms(phases.time_ms);
  times->set_runner_ms(phases.runner_ms);
  times->set_reference_ms(phases.reference_ms);
  return Finish(runner, job);
}

Status PipelineImpl::Finish(const Runner& runner, Job& job) {
  const Runnable& runnable = job.runnable;
  v1::Evaluation& result = job.result;
  verify::Summarise(&result);
  if (!job.covers_all) result.set_complete(false);
  result.set_ranked(result.device().kind() != v1::EMULATOR && result.complete() && !runnable.allow_device_state &&
                    runnable.timer == v1::TIMER_ACTIVITY && !runner.spec.pageable_memory_access);
  result.mutable_phases()->set_total_ms(static_cast<double>(clock_->NowUnixNs() - job.started_ns) * 1e-6);
  const std::string key = IsRepeatable(result) ? job.cache_key : "";
  return evaluations_->Complete(runnable.tenant, runnable.id, runnable.attempt, result, key).status();
}

StatusOr<v1::CompileResponse> PipelineImpl::Compile(const std::string& tenant, const v1::CompileRequest& request) {
  if (!request.has_solution()) return base::InvalidArgument("solution: missing");
  SOLSTICE_ASSIGN_OR_RETURN(auto solution, CheckSolution(request.solution()));
  v1::DeviceProperties device = runners_.front()->slot->properties();
  if (!request.arch().empty()) {
    SOLSTICE_RETURN_IF_ERROR(compile::CheckArch(request.arch()));
    device.set_arch(request.arch());
  }
  v1::internal::ProgramSource source;
  v1::CompileResponse response;
  if (request.has_definition_files() || !solution.definition().empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(
        auto bundle, FindBundle(solution, request.has_definition_files(), request.definition_files(), *catalog_,
                                options_.accept_inline_definitions));
    bool complete = false;
    auto workloads = ChooseWorkloads(bundle, {}, /*smoke=*/true, &complete);
    if (workloads.empty()) return base::FailedPrecondition("the definition has no workloads to specialise for");
    workloads.resize(1);
    SOLSTICE_ASSIGN_OR_RETURN(auto specialised, SpecialiseSolution(solution, bundle.definition(), workloads, device));
    const plan::Rejection& rejection = specialised.workloads[0].rejection;
    if (rejection.rejected()) {
      response.set_verdict(rejection.verdict);
      response.set_reason(rejection.reason);
      response.set_mend(rejection.mend);
      return response;
    }
    source = specialised.programs[0];
  } else {
    *source.mutable_sources() = solution.sources();
    *source.mutable_options() = solution.options();
    source.set_arch(device.arch());
    source.set_keep_all_entries(true);
  }
  base::Stopwatch watch;
  const std::string owner = "compile/" + base::Hex(base::RandomBytes(8));
  SOLSTICE_ASSIGN_OR_RETURN(auto compiled, pool_->Compile(tenant, owner, source));
  response.set_verdict(compiled.program.verdict());
  response.set_reason(compiled.program.reason());
  response.set_mend(compiled.program.mend());
  *response.mutable_report() = MakeReport({compiled.program}, compiled.cached, watch.milliseconds());
  if (request.emit_ptx()) response.set_ptx(compiled.program.ptx());
  if (request.emit_cubin()) response.set_cubin(compiled.program.cubin());
  return response;
}

}  // namespace

StatusOr<std::unique_ptr<Pipeline>> Pipeline::Start(const Options& options, const catalog::Catalog* catalog,
                                                    state::Evaluations* evaluations, store::Store* store,
                                                    const base::Clock* clock) {
  auto pipeline = std::make_unique<PipelineImpl>(options, catalog, evaluations, store, clock);
  SOLSTICE_RETURN_IF_ERROR(pipeline->Start());
  return std::unique_ptr<Pipeline>(std::move(pipeline));
}

}  // namespace solstice::pipeline
