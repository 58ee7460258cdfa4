#include "runtime/device/cuda/cuda_device.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "runtime/base/strings.h"
#include "runtime/device/cuda/activity.h"
#include "runtime/device/cuda/buffer.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/faults.h"
#include "runtime/device/cuda/module.h"
#include "runtime/device/cuda/output_capture.h"
#include "runtime/device/cuda/properties.h"

namespace solstice::device {
namespace {

using base::StrCat;
using cuda::CudaBuffer;
using cuda::CudaKernel;
using cuda::CudaModule;
using cuda::Driver;
using v1::Timer;
using v1::internal::RunOutcome;

// An H200's stream takes 1020 launches behind a closed gate, then the next one blocks.
constexpr int64_t kBatchCapacity = 900;
constexpr size_t kMostOutputBytes = 64 << 10;
// A run is watched closely for so long, then looked at now and then.
constexpr std::chrono::milliseconds kSpin(20);
constexpr std::chrono::microseconds kPause(50);

class CudaDevice : public Device {
 public:
  CudaDevice(const CudaOptions& options, const Driver* driver) : options_(options), driver_(driver) {}
  ~CudaDevice() override;
  Status Initialise();

  const v1::DeviceProperties& properties() const override { return properties_; }
  int64_t granularity() const override { return granularity_; }

  StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, const Extent&) override {
    return CudaBuffer::Allocate(driver_, device_, bytes, granularity_);
  }
  StatusOr<std::unique_ptr<Buffer>> Import(base::UniqueFd handle, int64_t mapped_bytes, Access access,
                                           const Extent&) override {
    return CudaBuffer::Import(driver_, device_, std::move(handle), mapped_bytes, granularity_, access);
  }
  Status CopyIn(Address destination, std::span<const uint8_t> source) override {
    if (source.empty()) return absl::OkStatus();
    SOLSTICE_CUDA_CALL(driver_, cuMemcpyHtoD, destination, source.data(), source.size());
    return absl::OkStatus();
  }
  Status CopyOut(std::span<uint8_t> destination, Address source) override {
    if (destination.empty()) return absl::OkStatus();
    SOLSTICE_CUDA_CALL(driver_, cuMemcpyDtoH, destination.data(), source, destination.size());
    return absl::OkStatus();
  }

  StatusOr<std::unique_ptr<Module>> Load(const v1::internal::LoadProgram& program, RunOutcome* outcome) override {
    return CudaModule::Load(driver_, program, outcome);
  }
  Status EnqueueLaunch(const Module& module, const LaunchParameters& launch) override;
  Status EnqueueMemset(Address destination, uint8_t value, int64_t bytes) override;
  StatusOr<RunOutcome> Synchronize(const RunLimits& limits) override;

  std::vector<Timer> Timers(std::string* note) override;
  int64_t BatchCapacity() const override { return kBatchCapacity; }
  Status BeginBatch(Timer timer) override;
  Status StartIteration() override;
  Status EndIteration() override;
  StatusOr<std::vector<Span>> TakeSpans() override;

 private:
  // Which of a batch's operations, or which two events, are an iteration.
  struct Iteration {
    int64_t first = 0, end = 0;
  };
  struct Batch {
    Timer timer = v1::TIMER_NONE;
    int64_t operations = 0;
    std::vector<Iteration> iterations;
  };

  // What a call that enqueues returned: kept for Synchronize if the submission is to blame.
  Status NoteEnqueued(CUresult result, const char* what, const std::string& kernel);
  Status RecordEvent();
  StatusOr<CUresult> WaitUntil(std::chrono::steady_clock::time_point deadline);
  void OpenGate();

  const CudaOptions options_;
  const Driver* const driver_;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  CUstream stream_ = nullptr;
  v1::DeviceProperties properties_;
  int64_t granularity_ = 0;
  std::unique_ptr<cuda::Activity> activity_;
  std::string activity_note_;
  std::unique_ptr<cuda::OutputCapture> capture_;
  volatile uint32_t* gate_ = nullptr;  // pinned host memory, which the stream waits on
  CUdeviceptr gate_address_ = 0;
  std::vector<CUevent> events_;  // grow-only
  size_t events_used_ = 0;

