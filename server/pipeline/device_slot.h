// One device under one lease: whatever touches it, evaluations, the start of spare runners and their end, goes through
// its slot, one thing at a time. Used by one thread, Cancel() and Shutdown() apart.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "runtime/base/status.h"
#include "server/pipeline/measurement.h"
#include "server/pipeline/programs.h"
#include "server/pipeline/workers.h"
#include "solstice/v1/evaluation.pb.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::pipeline {

// What a judge may take for one request. The reference runs there; generous, for a slow emulator.
inline constexpr double kJudgeTimeoutS = 300;

// Everything the run stage needs; made by the compile stage, immutable.
struct Runnable {
  std::string tenant, id;
  int attempt = 1;
  bool last_attempt = false;
  v1::Definition definition;
  std::string definition_digest;
  Specialisation solution, reference;           // workloads in the same order
  std::vector<v1::internal::Program> programs;  // as solution.programs
  std::vector<v1::internal::Program> reference_programs;
  double timeout_s = 0;
  double instruction_budget = 0;
  bool allow_device_state = false;
  bool strict = false;  // the sanitizer's findings fail
  bool keep_samples = false;
  v1::Timer timer = v1::TIMER_NONE;   // what ChooseTimer said
  int debug_pointer_shift_bytes = 0;  // tests only
  std::string seed;                   // raw; payload seeds derive from it
};

struct SlotPhases {
  double prepare_ms = 0, run_ms = 0, verify_ms = 0, time_ms = 0, runner_ms = 0, reference_ms = 0;
};

class DeviceSlot {
 public:
  // Called after each workload, in order. An error stops the evaluation.
  using OnResult = std::function<Status(const v1::WorkloadResult&)>;
  using OnProgress = std::function<void(const char* stage, const std::string& workload, int done)>;

  // Starts the judge, and the first spare runner beside. FAILED_PRECONDITION when the device is not there.
  static StatusOr<std::unique_ptr<DeviceSlot>> Start(Workers::Options options);

  const v1::DeviceProperties& properties() const { return properties_; }
  // The timer for an evaluation that asked for `wanted`; FAILED_PRECONDITION, saying why, where it does not work here.
  StatusOr<v1::Timer> ChooseTimer(v1::Timer wanted) const;
  // Why not the best timer, empty otherwise.
  const std::string& timer_note() const { return timer_note_; }

  // Forgets an earlier Cancel(). Call before the evaluation can be cancelled on this slot.
  void Arm() { workers_.Arm(); }
  // Judges every workload. A Status is our failure (a worker died, say) and the attempt should be given up; CANCELLED
  // after Cancel().
  Status Run(const Runnable& runnable, const OnResult& on_result, const OnProgress& on_progress, SlotPhases* phases);

  // Any thread: kills the runner of the evaluation under way, and the judge if it works for it just now (its reference
  // may never end). The next evaluation starts new ones.
  void Cancel() { workers_.Cancel(); }
  // The same, for good.
  void Shutdown() { workers_.Shutdown(); }

 private:
  // One workload of the evaluation under way.
  struct Job {
    const Runnable& runnable;
    size_t index;
    SlotPhases* phases;
    v1::WorkloadResult* result;
    double run_ms = 0;        // of one run, the shortest seen
    double reference_ms = 0;  // the same of the reference, with what comes with it
    int operations = 0;       // of the bound plan; none where every grid is zero
    int64_t scratch_written_bytes = 0;

    const WorkloadPlan& planned() const { return runnable.solution.workloads[index]; }
    const v1::internal::Program& program() const {
      return runnable.programs[static_cast<size_t>(planned().plan.program())];
    }
  };

  explicit DeviceSlot(Workers::Options options) : workers_(std::move(options)) {}
  Status EnsureJudge(const Runnable& runnable);
  Status LoadReferences(const Runnable& runnable);
  StatusOr<v1::WorkloadResult> RunWorkload(const Runnable& runnable, size_t index, SlotPhases* phases);
  void Summarise(const Job& job);

  // device_slot.cc. True when the workload goes on (it passed so far).
  StatusOr<v1::internal::Prepared> Prepare(Job& job, int variant, int slots);
  StatusOr<bool> RunVariant(Job& job, int variant);
  StatusOr<bool> Verify(Job& job, const std::vector<int>& compare);
  StatusOr<v1::internal::RunOutcome> RunOnce(Job& job, const v1::internal::Prepared& prepared, bool sanitize);
  // Turns an outcome but OK into the result; the runner is dropped.
  Status Fail(Job& job, const v1::internal::RunOutcome& outcome);
  Status ReleaseBuffers();

  // device_slot_timing.cc
  class SlotTurns;
  // Sets the latency, or another verdict.
  Status TimeWorkload(Job& job);
  // What an iteration of this plan costs beside its latency. Overwrites the slots.
  StatusOr<double> CalibrateUs(Job& job, const v1::internal::Prepared& prepared);
  StatusOr<v1::internal::RunOutcome> RunBatch(Job& job, const v1::internal::Prepared& prepared, bool calibrate,
                                              BatchTimes* times);
  Status TimeReference(Job& job, std::vector<int64_t>* latency_ns);
  std::string ReferenceKey(const Job& job) const;

  Workers workers_;
  v1::DeviceProperties properties_;
  std::vector<v1::Timer> timers_;
  std::string timer_note_;
  int runner_deaths_ = 0;
  bool runner_warm_ = false;  // the runner in hand has run batches that count for nothing
  // Latency of references by definition version and workload, while the server lives.
  std::map<std::string, int64_t> reference_ns_;
};

}  // namespace solstice::pipeline
