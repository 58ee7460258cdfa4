#include "runtime/worker/runner.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "runtime/base/strings.h"
#include "runtime/exec/exec.h"
#include "runtime/worker/device_load.h"
#include "runtime/worker/devices.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using v1::internal::RunOutcome;

constexpr size_t kMaxPrograms = 64;
constexpr double kDefaultTimeoutS = 10;

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
  answer.reply.set_loaded(true);
  return answer;
}

StatusOr<RunOutcome> Runner::Run(const v1::internal::Run& run, std::vector<base::UniqueFd> descriptors) {
  const v1::internal::BoundPlan& plan = run.plan();
  SOLSTICE_RETURN_IF_ERROR(exec::CheckPlan(plan));
  if (descriptors.size() != static_cast<size_t>(plan.buffers_size())) {
    return base::InvalidArgument(
        StrCat("runner: ", plan.buffers_size(), " buffers, ", descriptors.size(), " descriptors"));
  }
  auto module = modules_.find(plan.program());
  if (module == modules_.end())
    return base::FailedPrecondition(StrCat("runner: program ", plan.program(), " is not loaded"));
  std::vector<std::unique_ptr<device::Buffer>> buffers;
  std::vector<device::Address> tensors;
  for (int i = 0; i < plan.buffers_size(); ++i) {
    const v1::internal::BufferPlacement& placed = plan.buffers(i);
    SOLSTICE_ASSIGN_OR_RETURN(exec::Placement placement, exec::CheckPlacement(placed, device_->granularity()));
    device::Access access =
        placed.role() == v1::internal::INPUT ? device::Access::kReadOnly : device::Access::kReadWrite;
    auto buffer = device_->Import(
        std::move(descriptors[static_cast<size_t>(i)]), placement.mapped_bytes, access,
        {placed.name(), placement.offset, placement.bytes, base::Lower(v1::internal::BufferRole_Name(placed.role()))});
    if (absl::IsResourceExhausted(buffer.status())) {
      RunOutcome outcome;
      outcome.set_kind(RunOutcome::OUT_OF_MEMORY);
      outcome.set_reason(base::MessageOf(buffer.status()));
      return outcome;
    }
    if (!buffer.ok()) return base::Annotate(buffer.status(), StrCat("buffer ", base::Quote(placed.name())));
    tensors.push_back((*buffer)->address() + static_cast<device::Address>(placement.offset));
    buffers.push_back(*std::move(buffer));
  }
  device::RunLimits limits;
  limits.timeout = TimeoutFrom(run.timeout_s(), kDefaultTimeoutS);
  limits.instruction_budget = run.instruction_budget() > 0 ? run.instruction_budget() : 0;
  return exec::RunPlan(*device_, *module->second, plan, tensors, limits);
}

StatusOr<Answer> Runner::Handle(const v1::internal::WorkerRequest& request, std::vector<base::UniqueFd> descriptors) {
  if (request.has_load()) return Load(request.load());
  if (!request.has_run()) return base::InvalidArgument("the runner only loads and runs");
  SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, Run(request.run(), std::move(descriptors)));
  Answer answer;
  answer.last = outcome.kind() != RunOutcome::OK;
  *answer.reply.mutable_outcome() = std::move(outcome);
  return answer;
}

int RunnerMain(int argc, char** argv) {
  HardenProcess();
  auto device = OpenDevice(argc, argv);
  if (!device.ok()) {
    std::fprintf(stderr, "runner: %s\n", base::MessageOf(device.status()).c_str());
    return 1;
  }
  Runner runner(*std::move(device));
  sandbox::Channel channel{base::UniqueFd(kChannelFd)};
  v1::internal::Hello hello;
  hello.set_pid(::getpid());
  *hello.mutable_device() = runner.properties();
  int code = Serve(channel, std::move(hello), [&runner](const auto& request, std::vector<base::UniqueFd> descriptors) {
    return runner.Handle(request, std::move(descriptors));
  });
  // Not exit(): a spoilt device may not come down in an orderly way.
  ::_exit(code);
}

}  // namespace solstice::worker
