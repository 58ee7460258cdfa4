#include "server/pipeline/turns.h"

#include <algorithm>

#include "runtime/timing/statistics.h"

namespace solstice::pipeline {
namespace {

std::vector<int> SecretSlots(Turns& turns, int slots) {
  std::vector<int> chosen;
  for (int i = 0; i < kComparedABatch; ++i) {
    const int slot = static_cast<int>(turns.Secret() % static_cast<uint64_t>(slots));
    if (std::find(chosen.begin(), chosen.end(), slot) == chosen.end()) chosen.push_back(slot);
  }
  return chosen;
}

// False: the result is set.
StatusOr<bool> WarmUp(Turns& turns, int wanted, int* variant) {
  SOLSTICE_ASSIGN_OR_RETURN(const int slots, turns.Prepare(*variant, wanted));
  if (slots == 0) return false;
  *variant += slots;
  for (int i = 0; i < kWarmUpBatches; ++i) SOLSTICE_RETURN_IF_ERROR(turns.Calibrate().status());
  return true;
}

// Slots prepared, the reference timed, a batch run, every slot checked, what an iteration costs calibrated: by the same
// slots, since it depends on where they lie, and last, since it overwrites them.
StatusOr<bool> TakeTurn(Turns& turns, int wanted, bool with_reference, int* variant, Measured* measured) {
  SOLSTICE_ASSIGN_OR_RETURN(const int slots, turns.Prepare(*variant, wanted));
  if (slots == 0) return false;
  *variant += slots;
  if (with_reference) SOLSTICE_RETURN_IF_ERROR(turns.TimeReference(&measured->reference_ns));
  BatchTimes batch;
  SOLSTICE_ASSIGN_OR_RETURN(const bool ran, turns.Run(&batch));
  if (!ran) return false;
  const std::vector<int> compare = SecretSlots(turns, slots);
  SOLSTICE_ASSIGN_OR_RETURN(const bool right, turns.Verify(compare));
  measured->compared += static_cast<int>(compare.size());
  measured->total += slots;
  if (!right) return false;
  if (batch.empty()) return true;
  SOLSTICE_ASSIGN_OR_RETURN(const double overhead_us, turns.Calibrate());
  measured->measurement.Add(batch, overhead_us);
  return true;
}

}  // namespace

StatusOr<Measured> Measure(Turns& turns, const MeasureOptions& options) {
  Measured measured;
  int variant = kFirstTimedVariant;
  if (options.fresh_runner) {
    SOLSTICE_ASSIGN_OR_RETURN(const bool goes_on, WarmUp(turns, options.slots, &variant));
    if (!goes_on) return measured;
  }
  for (int batch = 0; batch < kMostBatches && !measured.measurement.Done(turns.Seconds() > kBudgetS); ++batch) {
    const bool more = static_cast<int>(measured.reference_ns.size()) < timing::kLeastSamples;
    const bool with_reference = options.time_reference && more && (batch == 0 || options.quick_reference);
    SOLSTICE_ASSIGN_OR_RETURN(const bool goes_on, TakeTurn(turns, options.slots, with_reference, &variant, &measured));
    if (!goes_on) return measured;
  }
  measured.passed = !measured.measurement.Refuted();
  return measured;
}

}  // namespace solstice::pipeline