  std::vector<std::string> launched_;  // entries since the last Synchronize
  std::optional<RunOutcome> refused_;
  std::optional<Batch> batch_;
};

Status CudaDevice::Initialise() {
  int count = 0;
  SOLSTICE_CUDA_CALL(driver_, cuDeviceGetCount, &count);
  if (options_.ordinal < 0 || options_.ordinal >= count) {
    return base::FailedPrecondition(StrCat("there is no cuda:", options_.ordinal, "; ", count, " GPUs are visible"),
                                    "look at nvidia-smi and CUDA_VISIBLE_DEVICES");
  }
  SOLSTICE_CUDA_CALL(driver_, cuDeviceGet, &device_, options_.ordinal);
  SOLSTICE_ASSIGN_OR_RETURN(properties_, cuda::QueryProperties(*driver_, options_.ordinal));
  int shares = 0;
  SOLSTICE_CUDA_CALL(driver_, cuDeviceGetAttribute, &shares,
                     CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, device_);
  if (shares == 0) {
    return base::FailedPrecondition(
        StrCat(properties_.name(), " cannot share memory between processes here"),
        "Solstice needs the driver's virtual memory API with POSIX descriptors (not available in WSL or on vGPUs)");
  }
  CUresult retained = driver_->cuDevicePrimaryCtxRetain_(&context_, device_);
  if (retained != CUDA_SUCCESS) {
    context_ = nullptr;
    return base::FailedPrecondition(
        StrCat("cuda:", options_.ordinal, " cannot be used: ", cuda::ErrorName(retained)),
        "another process may have all its memory, or hold it in exclusive mode: look at nvidia-smi");
  }
  SOLSTICE_CUDA_CALL(driver_, cuCtxSetCurrent, context_);
  SOLSTICE_CUDA_CALL(driver_, cuStreamCreate, &stream_, CU_STREAM_NON_BLOCKING);
  SOLSTICE_ASSIGN_OR_RETURN(granularity_, cuda::Granularity(driver_, device_));
  void* gate = nullptr;
  SOLSTICE_CUDA_CALL(driver_, cuMemHostAlloc, &gate, sizeof(uint32_t), CU_MEMHOSTALLOC_DEVICEMAP);
  gate_ = static_cast<volatile uint32_t*>(gate);
  SOLSTICE_CUDA_CALL(driver_, cuMemHostGetDevicePointer, &gate_address_, gate, 0);
  auto activity = cuda::Activity::Open(options_.cupti_library);
  if (activity.ok()) {
    activity_ = *std::move(activity);
  } else {
    activity_note_ = base::MessageOf(activity.status());
  }
  if (options_.capture_output) {
    SOLSTICE_ASSIGN_OR_RETURN(capture_, cuda::OutputCapture::Start());
  }
  return absl::OkStatus();
}

CudaDevice::~CudaDevice() {
  if (gate_ != nullptr) OpenGate();
  for (CUevent event : events_) driver_->cuEventDestroy_(event);
  if (stream_ != nullptr) driver_->cuStreamDestroy_(stream_);
  if (gate_ != nullptr) driver_->cuMemFreeHost_(const_cast<uint32_t*>(gate_));
  if (context_ != nullptr) driver_->cuDevicePrimaryCtxRelease_(device_);
}

Status CudaDevice::NoteEnqueued(CUresult result, const char* what, const std::string& kernel) {
  if (result == CUDA_SUCCESS) {
    if (batch_.has_value()) ++batch_->operations;
    return absl::OkStatus();
  }
  if (cuda::IsDeviceLost(result)) return cuda::CudaError(what, result);
  // A launch that is refused, or the failure of an earlier one that shows only now.
  const bool at_launch = result == CUDA_ERROR_INVALID_VALUE || result == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES ||
                         result == CUDA_ERROR_OUT_OF_MEMORY || result == CUDA_ERROR_INVALID_IMAGE;
  if (at_launch && kernel.empty()) return cuda::CudaError(what, result);
  refused_ = at_launch ? cuda::RefusedLaunch(result, kernel) : cuda::OutcomeOf(result, launched_);
  return absl::OkStatus();
}

Status CudaDevice::EnqueueLaunch(const Module& module, const LaunchParameters& launch) {
  if (refused_.has_value()) return absl::OkStatus();
  const auto* loaded = dynamic_cast<const CudaModule*>(&module);
  if (loaded == nullptr) return base::InvalidArgument("the module was not loaded by this device");
  const CudaKernel* kernel = loaded->Find(launch.entry);
  if (kernel == nullptr) {
    const std::string near = base::Nearest(launch.entry, loaded->Entries());
    return base::NotFound(StrCat("the program has no entry ", base::Quote(launch.entry)),
                          near.empty() ? "" : StrCat("did you mean ", near, "?"));
  }
  if (launch.arguments.size() != kernel->parameter_bytes.size()) {
    return base::InvalidArgument(
        StrCat(launch.entry, " takes ", kernel->parameter_bytes.size(), " arguments, not ", launch.arguments.size()));
  }
  std::vector<void*> arguments;
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    if (launch.arguments[i].size() != kernel->parameter_bytes[i]) {
      return base::InvalidArgument(StrCat(launch.entry, ": argument ", i, " has ", launch.arguments[i].size(),
                                          " bytes, its parameter ", kernel->parameter_bytes[i]));
    }
    arguments.push_back(const_cast<char*>(launch.arguments[i].data()));
  }
  if (launch.dynamic_shared_bytes > kernel->dynamic_shared_bytes) {
    CUresult result =
        driver_->cuFuncSetAttribute_(kernel->function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                     static_cast<int>(std::min<int64_t>(launch.dynamic_shared_bytes, INT32_MAX)));
    if (result != CUDA_SUCCESS) {
      refused_ = cuda::RefusedLaunch(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, launch.entry);
      return absl::OkStatus();
    }
    kernel->dynamic_shared_bytes = launch.dynamic_shared_bytes;
  }
  CUlaunchConfig config = {};
  config.gridDimX = static_cast<unsigned>(launch.grid[0]);
  config.gridDimY = static_cast<unsigned>(launch.grid[1]);
  config.gridDimZ = static_cast<unsigned>(launch.grid[2]);
  config.blockDimX = static_cast<unsigned>(launch.block[0]);
  config.blockDimY = static_cast<unsigned>(launch.block[1]);
  config.blockDimZ = static_cast<unsigned>(launch.block[2]);
  config.sharedMemBytes = static_cast<unsigned>(launch.dynamic_shared_bytes);
  config.hStream = stream_;
  launched_.push_back(launch.entry);
  return NoteEnqueued(driver_->cuLaunchKernelEx_(&config, kernel->function, arguments.data(), nullptr),
                      "cuLaunchKernelEx", launch.entry);
}

