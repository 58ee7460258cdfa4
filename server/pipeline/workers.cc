#include "server/pipeline/workers.h"

#include <spdlog/spdlog.h>

#include <chrono>

#include "runtime/base/clock.h"
#include "runtime/base/strings.h"

namespace solstice::pipeline {
namespace {

using v1::internal::BufferPlacement;
using v1::internal::RunOutcome;
using v1::internal::WorkerReply;
using v1::internal::WorkerRequest;

constexpr std::chrono::seconds kStartTimeout(60);
constexpr double kLoadTimeoutS = 60;

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(seconds));
}

void FillLoad(int index, const v1::internal::Program& program, v1::internal::LoadProgram* load) {
  load->set_program(index);
  load->set_ptx(program.ptx());
  load->set_cubin(program.cubin());
  *load->mutable_kernels() = program.kernels();
}

bool FoundBadReference(const WorkerReply& reply) {
  return (reply.has_prepared() && reply.prepared().verdict() == v1::INVALID_REFERENCE) ||
         (reply.has_verified() && reply.verified().verdict() == v1::INVALID_REFERENCE);
}

std::vector<const BufferPlacement*> BuffersOf(const v1::internal::Run& run) {
  std::vector<const BufferPlacement*> buffers;
  for (const BufferPlacement& buffer : run.slot().buffers()) buffers.push_back(&buffer);
  return buffers;
}

std::vector<const BufferPlacement*> BuffersOf(const v1::internal::Batch& batch) {
  std::vector<const BufferPlacement*> buffers = {&batch.clear()};
  for (const v1::internal::Slot& slot : batch.slots()) {
    for (const BufferPlacement& buffer : slot.buffers()) buffers.push_back(&buffer);
  }
  return buffers;
}

}  // namespace

Workers::Workers(Options options) : options_(std::move(options)) {}

Workers::~Workers() {
  if (spare_.valid()) spare_.wait();
}

bool Workers::cancelled() {
  base::MutexLock lock(mutex_);
  return cancelled_ || shut_down_;
}

void Workers::Arm() {
  base::MutexLock lock(mutex_);
  cancelled_ = false;
}

void Workers::KillWorkers() {
  if (runner_ != nullptr) runner_->Kill();
  if (judge_ != nullptr && judge_busy_) judge_->Kill();
}

void Workers::Cancel() {
  base::MutexLock lock(mutex_);
  cancelled_ = true;
  KillWorkers();
}

void Workers::Shutdown() {
  base::MutexLock lock(mutex_);
  shut_down_ = true;
  KillWorkers();
}

// ---- The judge -----------------------------------------------------------------------------------------------------

Status Workers::LoadTrusted(worker::Client& client) const {
  if (!options_.trusted.valid()) return absl::OkStatus();
  const StatusOr<v1::internal::Program>& program = options_.trusted.get();
  if (!program.ok()) return program.status();
  WorkerRequest request;
  FillLoad(worker::kTrustedKernels, *program, request.mutable_load());
  SOLSTICE_ASSIGN_OR_RETURN(WorkerReply reply, client.Call(std::move(request), {}, nullptr, Seconds(kLoadTimeoutS)));
  if (reply.loaded()) return absl::OkStatus();
  return base::Internal(base::StrCat("Solstice's own kernels cannot be loaded: ", reply.load_failure().reason()));
}

bool Workers::JudgeAlive() {
  base::MutexLock lock(mutex_);
  return judge_ != nullptr && judge_->alive();
}

Status Workers::EnsureJudge(bool* restarted) {
  *restarted = false;
  if (JudgeAlive()) return absl::OkStatus();
  {
    base::MutexLock lock(mutex_);
    judge_.reset();
  }
  // Its mappings are gone, and what a runner holds of them means nothing to the next one.
  DropRunner();
  descriptors_.clear();
  clear_.Clear();
  SOLSTICE_ASSIGN_OR_RETURN(auto spec, worker::JudgeProcess(options_.installation, options_.device));
  SOLSTICE_ASSIGN_OR_RETURN(auto judge, worker::Client::Start(*options_.spawner, spec, kStartTimeout));
  SOLSTICE_RETURN_IF_ERROR(LoadTrusted(*judge));
  if (spare_.valid()) spare_.wait();  // it reads hello_
  hello_ = judge->hello();
  *restarted = true;
  base::MutexLock lock(mutex_);
  judge_ = std::move(judge);
  return absl::OkStatus();
}

void Workers::KeepDescriptors(const v1::internal::Prepared& prepared, std::vector<base::UniqueFd> descriptors) {
  for (int64_t handle : prepared.dropped()) {
    descriptors_.erase(handle);
    if (runner_has_.erase(handle) > 0) forget_.push_back(handle);
  }
  for (int i = 0; i < prepared.described_size() && i < static_cast<int>(descriptors.size()); ++i) {
    descriptors_[prepared.described(i)] = std::move(descriptors[static_cast<size_t>(i)]);
  }
}

StatusOr<WorkerReply> Workers::CallJudge(WorkerRequest request, double timeout_s) {
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
  std::vector<base::UniqueFd> descriptors;
  auto reply = judge->Call(std::move(request), {}, &descriptors, Seconds(timeout_s));
  base::MutexLock lock(mutex_);
  judge_busy_ = false;
  if (!reply.ok()) {
    judge_.reset();
    return base::Annotate(reply.status(), "judge");
  }
  if (reply->has_prepared()) KeepDescriptors(reply->prepared(), std::move(descriptors));
  // A GPU's judge ends itself then.
  if (options_.device.kind == v1::CUDA && FoundBadReference(*reply)) judge_.reset();
  if (reply->has_clear_buffer() && descriptors.size() == 1) {
    descriptors_[reply->clear_buffer().buffer().handle()] = std::move(descriptors[0]);
  }
  return reply;
}

