#include "runtime/verify/verdict.h"

#include <iterator>
#include <string>

#include "runtime/base/strings.h"

namespace solstice::verify {
namespace {

// From the mildest; the index is the severity.
constexpr v1::Verdict kOrder[] = {
    v1::VERDICT_UNSPECIFIED, v1::SKIPPED,           v1::PASSED,          v1::NEEDS_DEVICE,
    v1::INCORRECT_NUMERICAL, v1::INCORRECT_DTYPE,   v1::INCORRECT_SHAPE, v1::TIMEOUT,
    v1::RESOURCE_EXCEEDED,   v1::RUNTIME_ERROR,     v1::COMPILE_ERROR,   v1::INVALID_SUBMISSION,
    v1::REWARD_HACK,         v1::INVALID_REFERENCE,
};

bool DidNotRun(v1::Verdict verdict) {
  return Severity(verdict) <= Severity(v1::SKIPPED) || verdict == v1::NEEDS_DEVICE;
}

// "workload <uuid>: <reason>", and how many share the verdict where there are several workloads.
std::string ReasonOf(const v1::Evaluation& evaluation, const v1::WorkloadResult& first, int same) {
  const int total = evaluation.workloads_size();
  if (total == 1) return first.reason();
  std::string reason = base::StrCat(same, " of ", total, " workloads ", v1::Verdict_Name(evaluation.verdict()));
  if (!first.reason().empty()) reason = base::StrCat(reason, "; ", first.uuid(), ": ", first.reason());
  return reason;
}

}  // namespace

int Severity(v1::Verdict verdict) {
  for (int rank = 0; rank < static_cast<int>(std::size(kOrder)); ++rank) {
    if (kOrder[rank] == verdict) return rank;
  }
  return 0;
}

void Summarise(v1::Evaluation* evaluation) {
  if (evaluation->workloads_size() == 0) {
    evaluation->set_complete(false);
    if (evaluation->verdict() != v1::VERDICT_UNSPECIFIED) return;
    evaluation->set_verdict(v1::SKIPPED);
    evaluation->set_reason("no workload ran");
    return;
  }

  const v1::WorkloadResult* worst = &evaluation->workloads(0);
  const v1::WorkloadResult* not_run = nullptr;
  int skipped = 0;
  for (const v1::WorkloadResult& workload : evaluation->workloads()) {
    if (Severity(workload.verdict()) > Severity(worst->verdict())) worst = &workload;
    if (!DidNotRun(workload.verdict())) continue;
    if (not_run == nullptr) not_run = &workload;
    ++skipped;
  }
  int same = 0;
  for (const v1::WorkloadResult& workload : evaluation->workloads()) {
    if (Severity(workload.verdict()) == Severity(worst->verdict())) ++same;
  }

  const bool nothing_ran = Severity(worst->verdict()) <= Severity(v1::SKIPPED);
  evaluation->set_verdict(nothing_ran ? v1::SKIPPED : worst->verdict());
  evaluation->set_complete(skipped == 0);
  if (evaluation->verdict() != v1::PASSED) {
    evaluation->set_reason(ReasonOf(*evaluation, *worst, same));
    evaluation->set_mend(worst->mend());
    return;
  }
  // PASSED says what is missing, if anything is.
  evaluation->clear_reason();
  evaluation->clear_mend();
  if (not_run == nullptr) return;
  std::string reason = base::StrCat(skipped, " of ", evaluation->workloads_size(), " workloads did not run");
  if (!not_run->reason().empty()) reason = base::StrCat(reason, "; ", not_run->uuid(), ": ", not_run->reason());
  evaluation->set_reason(reason);
  evaluation->set_mend(not_run->mend());
}

}  // namespace solstice::verify
