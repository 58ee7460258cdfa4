// The seam between Solstice and what executes kernels. Two real implementations: the emulator, which executes PTX on
// the CPU, and the CUDA driver. A Device is used by one thread. Buffers and modules must die before their Device.
//
// A Status is our failure. What a submission does wrong comes back as RunOutcome (FAULT, TIMEOUT, ...); after any
// outcome but OK the device may be unusable for more work and its process should end.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::device {

using Address = uint64_t;

enum class Access { kReadOnly, kReadWrite };

// The part of a mapping that holds a tensor. The emulator faults on accesses outside it; CUDA only on those outside the
// mapping, and the judge's guard bytes catch writes between.
struct Extent {
  std::string name;  // "hidden_states", for fault messages
  int64_t offset = 0;
  int64_t bytes = 0;
  std::string what = "buffer";  // "input", "output", "scratch": stands before the name in messages
};

// A mapping of device memory.
class Buffer {
 public:
  virtual ~Buffer() = default;
  virtual Address address() const = 0;  // of the mapping's start
  virtual int64_t bytes() const = 0;    // mapped bytes, a multiple of Device::granularity()
  // A descriptor that another process can Import. Only for buffers made by Allocate. The emulator's
  // read-only descriptors cannot be mapped writable; a GPU's can, by a process's host code, never by its kernels.
  virtual StatusOr<base::UniqueFd> Export(Access access) const = 0;
};

class Module {
 public:
  virtual ~Module() = default;
};

struct LaunchParameters {
  std::string entry;
  int64_t grid[3] = {1, 1, 1};
  int64_t block[3] = {1, 1, 1};
  int64_t dynamic_shared_bytes = 0;
  // One a parameter, each of the parameter's size.
  std::vector<std::string> arguments;
};

// When an iteration ran, first start to last end, nanoseconds of the device's clock.
struct Span {
  int64_t start_ns = 0;
  int64_t end_ns = 0;
};

struct RunLimits {
  std::chrono::nanoseconds timeout = std::chrono::seconds(10);
  double instruction_budget = 0;  // emulator; estimate above it gives OVER_BUDGET; 0: none
  // Emulator: look for what RunOutcome.findings reports.
  bool sanitize = false;
  // Called as soon as everything enqueued has ended, before Synchronize looks at how; not at a timeout.
  std::function<void()> when_idle;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual const v1::DeviceProperties& properties() const = 0;
  // Mapping sizes are multiples of it, and what follows a mapping is unmapped.
  virtual int64_t granularity() const = 0;

  virtual StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, const Extent& extent) = 0;
  virtual StatusOr<std::unique_ptr<Buffer>> Import(base::UniqueFd handle, int64_t mapped_bytes, Access access,
                                                   const Extent& extent) = 0;
  // Host to device and back, synchronous, anywhere inside a mapping of this device (guard bytes included).
  virtual Status CopyIn(Address destination, std::span<const uint8_t> source) = 0;
  virtual Status CopyOut(std::span<uint8_t> destination, Address source) = 0;

  // Loads everything eagerly. RunOutcome NEEDS_DEVICE or FAULT: the program cannot be loaded here.
  virtual StatusOr<std::unique_ptr<Module>> Load(const v1::internal::LoadProgram& program,
                                                 v1::internal::RunOutcome* outcome) = 0;

  // In order, on one stream; nothing is guaranteed to start before Synchronize.
  virtual Status EnqueueLaunch(const Module& module, const LaunchParameters& launch) = 0;
  virtual Status EnqueueMemset(Address destination, uint8_t value, int64_t bytes) = 0;
  // Runs and waits for everything enqueued; the queue is empty afterwards whatever the outcome.
  virtual StatusOr<v1::internal::RunOutcome> Synchronize(const RunLimits& limits) = 0;

  // ---- Timed batches ---------------------------------------------------------------------------------------------
  // From BeginBatch on, what is enqueued waits behind a closed gate, at most BatchCapacity() operations, so that no
  // launch gap enters a latency. Operations between StartIteration and EndIteration are one iteration. Synchronize
  // opens the gate; TakeSpans then gives one span an iteration and ends the batch.

  // Timers that work here, best first; NONE always does. `note` says why not ACTIVITY, empty otherwise.
  virtual std::vector<v1::Timer> Timers(std::string* note) = 0;
  virtual int64_t BatchCapacity() const = 0;
  virtual Status BeginBatch(v1::Timer timer) = 0;
  virtual Status StartIteration() = 0;
  virtual Status EndIteration() = 0;
  // DATA_LOSS when records are missing: the batch says nothing. Empty for NONE.
  virtual StatusOr<std::vector<Span>> TakeSpans() = 0;
};

}  // namespace solstice::device
