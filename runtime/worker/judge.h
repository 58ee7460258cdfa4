// The judge's work on a device: buffers and inputs of one variant of one workload, the reference's answer, the
// comparison. Expected outputs and the secret content of guards never leave it. One thread.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/exec/exec.h"
#include "runtime/worker/service.h"

namespace solstice::worker {

class Judge {
 public:
  using OpenDeviceFunction = std::function<StatusOr<std::unique_ptr<device::Device>>()>;

  // `open_device` is called again after a reference spoilt the device.
  static StatusOr<std::unique_ptr<Judge>> Create(OpenDeviceFunction open_device);
  ~Judge();

  const v1::DeviceProperties& properties() const { return device_->properties(); }
  // LoadProgram (of references), Prepare, Verify.
  StatusOr<Answer> Handle(const v1::internal::WorkerRequest& request);

 private:
  // One buffer with its guards. Which secret content it holds follows from `stream`.
  struct JudgeBuffer {
    v1::internal::BufferRole role = v1::internal::BUFFER_ROLE_UNSPECIFIED;
    std::string name;
    std::unique_ptr<device::Buffer> buffer;
    exec::Placement placement;
    uint64_t stream = 0;
    std::string digest;  // of an input's content
    device::Address tensor() const { return buffer->address() + static_cast<device::Address>(placement.offset); }
    std::string Name() const;  // "output 'y'"
  };
  struct Expected {
    v1::Tensor tensor;
    std::vector<int64_t> shape;
    std::string bytes;
  };
  struct ReferenceProgram {
    v1::internal::LoadProgram program;
    std::unique_ptr<device::Module> module;  // loaded when it is needed first
    v1::internal::RunOutcome failure;
  };
  // Why a Prepare ends early: a verdict, not our failure.
  struct Refusal {
    v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;
    std::string reason, mend;
    bool refused() const { return verdict != v1::VERDICT_UNSPECIFIED; }
  };

  Judge() = default;
  StatusOr<Answer> Load(const v1::internal::LoadProgram& program);
  StatusOr<Answer> Prepare(const v1::internal::Prepare& prepare);
  StatusOr<Answer> Verify();
  void Release();
  Status ResetDevice();

  // Fills `plan` (placements too) and the shared buffers.
  StatusOr<Refusal> MakeShared(const v1::internal::Prepare& prepare, v1::internal::BoundPlan* plan);
  StatusOr<Refusal> FillInput(const v1::internal::Prepare& prepare, const std::vector<v1::NamedInt>& axes,
                              JudgeBuffer* buffer);
  StatusOr<Refusal> RunReference(const v1::internal::Prepare& prepare);
  StatusOr<Refusal> KeepExpected(const v1::internal::Prepare& prepare, const std::vector<JudgeBuffer>& outputs);
  // `shift` misaligns the tensor by so many bytes (Prepare.debug_pointer_shift_bytes).
  StatusOr<JudgeBuffer> Allocate(v1::internal::BufferRole role, const std::string& name, int64_t bytes,
                                 int64_t shift = 0);
  StatusOr<std::string> Content(const JudgeBuffer& buffer);
  // The module of a reference, or why there is none.
  StatusOr<device::Module*> Reference(int program, Refusal* refusal);
  // Refusal for buffers that were written where they must not be.
  StatusOr<Refusal> CheckBuffer(const JudgeBuffer& buffer);
  exec::GuardFill Fill() const;

  OpenDeviceFunction open_device_;
  std::unique_ptr<device::Device> device_;
  std::map<int, ReferenceProgram> references_;

  // Of the workload in hand.
  uint64_t secret_ = 0;
  uint64_t next_stream_ = 0;
  std::vector<JudgeBuffer> shared_;
  std::map<std::string, Expected> expected_;
  v1::Tolerance tolerance_;
  bool prepared_ = false;
};

}  // namespace solstice::worker
