#include "runtime/worker/runner.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "runtime/base/strings.h"
#include "runtime/bulk/bulk.h"
#include "runtime/exec/exec.h"
#include "runtime/worker/batch_clock.h"
#include "runtime/worker/device_load.h"
#include "runtime/worker/devices.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using v1::internal::BoundPlan;
using v1::internal::RunOutcome;

constexpr size_t kMaxPrograms = 64;
constexpr double kDefaultTimeoutS = 10;
constexpr std::chrono::milliseconds kMostWarmUp(400);
constexpr std::chrono::seconds kMostWait(30);

RunOutcome OutOfMemory(const Status& status) {
  RunOutcome outcome;
  outcome.set_kind(RunOutcome::OUT_OF_MEMORY);
  outcome.set_reason(base::MessageOf(status));
  return outcome;
}

RunOutcome Fine() {
  RunOutcome outcome;
  outcome.set_kind(RunOutcome::OK);
  return outcome;
}

}  // namespace

std::chrono::nanoseconds TimeoutFrom(double seconds, double fallback_s) {
  double used = seconds > 0 ? std::min(seconds, 86400.0) : fallback_s;
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::duration<double>(used));
}

StatusOr<Answer> Runner::Load(const v1::internal::LoadProgram& program) {
  if (modules_.size() >= kMaxPrograms && modules_.count(program.program()) == 0) {
    return base::ResourceExhausted("runner: too many programs");
  }
  modules_.erase(program.program());
  SOLSTICE_ASSIGN_OR_RETURN(Loaded loaded, LoadModule(*device_, program));
  Answer answer;
  if (loaded.module == nullptr) {
    *answer.reply.mutable_load_failure() = std::move(loaded.failure);
    answer.last = true;
    return answer;
  }
  modules_[program.program()] = std::move(loaded.module);
  for (const v1::Kernel& kernel : program.kernels()) {
    int64_t& bytes = static_shared_bytes_[kernel.name()];
    bytes = std::max(bytes, kernel.static_shared_bytes());
  }
  answer.reply.set_loaded(true);
  return answer;
}

StatusOr<const device::Module*> Runner::Find(int program) const {
  auto module = modules_.find(program);
  if (module == modules_.end()) {
    return base::FailedPrecondition(StrCat("runner: program ", program, " is not loaded"));
  }
  return module->second.get();
}

template <typename Request>
StatusOr<Runner::Descriptors> Runner::TakeDescriptors(const Request& request, std::vector<base::UniqueFd> descriptors) {
  if (descriptors.size() != static_cast<size_t>(request.described_size())) {
    return base::InvalidArgument(
        StrCat("runner: ", request.described_size(), " handles, ", descriptors.size(), " descriptors"));
  }
  for (int64_t handle : request.forget()) imported_.erase(handle);
  Descriptors by_handle;
  for (int i = 0; i < request.described_size(); ++i) {
    if (imported_.count(request.described(i)) > 0) {
      return base::InvalidArgument(StrCat("runner: handle ", request.described(i), " is mapped already"));
    }
    by_handle[request.described(i)] = std::move(descriptors[static_cast<size_t>(i)]);
  }
  return by_handle;
}

StatusOr<device::Address> Runner::Map(const v1::internal::BufferPlacement& placed, Descriptors* descriptors) {
  SOLSTICE_ASSIGN_OR_RETURN(exec::Placement placement, exec::CheckPlacement(placed, device_->granularity()));
  const auto access = placed.role() == v1::internal::INPUT ? device::Access::kReadOnly : device::Access::kReadWrite;
  if (imported_.count(placed.handle()) == 0) {
    auto fresh = descriptors->find(placed.handle());
    if (fresh == descriptors->end() || !fresh->second.valid()) {
      return base::InvalidArgument(StrCat("runner: no descriptor came for handle ", placed.handle()));
    }
    Imported imported;
    imported.access = access;
    SOLSTICE_ASSIGN_OR_RETURN(imported.buffer,
                              device_->Import(std::move(fresh->second), placement.mapped_bytes, access,
                                              {placed.name(), placement.offset, placement.bytes,
                                               base::Lower(v1::internal::BufferRole_Name(placed.role()))}));
    imported_[placed.handle()] = std::move(imported);
  }
  const Imported& imported = imported_[placed.handle()];
  if (imported.access != access || imported.buffer->bytes() != placement.mapped_bytes) {
    return base::InvalidArgument(StrCat("runner: handle ", placed.handle(), " is mapped otherwise"));
  }
  return imported.buffer->address() + static_cast<device::Address>(placement.offset);
}