Status CudaDevice::EnqueueMemset(Address destination, uint8_t value, int64_t bytes) {
  if (bytes < 0) return base::InvalidArgument("memset of a negative number of bytes");
  if (bytes == 0 || refused_.has_value()) return absl::OkStatus();
  return NoteEnqueued(driver_->cuMemsetD8Async_(destination, value, static_cast<size_t>(bytes), stream_),
                      "cuMemsetD8Async", "");
}

void CudaDevice::OpenGate() { *gate_ = 1; }

StatusOr<CUresult> CudaDevice::WaitUntil(std::chrono::steady_clock::time_point deadline) {
  const auto started = std::chrono::steady_clock::now();
  for (;;) {
    CUresult result = driver_->cuStreamQuery_(stream_);
    if (result != CUDA_ERROR_NOT_READY) return result;
    const auto now = std::chrono::steady_clock::now();
    if (now >= deadline) return result;
    if (now - started > kSpin) std::this_thread::sleep_for(kPause);
  }
}

StatusOr<RunOutcome> CudaDevice::Synchronize(const RunLimits& limits) {
  const auto started = std::chrono::steady_clock::now();
  // Far deadlines must not overflow.
  const auto timeout = std::min<std::chrono::nanoseconds>(limits.timeout, std::chrono::hours(24 * 365));
  OpenGate();
  SOLSTICE_ASSIGN_OR_RETURN(CUresult result, WaitUntil(started + timeout));
  if (limits.when_idle && result != CUDA_ERROR_NOT_READY) limits.when_idle();
  RunOutcome outcome;
  outcome.set_kind(RunOutcome::OK);
  if (result == CUDA_ERROR_NOT_READY) {
    outcome.set_kind(RunOutcome::TIMEOUT);
    outcome.set_reason(StrCat("it did not end within ", std::chrono::duration<double>(timeout).count(), " s"));
  } else if (cuda::IsDeviceLost(result)) {
    return cuda::CudaError("the run", result);
  } else if (result != CUDA_SUCCESS) {
    outcome = cuda::OutcomeOf(result, launched_);
  } else if (refused_.has_value()) {
    outcome = *refused_;
  }
  if (outcome.kind() != RunOutcome::OK) batch_.reset();
  // Device printf reaches standard output only by a call that waits.
  if (capture_ != nullptr && result != CUDA_ERROR_NOT_READY) driver_->cuStreamSynchronize_(stream_);
  if (capture_ != nullptr) outcome.set_device_output(capture_->Take(kMostOutputBytes));
  outcome.set_milliseconds(
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - started).count());
  launched_.clear();
  refused_.reset();
  return outcome;
}

