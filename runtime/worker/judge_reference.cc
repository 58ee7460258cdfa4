// The judge and the reference: loading, running and timing it.
#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/plan/plan.h"
#include "runtime/timing/timing.h"
#include "runtime/worker/device_load.h"
#include "runtime/worker/judge.h"
#include "runtime/worker/judge_shared.h"
#include "runtime/worker/runner.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using v1::internal::RunOutcome;

constexpr double kReferenceTimeoutS = 60;

}  // namespace

StatusOr<device::Module*> Judge::Reference(int program, Refusal* refusal) {
  auto found = references_.find(program);
  if (found == references_.end()) {
    return base::FailedPrecondition(StrCat("judge: reference program ", program, " is not loaded"));
  }
  ReferenceProgram& reference = found->second;
  if (reference.module == nullptr) {
    SOLSTICE_ASSIGN_OR_RETURN(Loaded loaded, LoadModule(*device_, reference.program));
    reference.module = std::move(loaded.module);
    reference.failure = std::move(loaded.failure);
  }
  if (reference.module == nullptr) {
    bool needs_device = reference.failure.kind() == RunOutcome::NEEDS_DEVICE;
    refusal->verdict = needs_device ? v1::NEEDS_DEVICE : v1::INVALID_REFERENCE;
    refusal->reason = StrCat("the definition's reference cannot be loaded: ", reference.failure.reason());
    refusal->mend = needs_device ? "run it on a GPU" : kReferenceMend;
  }
  return reference.module.get();
}

StatusOr<Judge::Refusal> Judge::BindReference(Work* work) {
  if (work->reference_bound) return Refusal{};
  const v1::internal::Prepare& prepare = work->request;
  const auto& listed = references_[prepare.reference_plan().program()].program.kernels();
  std::vector<v1::Kernel> kernels(listed.begin(), listed.end());
  SOLSTICE_ASSIGN_OR_RETURN(plan::BindResult bound, plan::Bind(prepare.reference_plan(), prepare.definition(),
                                                               prepare.workload(), kernels, device_->properties()));
  if (bound.rejection.rejected()) {
    return Refusal{v1::INVALID_REFERENCE,
                   StrCat("the definition's reference does not fit its workload: ", bound.rejection.reason),
                   kReferenceMend};
  }
  work->reference_plan = std::move(bound.plan);
  work->reference_bound = true;
  return Refusal{};
}

StatusOr<Judge::Refusal> Judge::PlaceReference(int slot, Work* work, Slot* own, std::vector<device::Address>* tensors) {
  // Its inputs are the shared ones, mapped read-only, so that it cannot spoil what the submission sees; the rest is its
  // own.
  const Slot& inputs = work->slots[static_cast<size_t>(slot)];
  for (const v1::internal::BufferPlacement& placed : work->reference_plan.buffers()) {
    if (placed.role() != v1::internal::INPUT) {
      auto tensor = Place(*private_, placed.role(), placed.name(), placed.bytes(), work);
      if (absl::IsResourceExhausted(tensor.status())) {
        return Refusal{v1::RESOURCE_EXCEEDED, StrCat("for the reference: ", base::MessageOf(tensor.status())),
                       "run it on a device with more memory"};
      }
      if (!tensor.ok()) return tensor.status();
      tensors->push_back(tensor->address());
      own->push_back(*std::move(tensor));
      continue;
    }
    auto input = std::find_if(inputs.begin(), inputs.end(), [&placed](const PlacedTensor& tensor) {
      return tensor.role == v1::internal::INPUT && tensor.name == placed.name();
    });
    if (input == inputs.end() || input->placement.bytes != placed.bytes()) {
      return base::Internal(StrCat("judge: the two plans disagree about input ", base::Quote(placed.name())));
    }
    SOLSTICE_ASSIGN_OR_RETURN(device::Buffer * view, ReadOnlyView(*device_, *input->mapping, input->extent()));
    tensors->push_back(view->address() + static_cast<device::Address>(input->placement.offset));
  }
  SOLSTICE_RETURN_IF_ERROR(bulk_->Finish());
  return Refusal{};
}

StatusOr<Judge::Refusal> Judge::ReferenceFailed(const RunOutcome& outcome) {
  std::string reason = outcome.reason().empty() ? outcome.fault().message() : outcome.reason();
  SOLSTICE_RETURN_IF_ERROR(ResetDevice());
  if (outcome.kind() == RunOutcome::NEEDS_DEVICE) {
    return Refusal{v1::NEEDS_DEVICE, StrCat("the definition's reference needs a GPU: ", reason), "run it on a GPU"};
  }
  return Refusal{v1::INVALID_REFERENCE, StrCat("the definition's reference failed: ", reason), kReferenceMend};
}

