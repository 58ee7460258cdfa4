// The timed measurement of one workload: which turns judge and runner take, in which order, with what content, and when
// it ends. Written over Turns, so that the order is the same whatever stands behind it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "server/pipeline/measurement.h"

namespace solstice::pipeline {

// What a device under lease does for a measurement. One at a time, in the order called: nothing else touches it.
class Turns {
 public:
  virtual ~Turns() = default;

  // Judge: up to `slots` slots with content `variant`, `variant` + 1, ..., each with buffers of its own at shifted
  // addresses. How many it made; 0: the workload's result is set and stands.
  virtual StatusOr<int> Prepare(int variant, int slots) = 0;
  // Judge: the reference's latencies on some of the slots.
  virtual Status TimeReference(std::vector<int64_t>* latency_ns) = 0;
  // Runner: the plan on every slot. Times stay empty where records are missing. False: the result is set.
  virtual StatusOr<bool> Run(BatchTimes* times) = 0;
  // Judge: guards, fillings and inputs of every slot, and the outputs of `compare` in full. False: the result is set.
  virtual StatusOr<bool> Verify(const std::vector<int>& compare) = 0;
  // Runner: stand-ins for the plan on the same slots, which they overwrite. An iteration's cost beside its latency, us.
  virtual StatusOr<double> Calibrate() = 0;
  // A number nobody else knows.
  virtual uint64_t Secret() = 0;
  // Since the measurement began.
  virtual double Seconds() = 0;
};

struct MeasureOptions {
  int slots = 1;                 // wanted a batch
  bool fresh_runner = false;     // it has run no batch yet
  bool time_reference = false;   // at least once
  bool quick_reference = false;  // often enough for a median of kLeastSamples
};

struct Measured {
  bool passed = false;  // false: the workload's result is set, or `measurement` is refuted
  Measurement measurement;
  std::vector<int64_t> reference_ns;
  int compared = 0, total = 0;  // slots
};

// Content of timed slots is none of the untimed variants', and none twice.
inline constexpr int kFirstTimedVariant = 16;
// What timing one workload may take before it ends with fewer samples.
inline constexpr double kBudgetS = 20;
inline constexpr int kMostBatches = 96;
// Of stand-ins, which count for nothing: a fresh runner's first batches cost more an iteration, while the paths from
// host to GPU that its launches take are used for the first time.
inline constexpr int kWarmUpBatches = 10;
// Secret slots of each batch whose outputs are compared; two batches at least make four.
inline constexpr int kComparedABatch = 2;

// Batches until Measurement::Done. Errors are ours.
StatusOr<Measured> Measure(Turns& turns, const MeasureOptions& options);

}  // namespace solstice::pipeline
