// Runs cases on a device.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "tests/conformance/answers.h"
#include "tests/conformance/case.h"

namespace solstice::conformance {

// One module for a device: PTX for the emulator, a cubin for a GPU.
struct Module {
  std::string arch = "sm_90a";
  std::string ptx;  // with its header
  std::vector<std::string> entries;
};

// PTX to cubins. Thread-safe.
class Assembler {
 public:
  virtual ~Assembler() = default;
  // INVALID_ARGUMENT with the assembler's words if it refuses the text.
  virtual StatusOr<std::string> Assemble(const Module& module) = 0;
};
StatusOr<std::unique_ptr<Assembler>> OpenAssembler();

// Nothing if `assembler` is null. RunOutcome NEEDS_DEVICE ...: `why_not` says why the module cannot be loaded.
StatusOr<std::unique_ptr<device::Module>> LoadModule(device::Device& device, const Module& module,
                                                     const std::string& cubin, std::string* why_not);

// A device and buffers for its cases.
class Bench {
 public:
  static StatusOr<std::unique_ptr<Bench>> Make(
      const std::function<StatusOr<std::unique_ptr<device::Device>>()>& make_device);

  // One launch of one block of `threads`: `input` is copied in, `answer` comes back. Text: why it did not run. Status:
  // also a fault or timeout, after which the bench is of no use.
  StatusOr<std::string> Launch(const device::Module& module, const std::string& entry, int threads,
                               const std::vector<uint8_t>& input, std::vector<uint8_t>* answer);
  device::Device& device() { return *device_; }

 private:
  std::unique_ptr<device::Device> device_;
  std::unique_ptr<device::Buffer> input_, output_, scratch_;
};

// On the emulator, in this process.
StatusOr<std::vector<Answer>> RunOnEmulator(const std::vector<Case>& cases, int threads = 0);
// On GPU `ordinal`: assembled in parallel, in modules of many cases, and run by a child process, which another one
// follows if a case spoils it. `device` gets its name.
StatusOr<std::vector<Answer>> RunOnCuda(const std::vector<Case>& cases, int ordinal, std::string* device);

}  // namespace solstice::conformance
