// The judge after a run: guards, inputs, fillings, and the comparison with the reference.
#include <algorithm>

#include "runtime/base/clock.h"
#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"
#include "runtime/verify/verify.h"
#include "runtime/worker/judge.h"
#include "runtime/worker/judge_shared.h"

namespace solstice::worker {

using base::StrCat;

StatusOr<Judge::Refusal> Judge::CheckSlots(const Work& work, int64_t* scratch_written_bytes) {
  struct Check {
    const PlacedTensor* tensor = nullptr;
    GuardCheck guards;
    bulk::Fingerprint fingerprint = {};
    bulk::Damage written;
  };
  std::vector<Check> checks;
  for (const Slot& slot : work.slots) {
    for (const PlacedTensor& tensor : slot) checks.push_back({&tensor, {}, {}, {}});
  }
  const bool timed = work.request.defer_reference();
  for (Check& check : checks) {
    const PlacedTensor& tensor = *check.tensor;
    SOLSTICE_RETURN_IF_ERROR(CheckGuards(*bulk_, work.secret, tensor, &check.guards));
    if (tensor.role == v1::internal::INPUT) {
      SOLSTICE_RETURN_IF_ERROR(
          bulk_->TakeFingerprint(work.secret, tensor.address(), tensor.placement.bytes, &check.fingerprint));
    } else if (timed) {
      SOLSTICE_RETURN_IF_ERROR(CheckPoison(*bulk_, work.secret, tensor, &check.written));
    }
  }
  SOLSTICE_RETURN_IF_ERROR(bulk_->Finish());
  *scratch_written_bytes = 0;
  for (size_t i = 0; timed && i < work.slots[0].size(); ++i) {
    if (work.slots[0][i].role == v1::internal::SCRATCH) *scratch_written_bytes += checks[i].written.bytes;
  }
  for (const Check& check : checks) {
    const PlacedTensor& tensor = *check.tensor;
    if (std::string damage = DescribeDamage(check.guards, tensor); !damage.empty()) {
      return Refusal{v1::RUNTIME_ERROR, StrCat("guard damaged: ", damage),
                     "check the kernel's index bounds against the tensor's size"};
    }
    if (tensor.role == v1::internal::INPUT && check.fingerprint != tensor.fingerprint) {
      return Refusal{v1::RUNTIME_ERROR, StrCat(tensor.Name(), " was written"),
                     "inputs are read-only: copy to scratch first"};
    }
    const int64_t untouched = tensor.placement.bytes - check.written.bytes;
    if (timed && tensor.role == v1::internal::OUTPUT && untouched > UntouchedByChance(tensor.placement.bytes)) {
      return Refusal{v1::REWARD_HACK,
                     StrCat("a timed run left ", untouched, " of ", tensor.placement.bytes, " bytes of ", tensor.Name(),
                            " unwritten, though the untimed runs wrote them"),
                     "every launch must do the whole work"};
    }
  }
  return Refusal{};
}

StatusOr<Judge::Refusal> Judge::CompareSlot(int slot, const Slot& expected, Work* work,
                                            v1::internal::Verified* verified) {
  const v1::Definition& definition = work->request.definition();
  const Slot& actual = work->slots[static_cast<size_t>(slot)];
  std::vector<const PlacedTensor*> outputs;
  for (const PlacedTensor& tensor : actual) {
    if (tensor.role == v1::internal::OUTPUT) outputs.push_back(&tensor);
  }
  std::vector<verify::TensorComparison> comparisons(outputs.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    const std::string& name = outputs[i]->name;
    auto answer = std::find_if(expected.begin(), expected.end(), [&](const PlacedTensor& tensor) {
      return tensor.role == v1::internal::OUTPUT && tensor.name == name;
    });
    const v1::Tensor* tensor = FindTensor(definition.outputs(), name);
    if (answer == expected.end() || tensor == nullptr) {
      return base::Internal(StrCat("judge: no reference for ", outputs[i]->Name()));
    }
    SOLSTICE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, catalog::ResolveShape(*tensor, work->axes));
    SOLSTICE_RETURN_IF_ERROR(bulk_->Compare(*tensor, shape, work->request.workload().tolerance(), outputs[i]->address(),
                                            answer->address(), &comparisons[i]));
  }
  SOLSTICE_RETURN_IF_ERROR(bulk_->Finish());
  Refusal worst;
  for (size_t i = 0; i < outputs.size(); ++i) {
    verify::TensorComparison& comparison = comparisons[i];
    if (comparison.verdict != v1::PASSED &&
        (!worst.refused() || verify::Severity(comparison.verdict) > verify::Severity(worst.verdict))) {
      worst = {comparison.verdict, comparison.reason, comparison.mend};
    }
    comparison.numbers.set_name(outputs[i]->name);
    auto* known = verified->mutable_outputs();
    auto same = std::find_if(known->begin(), known->end(),
                             [&](const auto& output) { return output.name() == outputs[i]->name; });
    if (same == known->end()) {
      *known->Add() = std::move(comparison.numbers);
    } else {
      verify::MergeComparison(comparison.numbers, &*same);
    }
  }
  return worst;
}

StatusOr<Answer> Judge::Verify(const v1::internal::Verify& request) {
  if (work_ == nullptr) return base::FailedPrecondition("judge: nothing is prepared");
  base::Stopwatch watch;
  Answer answer;
  v1::internal::Verified* verified = answer.reply.mutable_verified();
  verified->set_verdict(v1::PASSED);
  auto note = [verified](const Refusal& refusal) {
    if (!refusal.refused() || verify::Severity(refusal.verdict) <= verify::Severity(verified->verdict())) return;
    verified->set_verdict(refusal.verdict);
    verified->set_reason(refusal.reason);
    verified->set_mend(refusal.mend);
  };
  int64_t scratch_written_bytes = 0;
  SOLSTICE_ASSIGN_OR_RETURN(Refusal damage, CheckSlots(*work_, &scratch_written_bytes));
  verified->set_scratch_written_bytes(scratch_written_bytes);
  note(damage);
  if (!work_->request.defer_reference()) {
    SOLSTICE_ASSIGN_OR_RETURN(Refusal wrong, CompareSlot(0, work_->expected, work_.get(), verified));
    note(wrong);
  } else {
    for (int slot : request.compare()) {
      if (slot < 0 || slot >= static_cast<int>(work_->slots.size())) {
        return base::InvalidArgument(StrCat("judge: there is no slot ", slot));
      }
      Slot expected;
      SOLSTICE_ASSIGN_OR_RETURN(Refusal refused, RunReference(slot, work_.get(), &expected));
      note(refused);
      if (refused.refused()) break;
      SOLSTICE_ASSIGN_OR_RETURN(Refusal wrong, CompareSlot(slot, expected, work_.get(), verified));
      note(wrong);
    }
  }
  if (!spoilt_) Release();
  verified->set_milliseconds(watch.milliseconds());
  return answer;
}

}  // namespace solstice::worker