StatusOr<Judge::Refusal> Judge::CheckReference(const Work& work, const Slot& own) {
  std::vector<GuardCheck> checks(own.size());
  for (size_t i = 0; i < own.size(); ++i) {
    SOLSTICE_RETURN_IF_ERROR(CheckGuards(*bulk_, work.secret, own[i], &checks[i]));
  }
  SOLSTICE_RETURN_IF_ERROR(bulk_->Finish());
  for (size_t i = 0; i < own.size(); ++i) {
    if (std::string damage = DescribeDamage(checks[i], own[i]); !damage.empty()) {
      return Refusal{v1::INVALID_REFERENCE,
                     StrCat("the definition's reference writes where it must not: guard damaged: ", damage),
                     kReferenceMend};
    }
  }
  return Refusal{};
}

StatusOr<Judge::Refusal> Judge::RunReference(int slot, Work* work, Slot* own) {
  Refusal refusal;
  SOLSTICE_ASSIGN_OR_RETURN(device::Module * module, Reference(work->request.reference_plan().program(), &refusal));
  if (refusal.refused()) return refusal;
  SOLSTICE_ASSIGN_OR_RETURN(refusal, BindReference(work));
  if (refusal.refused()) return refusal;
  std::vector<device::Address> tensors;
  SOLSTICE_ASSIGN_OR_RETURN(refusal, PlaceReference(slot, work, own, &tensors));
  if (refusal.refused()) return refusal;
  device::RunLimits limits;
  limits.timeout = TimeoutFrom(work->request.timeout_s(), kReferenceTimeoutS);
  SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome,
                            exec::RunPlan(*device_, *module, work->reference_plan, tensors, limits));
  if (outcome.kind() != RunOutcome::OK) {
    own->clear();
    return ReferenceFailed(outcome);
  }
  return CheckReference(*work, *own);
}

StatusOr<Answer> Judge::TimeReference(const v1::internal::TimeReference& request) {
  if (work_ == nullptr) return base::FailedPrecondition("judge: nothing is prepared");
  if (trusted_ == nullptr) return base::FailedPrecondition("judge: its own kernels are not loaded");
  SOLSTICE_RETURN_IF_ERROR(ShareClearBuffer().status());
  Work* work = work_.get();
  Answer answer;
  v1::internal::Times* times = answer.reply.mutable_times();
  times->set_timer(request.timer());
  Refusal refusal;
  SOLSTICE_ASSIGN_OR_RETURN(device::Module * module, Reference(work->request.reference_plan().program(), &refusal));
  if (!refusal.refused()) {
    SOLSTICE_ASSIGN_OR_RETURN(refusal, BindReference(work));
  }
  Slot own;  // one set for all slots: what the reference writes is not looked at here
  std::vector<std::vector<device::Address>> tensors;
  size_t count = work->slots.size();
  if (request.slots() > 0) count = std::min(count, static_cast<size_t>(request.slots()));
  for (size_t slot = 0; slot < count && !refusal.refused(); ++slot) {
    std::vector<device::Address> addresses;
    SOLSTICE_ASSIGN_OR_RETURN(refusal, PlaceReference(static_cast<int>(slot), work, &own, &addresses));
    tensors.push_back(std::move(addresses));
  }
  if (refusal.refused()) {
    times->set_rejected(refusal.reason);
    return answer;
  }
  timing::Batch batch;
  batch.shape = timing::FitBatch(device_->BatchCapacity(), work->reference_plan.operations_size(),
                                 static_cast<int>(tensors.size()));
  batch.timer = request.timer();
  batch.trusted = trusted_.get();
  batch.clear = bulk::ClearLaunch(clear_->buffer->address(), clear_->buffer->bytes(), device_->properties());
  SOLSTICE_RETURN_IF_ERROR(timing::EnqueueBatch(*device_, batch, [&](int slot) {
    return exec::EnqueuePlan(*device_, *module, work->reference_plan, tensors[static_cast<size_t>(slot)]);
  }));
  device::RunLimits limits;
  limits.timeout = TimeoutFrom(request.timeout_s(), kReferenceTimeoutS);
  SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, device_->Synchronize(limits));
  if (outcome.kind() != RunOutcome::OK) {
    SOLSTICE_ASSIGN_OR_RETURN(refusal, ReferenceFailed(outcome));
    times->set_rejected(refusal.reason);
    return answer;
  }
  SOLSTICE_ASSIGN_OR_RETURN(*times, timing::TakeTimes(*device_, batch));
  return answer;
}

}  // namespace solstice::worker
