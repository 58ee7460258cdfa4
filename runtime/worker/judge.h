// The judge's work on a device: buffers and inputs of one workload, the reference's answer, the comparison, and the
// reference's latency. Expected outputs and the secret content of guards never leave it. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bulk/bulk.h"
#include "runtime/device/device.h"
#include "runtime/exec/exec.h"
#include "runtime/worker/buffers.h"
#include "runtime/worker/service.h"

namespace solstice::worker {

class Judge {
 public:
  using OpenDeviceFunction = std::function<StatusOr<std::unique_ptr<device::Device>>()>;

  // `open_device` is called again after a reference spoilt the emulator. A GPU cannot be had again in this process:
  // then the answer is the last one.
  static StatusOr<std::unique_ptr<Judge>> Create(OpenDeviceFunction open_device);
  ~Judge();

  device::Device& device() { return *device_; }
  // LoadProgram (of references, and Solstice's own kernels), Prepare, TimeReference, Verify, ClearBuffer.
  StatusOr<Answer> Handle(const v1::internal::WorkerRequest& request);

 private:
  struct ReferenceProgram {
    v1::internal::LoadProgram program;
    std::unique_ptr<device::Module> module;  // loaded when it is needed first
    v1::internal::RunOutcome failure;
  };
  // Why work ends early: a verdict, not our failure.
  struct Refusal {
    v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;
    std::string reason, mend;
    bool refused() const { return verdict != v1::VERDICT_UNSPECIFIED; }
  };
  using Slot = std::vector<PlacedTensor>;  // one a buffer of the plan
  struct Spot {
    int64_t handle = 0;
    exec::Placement placement;
  };
  // The workload in hand.
  struct Work {
    v1::internal::Prepare request;
    std::vector<v1::NamedInt> axes;
    v1::internal::BoundPlan plan;            // the submission's
    v1::internal::BoundPlan reference_plan;  // bound when it is needed
    bool reference_bound = false;
    std::vector<Slot> slots;
    Slot expected;  // slot 0's, unless the reference is deferred
    uint64_t secret = 0;
    uint64_t next_stream = 0;
  };

  Judge() = default;
  Status Adopt(std::unique_ptr<device::Device> device);
  StatusOr<Answer> Load(const v1::internal::LoadProgram& program);
  StatusOr<Answer> LoadTrusted(const v1::internal::LoadProgram& program);
  StatusOr<Answer> Prepare(const v1::internal::Prepare& prepare);
  StatusOr<Answer> TimeReference(const v1::internal::TimeReference& request);
  StatusOr<Answer> Verify(const v1::internal::Verify& request);
  StatusOr<Answer> ShareClearBuffer();
  void Release();
  Status ResetDevice();

  // judge.cc: the submission's side.
  StatusOr<Refusal> BindSubmission(Work* work);
  int SlotCount(const Work& work) const;
  StatusOr<Refusal> MakeSlot(int index, Work* work);
  Status FillInput(int slot, Work* work, PlacedTensor* tensor, Refusal* refusal);
  // `again`: where it goes if the pool still has that mapping.
  StatusOr<PlacedTensor> Place(BufferPool& pool, v1::internal::BufferRole role, const std::string& name, int64_t bytes,
                               Work* work, int64_t shift = 0, const Spot* again = nullptr);
  void Describe(const Work& work, Answer* answer);

  // judge_reference.cc. The module of a reference, or why there is none.
  StatusOr<device::Module*> Reference(int program, Refusal* refusal);
  StatusOr<Refusal> BindReference(Work* work);
  // Fresh buffers for the reference on `slot`'s inputs; addresses in the order of its plan's buffers.
  StatusOr<Refusal> PlaceReference(int slot, Work* work, Slot* own, std::vector<device::Address>* tensors);
  // Runs it; outputs stand in `own` afterwards.
  StatusOr<Refusal> RunReference(int slot, Work* work, Slot* own);
  StatusOr<Refusal> ReferenceFailed(const v1::internal::RunOutcome& outcome);
  StatusOr<Refusal> CheckReference(const Work& work, const Slot& own);

  // judge_verify.cc
  StatusOr<Refusal> CheckSlots(const Work& work, int64_t* scratch_written_bytes);
  StatusOr<Refusal> CompareSlot(int slot, const Slot& expected, Work* work, v1::internal::Verified* verified);

  OpenDeviceFunction open_device_;
  int64_t next_handle_ = 1;
  std::unique_ptr<device::Device> device_;
  std::map<int, ReferenceProgram> references_;
  std::unique_ptr<device::Module> trusted_;
  std::unique_ptr<bulk::Bulk> bulk_;
  std::unique_ptr<BufferPool> shared_, private_;
  std::unique_ptr<Mapping> clear_;
  std::unique_ptr<Work> work_;
  std::vector<Spot> last_spots_;  // slot 0's, of the last preparation
  bool spoilt_ = false;  // the process must end
};

}  // namespace solstice::worker
