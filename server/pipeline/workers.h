// The processes of one device: its judge, the runner of the evaluation under way, and the next runner, started ahead.
// Used by the slot's thread, Cancel() and Shutdown() apart.
#pragma once

#include <future>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/sandbox/spawner.h"
#include "runtime/worker/worker.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::pipeline {

class Workers {
 public:
  struct Options {
    sandbox::Spawner* spawner = nullptr;  // lives longer
    worker::Installation installation;
    worker::DeviceId device;
    int slot_index = 0;
    // Solstice's own kernels for this device, still compiling perhaps; invalid: none are loaded (the emulator's judge
    // works on the host).
    std::shared_future<StatusOr<v1::internal::Program>> trusted;
  };

  explicit Workers(Options options);
  ~Workers();

  // Starts the judge unless it lives. `restarted` tells that references must be loaded again.
  Status EnsureJudge(bool* restarted);
  // What the judge said of the device.
  const v1::internal::Hello& hello() const { return hello_; }
  const worker::DeviceId& device() const { return options_.device; }

  // Asks the judge. Keeps descriptors that come with Prepared. After an error the judge is gone.
  StatusOr<v1::internal::WorkerReply> CallJudge(v1::internal::WorkerRequest request, double timeout_s);
  // Whether the judge lives; it ends itself after a reference that spoilt a GPU's context.
  bool JudgeAlive();

  // A runner with `program` loaded as `index`. `load_failure` is set where the program is at fault; the runner is gone
  // then.
  Status EnsureRunner(int index, const v1::internal::Program& program, v1::internal::RunOutcome* load_failure);
  // Asks the runner, which EnsureRunner made sure of. Sends with a Run or a Batch the descriptors that the runner
  // lacks. DEADLINE_EXCEEDED and all other errors: it is gone.
  StatusOr<v1::internal::WorkerReply> CallRunner(v1::internal::WorkerRequest request, double timeout_s);
  // Sends Go and times the batch by the server's clock.
  StatusOr<v1::internal::WorkerReply> GoRunner(double timeout_s, double* batch_us);
  bool HasRunner();
  void DropRunner();
  // Starts the next runner in the background. Never while the device measures.
  void StartSpare();
  double runner_wait_ms() const { return runner_wait_ms_; }  // in all

  // The buffer that clears the L2 cache.
  StatusOr<v1::internal::BufferPlacement> ClearBuffer();

  // Any thread. Arm() forgets an earlier Cancel(), which kills the runner, and the judge if it works just now.
  void Arm();
  void Cancel();
  void Shutdown();
  bool cancelled();

 private:
  using Started = StatusOr<std::unique_ptr<worker::Client>>;

  Started StartRunner() const;
  Status LoadTrusted(worker::Client& client) const;
  Status TakeSpare();
  void KillWorkers() SOLSTICE_REQUIRES(mutex_);
  void KeepDescriptors(const v1::internal::Prepared& prepared, std::vector<base::UniqueFd> descriptors);
  StatusOr<worker::Client*> Runner();
  // `reply`, or its error once the runner is dropped.
  StatusOr<v1::internal::WorkerReply> Answered(StatusOr<v1::internal::WorkerReply> reply);
  template <typename Request>
  Status AttachDescriptors(const std::vector<const v1::internal::BufferPlacement*>& buffers, Request* request,
                           std::vector<int>* descriptors);

  const Options options_;
  v1::internal::Hello hello_;
  double runner_wait_ms_ = 0;
  std::vector<bool> loaded_;                       // programs in the runner
  std::map<int64_t, base::UniqueFd> descriptors_;  // of the judge's mappings
  std::set<int64_t> runner_has_;                   // handles that the runner has mapped
  std::vector<int64_t> forget_;                    // and is to unmap
  v1::internal::BufferPlacement clear_;
  std::future<Started> spare_;
  std::unique_ptr<worker::BatchClock> clock_;  // made when it is needed first

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