// ---- Timed batches -------------------------------------------------------------------------------------------------

std::vector<Timer> CudaDevice::Timers(std::string* note) {
  if (note != nullptr) *note = activity_note_;
  if (activity_ == nullptr) return {v1::TIMER_EVENTS, v1::TIMER_NONE};
  return {v1::TIMER_ACTIVITY, v1::TIMER_EVENTS, v1::TIMER_NONE};
}

Status CudaDevice::BeginBatch(Timer timer) {
  if (timer == v1::TIMER_ACTIVITY && activity_ == nullptr) return base::FailedPrecondition(activity_note_);
  if (timer == v1::TIMER_ACTIVITY) SOLSTICE_RETURN_IF_ERROR(activity_->Start());
  batch_ = Batch{timer, 0, {}};
  events_used_ = 0;
  *gate_ = 0;
  SOLSTICE_CUDA_CALL(driver_, cuStreamWaitValue32, stream_, gate_address_, 1, CU_STREAM_WAIT_VALUE_EQ);
  return absl::OkStatus();
}

Status CudaDevice::RecordEvent() {
  if (batch_->timer != v1::TIMER_EVENTS || refused_.has_value()) return absl::OkStatus();
  if (events_used_ == events_.size()) {
    CUevent event = nullptr;
    SOLSTICE_CUDA_CALL(driver_, cuEventCreate, &event, CU_EVENT_DEFAULT);
    events_.push_back(event);
  }
  SOLSTICE_CUDA_CALL(driver_, cuEventRecord, events_[events_used_++], stream_);
  return absl::OkStatus();
}

Status CudaDevice::StartIteration() {
  if (!batch_.has_value()) return base::FailedPrecondition("no batch was begun");
  batch_->iterations.push_back({batch_->operations, batch_->operations});
  return RecordEvent();
}

Status CudaDevice::EndIteration() {
  if (!batch_.has_value() || batch_->iterations.empty()) return base::FailedPrecondition("no iteration was started");
  batch_->iterations.back().end = batch_->operations;
  return RecordEvent();
}

StatusOr<std::vector<Span>> CudaDevice::TakeSpans() {
  if (!batch_.has_value()) return base::FailedPrecondition("no batch was run");
  const Batch batch = *std::exchange(batch_, std::nullopt);
  std::vector<Span> spans;
  if (batch.timer == v1::TIMER_ACTIVITY) {
    SOLSTICE_ASSIGN_OR_RETURN(std::vector<Span> records, activity_->Stop(batch.operations));
    for (const Iteration& iteration : batch.iterations) {
      if (iteration.first == iteration.end) return base::DataLoss("an iteration without operations has no latency");
      Span span = records[static_cast<size_t>(iteration.first)];
      for (int64_t i = iteration.first; i < iteration.end; ++i) {
        span.start_ns = std::min(span.start_ns, records[static_cast<size_t>(i)].start_ns);
        span.end_ns = std::max(span.end_ns, records[static_cast<size_t>(i)].end_ns);
      }
      spans.push_back(span);
    }
  } else if (batch.timer == v1::TIMER_EVENTS) {
    for (size_t i = 0; i + 1 < events_used_; i += 2) {
      float milliseconds = 0;
      SOLSTICE_CUDA_CALL(driver_, cuEventElapsedTime, &milliseconds, events_[i], events_[i + 1]);
      spans.push_back({0, static_cast<int64_t>(static_cast<double>(milliseconds) * 1e6)});
    }
  }
  return spans;
}

}  // namespace

StatusOr<std::unique_ptr<Device>> MakeCuda(const CudaOptions& options) {
  SOLSTICE_ASSIGN_OR_RETURN(const Driver* driver, Driver::Open(options.driver_library));
  auto device = std::make_unique<CudaDevice>(options, driver);
  SOLSTICE_RETURN_IF_ERROR(device->Initialise());
  return std::unique_ptr<Device>(std::move(device));
}

}  // namespace solstice::device
