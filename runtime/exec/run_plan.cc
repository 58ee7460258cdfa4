#include <algorithm>
#include <cstring>

#include "runtime/base/clock.h"
#include "runtime/base/strings.h"
#include "runtime/exec/exec.h"

namespace solstice::exec {
namespace {

using base::StrCat;
using device::Address;
using v1::internal::BoundLaunch;
using v1::internal::BoundMemset;
using v1::internal::BoundOperation;
using v1::internal::BoundPlan;
using v1::internal::RunOutcome;

constexpr int kMaxOperations = 4096;
constexpr int kMaxArguments = 4096;
constexpr size_t kMaxArgumentBytes = 32 << 10;

Status CheckLaunch(const BoundPlan& plan, const BoundLaunch& launch) {
  if (launch.entry().empty()) return base::InvalidArgument("a launch without an entry");
  if (launch.grid_size() != 3 || launch.block_size() != 3) {
    return base::InvalidArgument("grid and block need three sizes each");
  }
  for (int i = 0; i < 3; ++i) {
    if (launch.grid(i) < 1 || launch.block(i) < 1) return base::InvalidArgument("a grid or block size below 1");
  }
  if (launch.dynamic_shared_bytes() < 0) return base::InvalidArgument("negative dynamic shared memory");
  if (launch.args_size() > kMaxArguments) return base::InvalidArgument("too many arguments");
  for (const v1::internal::BoundArgument& argument : launch.args()) {
    switch (argument.arg_case()) {
      case v1::internal::BoundArgument::kBuffer:
        if (argument.buffer() < 0 || argument.buffer() >= plan.buffers_size()) {
          return base::InvalidArgument(StrCat("argument buffer ", argument.buffer(), " does not exist"));
        }
        break;
      case v1::internal::BoundArgument::kValue:
        if (argument.value().empty() || argument.value().size() > kMaxArgumentBytes) {
          return base::InvalidArgument(StrCat("an argument of ", argument.value().size(), " bytes"));
        }
        break;
      case v1::internal::BoundArgument::ARG_NOT_SET:
        return base::InvalidArgument("an argument without a value");
    }
  }
  return absl::OkStatus();
}

Status CheckMemset(const BoundPlan& plan, const BoundMemset& memset) {
  if (memset.buffer() < 0 || memset.buffer() >= plan.buffers_size()) {
    return base::InvalidArgument(StrCat("memset buffer ", memset.buffer(), " does not exist"));
  }
  const v1::internal::BufferPlacement& buffer = plan.buffers(memset.buffer());
  if (buffer.role() == v1::internal::INPUT) return base::InvalidArgument("a memset of an input");
  if (memset.offset() < 0 || memset.bytes() < 0 || memset.offset() > buffer.bytes() ||
      memset.bytes() > buffer.bytes() - memset.offset()) {
    return base::InvalidArgument(StrCat("a memset of ", memset.bytes(), " bytes at ", memset.offset(),
                                        " leaves buffer ", base::Quote(buffer.name())));
  }
  if (memset.byte() < 0 || memset.byte() > 255) return base::InvalidArgument("a memset value outside a byte");
  return absl::OkStatus();
}

std::string AddressBytes(Address address) {
  std::string bytes(sizeof address, '\0');
  std::memcpy(bytes.data(), &address, sizeof address);
  return bytes;
}

Status Enqueue(device::Device& device, const device::Module& module, const BoundOperation& operation,
               const std::vector<Address>& tensors) {
  if (operation.has_memset()) {
    const BoundMemset& memset = operation.memset();
    if (memset.bytes() == 0) return absl::OkStatus();
    Address start = tensors[static_cast<size_t>(memset.buffer())] + static_cast<Address>(memset.offset());
    return device.EnqueueMemset(start, static_cast<uint8_t>(memset.byte()), memset.bytes());
  }
  const BoundLaunch& launch = operation.launch();
  device::LaunchParameters parameters;
  parameters.entry = launch.entry();
  for (int i = 0; i < 3; ++i) {
    parameters.grid[i] = launch.grid(i);
    parameters.block[i] = launch.block(i);
  }
  parameters.dynamic_shared_bytes = launch.dynamic_shared_bytes();
  for (const v1::internal::BoundArgument& argument : launch.args()) {
    parameters.arguments.push_back(
        argument.has_value() ? argument.value() : AddressBytes(tensors[static_cast<size_t>(argument.buffer())]));
  }
  return device.EnqueueLaunch(module, parameters);
}

// "kernel.cu:12" of the operation that launched `entry`; empty when several lines did.
std::string LineOf(const BoundPlan& plan, const std::string& entry) {
  std::string where;
  for (const BoundOperation& operation : plan.operations()) {
    if (!operation.has_launch() || operation.launch().entry() != entry) continue;
    std::string here = StrCat(operation.file(), ":", operation.line());
    if (!where.empty() && where != here) return {};
    where = here;
  }
  return where;
}

}  // namespace

Status CheckPlan(const BoundPlan& plan) {
  if (plan.operations_size() > kMaxOperations) return base::InvalidArgument("bound plan: too many operations");
  for (const BoundOperation& operation : plan.operations()) {
    Status status = base::InvalidArgument("neither a launch nor a memset");
    if (operation.has_launch()) status = CheckLaunch(plan, operation.launch());
    if (operation.has_memset()) status = CheckMemset(plan, operation.memset());
    if (!status.ok()) return base::Annotate(status, StrCat("bound plan: operation of line ", operation.line()));
  }
  return absl::OkStatus();
}

Status EnqueuePlan(device::Device& device, const device::Module& module, const BoundPlan& plan,
                   const std::vector<Address>& tensors) {
  SOLSTICE_RETURN_IF_ERROR(CheckPlan(plan));
  if (tensors.size() != static_cast<size_t>(plan.buffers_size())) {
    return base::InvalidArgument(
        StrCat("bound plan: ", plan.buffers_size(), " buffers, ", tensors.size(), " addresses"));
  }
  for (const BoundOperation& operation : plan.operations()) {
    Status status = Enqueue(device, module, operation, tensors);
    if (!status.ok()) return base::Annotate(status, StrCat(operation.file(), ":", operation.line()));
  }
  return absl::OkStatus();
}

StatusOr<RunOutcome> RunPlan(device::Device& device, const device::Module& module, const BoundPlan& plan,
                             const std::vector<Address>& tensors, const device::RunLimits& limits) {
  base::Stopwatch watch;
  SOLSTICE_RETURN_IF_ERROR(EnqueuePlan(device, module, plan, tensors));
  SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, device.Synchronize(limits));
  if (outcome.milliseconds() == 0) outcome.set_milliseconds(watch.milliseconds());
  if (outcome.kind() == RunOutcome::OK) return outcome;
  if (std::string line = LineOf(plan, outcome.fault().kernel()); !line.empty()) {
    std::string where = StrCat(" (launched at ", line, ")");
    if (!outcome.reason().empty()) outcome.set_reason(outcome.reason() + where);
    if (!outcome.fault().message().empty()) outcome.mutable_fault()->set_message(outcome.fault().message() + where);
  }
  return outcome;
}

}  // namespace solstice::exec
