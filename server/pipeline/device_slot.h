// One device: its judge, and a runner for the evaluation under way. Used by one thread, Cancel() apart.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/sandbox/spawner.h"
#include "runtime/worker/worker.h"
#include "server/pipeline/programs.h"
#include "solstice/v1/evaluation.pb.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::pipeline {

// Everything the run stage needs; made by the compile stage, immutable.
struct Runnable {
  std::string tenant, id;
  int attempt = 1;
  bool last_attempt = false;
  v1::Definition definition;
  Specialisation solution, reference;           // workloads in the same order
  std::vector<v1::internal::Program> programs;  // as solution.programs
  std::vector<v1::internal::Program> reference_programs;
  double timeout_s = 0;
  double instruction_budget = 0;
  bool allow_device_state = false;
  int debug_pointer_shift_bytes = 0;  // tests only
  std::string seed;                   // raw; payload seeds derive from it
};

struct SlotPhases {
  double prepare_ms = 0, run_ms = 0, verify_ms = 0;
};

class DeviceSlot {
 public:
  // Called after each workload, in order. An error stops the evaluation.
  using OnResult = std::function<Status(const v1::WorkloadResult&)>;
  using OnProgress = std::function<void(const char* stage, const std::string& workload, int done)>;

  // Starts the judge. FAILED_PRECONDITION when the device is not there.
  static StatusOr<std::unique_ptr<DeviceSlot>> Start(sandbox::Spawner* spawner, worker::Installation installation,
                                                     v1::DeviceKind kind, int ordinal, int slot_index);

  const v1::DeviceProperties& properties() const { return properties_; }

  // Forgets an earlier Cancel(). Call before the evaluation can be cancelled on this slot.
  void Arm();
  // Judges every workload. A Status is our failure (a worker died, say) and the attempt should be given up; CANCELLED
  // after Cancel().
  Status Run(const Runnable& runnable, const OnResult& on_result, const OnProgress& on_progress, SlotPhases* phases);

  // Any thread: kills the runner of the evaluation under way, and the judge if it works for it just now (its reference
  // may never end). The next evaluation starts new ones.
  void Cancel();
  // The same, for good.
  void Shutdown();

 private:
  DeviceSlot() = default;
  Status EnsureJudge();
  Status EnsureRunner(const Runnable& runnable, int program, v1::internal::RunOutcome* load_failure);
  StatusOr<v1::WorkloadResult> RunWorkload(const Runnable& runnable, size_t index, SlotPhases* phases);
  // One variant; true when the workload goes on (it passed so far).
  StatusOr<bool> RunVariant(const Runnable& runnable, size_t index, int variant, SlotPhases* phases,
                            v1::WorkloadResult* result);
  StatusOr<v1::internal::WorkerReply> CallJudge(v1::internal::WorkerRequest request,
                                                std::vector<base::UniqueFd>* descriptors, double timeout_s);
  StatusOr<v1::internal::RunOutcome> CallRunner(const Runnable& runnable, const v1::internal::BoundPlan& plan,
                                                const std::vector<base::UniqueFd>& descriptors, double timeout_s);
  Status ReleaseBuffers();
  void DropRunner();
  bool cancelled();

  sandbox::Spawner* spawner_ = nullptr;
  worker::Installation installation_;
  v1::DeviceKind kind_ = v1::EMULATOR;
  int ordinal_ = 0;
  int slot_index_ = 0;
  v1::DeviceProperties properties_;
  int runner_deaths_ = 0;
  std::vector<bool> loaded_;  // programs in the runner

  void KillWorkers() SOLSTICE_REQUIRES(mutex_);

  // The pointers change under the mutex and on the slot's own thread alone, which may therefore use the workers without
  // it.
  base::Mutex mutex_;
  std::unique_ptr<worker::Client> judge_ SOLSTICE_GUARDED_BY(mutex_);
  bool judge_busy_ SOLSTICE_GUARDED_BY(mutex_) = false;
  std::unique_ptr<worker::Client> runner_ SOLSTICE_GUARDED_BY(mutex_);
  bool cancelled_ SOLSTICE_GUARDED_BY(mutex_) = false;
  bool shut_down_ SOLSTICE_GUARDED_BY(mutex_) = false;
};

}  // namespace solstice::pipeline