StatusOr<BufferPlacement> Workers::ClearBuffer() {
  if (clear_.handle() == 0) {
    WorkerRequest request;
    request.mutable_clear_buffer();
    SOLSTICE_ASSIGN_OR_RETURN(WorkerReply reply, CallJudge(std::move(request), kLoadTimeoutS));
    if (!reply.has_clear_buffer()) return base::Internal("the judge answered ClearBuffer with something else");
    clear_ = reply.clear_buffer().buffer();
  }
  return clear_;
}

// ---- The runner ----------------------------------------------------------------------------------------------------

Workers::Started Workers::StartRunner() const {
  SOLSTICE_ASSIGN_OR_RETURN(auto spec,
                            worker::RunnerJail(options_.installation, options_.device, hello_, options_.slot_index));
  SOLSTICE_ASSIGN_OR_RETURN(auto runner, worker::Client::Start(*options_.spawner, spec, kStartTimeout));
  SOLSTICE_RETURN_IF_ERROR(LoadTrusted(*runner));
  return runner;
}

void Workers::StartSpare() {
  if (spare_.valid()) return;
  spare_ = std::async(std::launch::async, [this] { return StartRunner(); });
}

bool Workers::HasRunner() {
  base::MutexLock lock(mutex_);
  return runner_ != nullptr;
}

void Workers::DropRunner() {
  {
    base::MutexLock lock(mutex_);
    runner_.reset();
  }
  loaded_.clear();
  runner_has_.clear();
  forget_.clear();
}

Status Workers::TakeSpare() {
  base::Stopwatch watch;
  StartSpare();
  Started started = spare_.get();
  // One that was started ahead may have died since.
  if (started.ok() && !(*started)->alive()) started = StartRunner();
  runner_wait_ms_ += watch.milliseconds();
  if (!started.ok()) return base::Annotate(started.status(), "runner");
  base::MutexLock lock(mutex_);
  if (cancelled_ || shut_down_) return base::Cancelled("cancelled");
  runner_ = *std::move(started);
  return absl::OkStatus();
}

Status Workers::EnsureRunner(int index, const v1::internal::Program& program, RunOutcome* load_failure) {
  if (cancelled()) return base::Cancelled("cancelled");
  if (!HasRunner()) SOLSTICE_RETURN_IF_ERROR(TakeSpare());
  const auto at = static_cast<size_t>(index);
  if (loaded_.size() <= at) loaded_.resize(at + 1, false);
  if (loaded_[at]) return absl::OkStatus();
  WorkerRequest request;
  FillLoad(index, program, request.mutable_load());
  SOLSTICE_ASSIGN_OR_RETURN(WorkerReply reply, CallRunner(std::move(request), kLoadTimeoutS));
  if (reply.has_load_failure()) {
    *load_failure = reply.load_failure();
    DropRunner();
    return absl::OkStatus();
  }
  if (!reply.loaded()) return base::Internal("the runner did not load the program");
  loaded_[at] = true;
  return absl::OkStatus();
}

template <typename Request>
Status Workers::AttachDescriptors(const std::vector<const BufferPlacement*>& buffers, Request* request,
                                  std::vector<int>* descriptors) {
  for (int64_t handle : forget_) request->add_forget(handle);
  forget_.clear();
  for (const BufferPlacement* buffer : buffers) {
    if (!runner_has_.insert(buffer->handle()).second) continue;
    auto known = descriptors_.find(buffer->handle());
    if (known == descriptors_.end()) {
      return base::Internal(base::StrCat("the judge never sent the descriptor of handle ", buffer->handle()));
    }
    request->add_described(buffer->handle());
    descriptors->push_back(known->second.get());
  }
  return absl::OkStatus();
}

StatusOr<worker::Client*> Workers::Runner() {
  base::MutexLock lock(mutex_);
  if (cancelled_ || shut_down_) return base::Cancelled("cancelled");
  if (runner_ == nullptr) return base::Unavailable("runner: it is gone");
  return runner_.get();
}

StatusOr<WorkerReply> Workers::Answered(StatusOr<WorkerReply> reply) {
  if (reply.ok()) return reply;
  DropRunner();
  return base::Annotate(reply.status(), "runner");
}

StatusOr<WorkerReply> Workers::CallRunner(WorkerRequest request, double timeout_s) {
  SOLSTICE_ASSIGN_OR_RETURN(worker::Client* const runner, Runner());
  std::vector<int> descriptors;
  if (request.has_run()) {
    SOLSTICE_RETURN_IF_ERROR(AttachDescriptors(BuffersOf(request.run()), request.mutable_run(), &descriptors));
  } else if (request.has_batch()) {
    SOLSTICE_RETURN_IF_ERROR(AttachDescriptors(BuffersOf(request.batch()), request.mutable_batch(), &descriptors));
  }
  return Answered(runner->Call(std::move(request), descriptors, nullptr, Seconds(timeout_s)));
}

StatusOr<WorkerReply> Workers::GoRunner(double timeout_s, double* batch_us) {
  if (clock_ == nullptr) {
    SOLSTICE_ASSIGN_OR_RETURN(clock_, worker::BatchClock::Create());
  }
  SOLSTICE_ASSIGN_OR_RETURN(worker::Client* const runner, Runner());
  WorkerRequest request;
  request.mutable_go();
  return Answered(runner->CallGo(std::move(request), *clock_, Seconds(timeout_s), batch_us));
}

}  // namespace solstice::pipeline