StatusOr<std::vector<device::Address>> Runner::MapSlot(const BoundPlan& plan, const v1::internal::Slot& slot,
                                                       Descriptors* descriptors) {
  if (slot.buffers_size() != plan.buffers_size()) {
    return base::InvalidArgument(StrCat("runner: ", plan.buffers_size(), " buffers, ", slot.buffers_size(), " placed"));
  }
  std::vector<device::Address> tensors;
  for (int i = 0; i < slot.buffers_size(); ++i) {
    const v1::internal::BufferPlacement& placed = slot.buffers(i);
    if (placed.bytes() != plan.buffers(i).bytes() || placed.role() != plan.buffers(i).role()) {
      return base::InvalidArgument(StrCat("runner: buffer ", base::Quote(placed.name()), " is not the plan's"));
    }
    auto address = Map(placed, descriptors);
    if (!address.ok()) return base::Annotate(address.status(), StrCat("buffer ", base::Quote(placed.name())));
    tensors.push_back(*address);
  }
  return tensors;
}

StatusOr<RunOutcome> Runner::Run(const v1::internal::Run& run, std::vector<base::UniqueFd> descriptors) {
  const BoundPlan& plan = run.plan();
  SOLSTICE_RETURN_IF_ERROR(exec::CheckPlan(plan));
  SOLSTICE_ASSIGN_OR_RETURN(Descriptors fresh, TakeDescriptors(run, std::move(descriptors)));
  SOLSTICE_ASSIGN_OR_RETURN(const device::Module* module, Find(plan.program()));
  auto tensors = MapSlot(plan, run.slot(), &fresh);
  if (absl::IsResourceExhausted(tensors.status())) return OutOfMemory(tensors.status());
  if (!tensors.ok()) return tensors.status();
  device::RunLimits limits;
  limits.timeout = TimeoutFrom(run.timeout_s(), kDefaultTimeoutS);
  limits.instruction_budget = run.instruction_budget() > 0 ? run.instruction_budget() : 0;
  limits.sanitize = run.sanitize();
  return exec::RunPlan(*device_, *module, plan, *tensors, limits);
}

StatusOr<RunOutcome> Runner::Arm(const v1::internal::Batch& request, std::vector<base::UniqueFd> descriptors) {
  const BoundPlan& plan = request.plan();
  SOLSTICE_RETURN_IF_ERROR(exec::CheckPlan(plan));
  if (request.slots_size() == 0 || request.slots_size() > device_->BatchCapacity()) {
    return base::InvalidArgument(StrCat("runner: a batch of ", request.slots_size(), " slots"));
  }
  if (request.decoys() < 0 || request.decoys() > timing::kDecoys) {
    return base::InvalidArgument(StrCat("runner: ", request.decoys(), " decoys"));
  }
  SOLSTICE_ASSIGN_OR_RETURN(Descriptors fresh, TakeDescriptors(request, std::move(descriptors)));
  SOLSTICE_ASSIGN_OR_RETURN(const device::Module* trusted, Find(kTrustedKernels));
  SOLSTICE_ASSIGN_OR_RETURN(const device::Module* module, Find(plan.program()));
  SOLSTICE_ASSIGN_OR_RETURN(device::Address clear, Map(request.clear(), &fresh));
  std::vector<std::vector<device::Address>> tensors;
  for (const v1::internal::Slot& slot : request.slots()) {
    auto mapped = MapSlot(plan, slot, &fresh);
    if (absl::IsResourceExhausted(mapped.status())) return OutOfMemory(mapped.status());
    if (!mapped.ok()) return mapped.status();
    tensors.push_back(*std::move(mapped));
  }
  Armed armed;
  armed.batch.shape = {request.decoys(), request.slots_size()};
  armed.batch.timer = request.timer();
  armed.batch.trusted = trusted;
  armed.batch.clear = bulk::ClearLaunch(clear, request.clear().bytes(), device_->properties());
  armed.limits.timeout = TimeoutFrom(request.timeout_s(), kDefaultTimeoutS);
  if (!warm_) SOLSTICE_RETURN_IF_ERROR(timing::WarmUp(*device_, armed.batch, kMostWarmUp));
  warm_ = true;
  SOLSTICE_RETURN_IF_ERROR(timing::EnqueueBatch(*device_, armed.batch, [&](int slot) {
    if (request.calibrate()) return EnqueueStandIn(request, *trusted, tensors[static_cast<size_t>(slot)]);
    return exec::EnqueuePlan(*device_, *module, plan, tensors[static_cast<size_t>(slot)]);
  }));
  armed_ = std::move(armed);
  return Fine();
}

Status Runner::EnqueueStandIn(const v1::internal::Batch& request, const device::Module& trusted,
                              const std::vector<device::Address>& tensors) {
  // The next clearing writes the cache's dirty lines back, so as many must be there: what the cache holds, at most.
  std::vector<bulk::Written> written;
  int64_t room = 2 * device_->properties().l2_bytes(), scratch = request.calibrate_scratch_bytes();
  for (int i = 0; i < request.plan().buffers_size(); ++i) {
    const v1::internal::BufferPlacement& buffer = request.plan().buffers(i);
    int64_t bytes = buffer.role() == v1::internal::OUTPUT ? buffer.bytes() : 0;
    if (buffer.role() == v1::internal::SCRATCH) {
      bytes = std::clamp<int64_t>(scratch, 0, buffer.bytes());
      scratch -= bytes;
    }
    bytes = std::min(bytes, room);
    room -= bytes;
    if (bytes > 0) written.push_back({tensors[static_cast<size_t>(i)], bytes});
  }
  for (const v1::internal::BoundOperation& operation : request.plan().operations()) {
    if (operation.has_memset()) {
      const v1::internal::BoundMemset& memset = operation.memset();
      SOLSTICE_RETURN_IF_ERROR(device_->EnqueueMemset(
          tensors[static_cast<size_t>(memset.buffer())] + static_cast<device::Address>(memset.offset()),
          static_cast<uint8_t>(memset.byte()), memset.bytes()));
      continue;
    }
    device::LaunchParameters launch = bulk::StandInLaunch(written, device_->properties());
    written.clear();
    // How a multiprocessor divides its memory between cache and shared memory, which it takes time to change.
    auto fixed = static_shared_bytes_.find(operation.launch().entry());
    launch.dynamic_shared_bytes =
        operation.launch().dynamic_shared_bytes() + (fixed == static_shared_bytes_.end() ? 0 : fixed->second);
    SOLSTICE_RETURN_IF_ERROR(device_->EnqueueLaunch(trusted, launch));
  }
  return absl::OkStatus();
}

StatusOr<RunOutcome> Runner::Go(std::vector<base::UniqueFd> descriptors) {
  if (!armed_.has_value() || armed_->ran) return base::FailedPrecondition("runner: no batch is armed");
  if (descriptors.size() != 1) return base::InvalidArgument("runner: Go comes with the page of the batch clock");
  SOLSTICE_ASSIGN_OR_RETURN(auto clock, BatchClock::Open(std::move(descriptors[0])));
  armed_->ran = true;
  device::RunLimits limits = armed_->limits;
  limits.when_idle = [&] { clock->End(); };
  SOLSTICE_RETURN_IF_ERROR(clock->AwaitGo(kMostWait));
  return device_->Synchronize(limits);
}

StatusOr<v1::internal::Times> Runner::Collect() {
  if (!armed_.has_value() || !armed_->ran) return base::FailedPrecondition("runner: no batch was run");
  const timing::Batch batch = std::exchange(armed_, std::nullopt)->batch;
  return timing::TakeTimes(*device_, batch);
}

StatusOr<Answer> Runner::Handle(const v1::internal::WorkerRequest& request, std::vector<base::UniqueFd> descriptors) {
  Answer answer;
  if (request.has_load()) return Load(request.load());
  if (request.has_collect()) {
    SOLSTICE_ASSIGN_OR_RETURN(*answer.reply.mutable_times(), Collect());
    return answer;
  }
  RunOutcome outcome;
  if (request.has_run()) {
    SOLSTICE_ASSIGN_OR_RETURN(outcome, Run(request.run(), std::move(descriptors)));
  } else if (request.has_batch()) {
    SOLSTICE_ASSIGN_OR_RETURN(outcome, Arm(request.batch(), std::move(descriptors)));
    if (outcome.kind() == RunOutcome::OK) {
      answer.reply.set_armed(true);
      return answer;
    }
  } else if (request.has_go()) {
    SOLSTICE_ASSIGN_OR_RETURN(outcome, Go(std::move(descriptors)));
  } else {
    return base::InvalidArgument("the runner only loads, runs and times");
  }
  answer.last = outcome.kind() != RunOutcome::OK;
  *answer.reply.mutable_outcome() = std::move(outcome);
  return answer;
}

int RunnerMain(int argc, char** argv) {
  HardenProcess();
  auto device = OpenDevice(argc, argv, DeviceUse::kRunner);
  if (!device.ok()) {
    std::fprintf(stderr, "runner: %s\n", base::MessageOf(device.status()).c_str());
    return 1;
  }
  Runner runner(*std::move(device));
  sandbox::Channel channel{base::UniqueFd(kChannelFd)};
  v1::internal::Hello hello;
  hello.set_pid(::getpid());
  *hello.mutable_device() = runner.device().properties();
  DescribeDevice(runner.device(), &hello);
  int code = Serve(channel, std::move(hello), [&runner](const auto& request, std::vector<base::UniqueFd> descriptors) {
    return runner.Handle(request, std::move(descriptors));
  });
  // Not exit(): a spoilt device may not come down in an orderly way.
  ::_exit(code);
}

}  // namespace solstice::worker
