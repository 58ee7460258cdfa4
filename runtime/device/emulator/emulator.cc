#include "runtime/device/emulator/emulator.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <thread>
#include <utility>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/device/emulator/alu.h"
#include "runtime/device/emulator/buffer.h"
#include "runtime/device/emulator/launch.h"
#include "runtime/device/emulator/module.h"

namespace solstice::device {
namespace {

using base::StrCat;
using v1::internal::Fault;
using v1::internal::RunOutcome;

constexpr int64_t kGranularity = 64 << 10;
constexpr int64_t kMostParameterBytes = 32764;

struct Operation {
  const EmulatorModule* module = nullptr;  // nullptr: a memset
  LaunchParameters launch;
  Address destination = 0;
  uint8_t value = 0;
  int64_t bytes = 0;
};

class Emulator : public Device {
 public:
  explicit Emulator(const EmulatorOptions& options)
      : options_(options), properties_(EmulatorProperties()), memory_(options.memory_bytes) {}

  const v1::DeviceProperties& properties() const override { return properties_; }
  int64_t granularity() const override { return kGranularity; }

  StatusOr<std::unique_ptr<Buffer>> Allocate(int64_t bytes, const Extent& extent) override {
    return memory_.Allocate(bytes, kGranularity, extent);
  }
  StatusOr<std::unique_ptr<Buffer>> Import(base::UniqueFd handle, int64_t mapped_bytes, Access access,
                                           const Extent& extent) override {
    return memory_.Import(std::move(handle), mapped_bytes, kGranularity, access, extent);
  }
  Status CopyIn(Address destination, std::span<const uint8_t> source) override {
    SOLSTICE_ASSIGN_OR_RETURN(uint8_t* const to, memory_.Host(destination, source.size(), true));
    if (!source.empty()) std::memcpy(to, source.data(), source.size());
    memory_.NoteWritten(destination, source.size());
    return absl::OkStatus();
  }
  Status CopyOut(std::span<uint8_t> destination, Address source) override {
    SOLSTICE_ASSIGN_OR_RETURN(uint8_t* const from, memory_.Host(source, destination.size(), false));
    if (!destination.empty()) std::memcpy(destination.data(), from, destination.size());
    return absl::OkStatus();
  }

  StatusOr<std::unique_ptr<Module>> Load(const v1::internal::LoadProgram& program, RunOutcome* outcome) override {
    *outcome = RunOutcome();
    auto text = ptx::Parse(program.ptx());
    if (!text.ok()) {
      // The toolchain made the text, so it is right: what this parser cannot read needs a GPU.
      if (!absl::IsInvalidArgument(text.status())) return text.status();
      outcome->set_kind(RunOutcome::NEEDS_DEVICE);
      outcome->set_reason(StrCat("the emulator cannot read the program: ", base::MessageOf(text.status())));
      return std::unique_ptr<Module>();
    }
    ptx::Module parsed = std::move(text).value();
    if (parsed.address_size != 64) {
      outcome->set_kind(RunOutcome::NEEDS_DEVICE);
      outcome->set_reason("the program has 32-bit addresses; the emulator executes 64-bit programs only");
      return std::unique_ptr<Module>();
    }
    auto module = EmulatorModule::Make(std::move(parsed), memory_.map(), options_.memory_bytes,
                                       options_.baseline_isa ? BaselineIsa() : BestIsa());
    if (!module.ok()) {
      if (module.status().code() != absl::StatusCode::kResourceExhausted) return module.status();
      outcome->set_kind(RunOutcome::OUT_OF_MEMORY);
      outcome->set_reason(base::MessageOf(module.status()));
      return std::unique_ptr<Module>();
    }
    outcome->set_kind(RunOutcome::OK);
    return std::unique_ptr<Module>(std::move(module).value());
  }

  Status EnqueueLaunch(const Module& module, const LaunchParameters& launch) override {
    const auto* emulated = dynamic_cast<const EmulatorModule*>(&module);
    if (emulated == nullptr) return base::InvalidArgument("the module was not loaded by this device");
    const Program* program = emulated->FindProgram(launch.entry);
    if (program == nullptr) {
      const std::string near = base::Nearest(launch.entry, emulated->EntryNames());
      return base::NotFound(StrCat("the program has no entry ", base::Quote(launch.entry)),
                            near.empty() ? "" : StrCat("did you mean ", near, "?"));
    }
    if (launch.arguments.size() != program->parameters.size()) {
      return base::InvalidArgument(
          StrCat(launch.entry, " takes ", program->parameters.size(), " arguments, not ", launch.arguments.size()));
    }
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      if (static_cast<int64_t>(launch.arguments[i].size()) != program->parameters[i].bytes) {
        return base::InvalidArgument(StrCat(launch.entry, ": argument ", i, " has ", launch.arguments[i].size(),
                                            " bytes, its parameter ", program->parameters[i].bytes));
      }
    }
    Operation operation;
    operation.module = emulated;
    operation.launch = launch;
    queue_.push_back(std::move(operation));
    return absl::OkStatus();
  }

  Status EnqueueMemset(Address destination, uint8_t value, int64_t bytes) override {
    if (bytes < 0) return base::InvalidArgument("memset of a negative number of bytes");
    SOLSTICE_RETURN_IF_ERROR(memory_.Host(destination, static_cast<size_t>(bytes), true).status());
    Operation operation;
    operation.destination = destination;
    operation.value = value;
    operation.bytes = bytes;
    queue_.push_back(std::move(operation));
    return absl::OkStatus();
  }

  StatusOr<RunOutcome> Synchronize(const RunLimits& limits) override {
    const std::vector<Operation> queue = std::exchange(queue_, {});
    RunState run(limits.timeout);
    run.instruction_budget = limits.instruction_budget;
    run.threads = options_.threads > 0 ? options_.threads : static_cast<int>(std::thread::hardware_concurrency());
    Findings findings;
    if (limits.sanitize) {
      run.findings = &findings;
      run.written = memory_.WrittenMaps();
    } else if (!queue.empty()) {
      memory_.NoteUnwatched();
    }
    RunOutcome outcome;
    outcome.set_kind(RunOutcome::OK);
    for (const Operation& operation : queue) {
      if (operation.module == nullptr) {
        SOLSTICE_ASSIGN_OR_RETURN(uint8_t* const to,
                                  memory_.Host(operation.destination, static_cast<size_t>(operation.bytes), true));
        if (operation.bytes > 0) std::memset(to, operation.value, static_cast<size_t>(operation.bytes));
        if (limits.sanitize) memory_.NoteWritten(operation.destination, static_cast<size_t>(operation.bytes));
        continue;
      }
      if (!Run(operation, run, &outcome)) break;
    }
    if (limits.when_idle && outcome.kind() != RunOutcome::TIMEOUT) limits.when_idle();
    findings.Report(&outcome);
    outcome.set_instructions(static_cast<int64_t>(run.instructions));
    if (outcome.estimated_instructions() == 0) outcome.set_estimated_instructions(run.estimated);
    outcome.set_device_output(std::string(base::IsValidUtf8(run.device_output)
                                              ? run.device_output
                                              : base::Quote(run.device_output, run.device_output.size() * 4)));
    outcome.set_milliseconds(static_cast<double>(run.clock.NowNs()) * 1e-6);
    return outcome;
  }

  // It has no latencies; batches run, so that what a timed run checks is checked here too.
  std::vector<v1::Timer> Timers(std::string* note) override {
    if (note != nullptr) *note = "the emulator has no latencies";
    return {v1::TIMER_NONE};
  }
  int64_t BatchCapacity() const override { return 1 << 16; }
  Status BeginBatch(v1::Timer timer) override {
    if (timer == v1::TIMER_NONE) return absl::OkStatus();
    return base::FailedPrecondition("the emulator has no latencies", "use a GPU");
  }
  Status StartIteration() override { return absl::OkStatus(); }
  Status EndIteration() override { return absl::OkStatus(); }
  StatusOr<std::vector<Span>> TakeSpans() override { return std::vector<Span>(); }

 private:
  bool Run(const Operation& operation, RunState& run, RunOutcome* outcome);
  std::string CheckLaunch(const Program& program, const LaunchParameters& launch) const;

  const EmulatorOptions options_;
  const v1::DeviceProperties properties_;
  EmulatorMemory memory_;
  std::vector<Operation> queue_;
  uint64_t launches_ = 0;
};

// Why the hardware would refuse this launch; empty: it would not.
std::string Emulator::CheckLaunch(const Program& program, const LaunchParameters& launch) const {
  static constexpr char kAxis[] = "xyz";
  int64_t threads = 1, most_threads = 1;
  for (int i = 0; i < 3; ++i) {
    if (launch.grid[i] < 1 || launch.grid[i] > properties_.max_grid(i)) {
      return StrCat("grid.", kAxis[i], " is ", launch.grid[i], "; it must be 1 to ", properties_.max_grid(i));
    }
    if (launch.block[i] < 1 || launch.block[i] > properties_.max_block(i)) {
      return StrCat("block.", kAxis[i], " is ", launch.block[i], "; it must be 1 to ", properties_.max_block(i));
    }
    threads *= launch.block[i];
    if (program.required_threads[i] > 0 && program.required_threads[i] != launch.block[i]) {
      return StrCat("block.", kAxis[i], " is ", launch.block[i], "; the kernel requires ", program.required_threads[i],
                    " (.reqntid)");
    }
    most_threads *= std::max<int64_t>(program.max_threads[i], 1);
  }
  if (threads > properties_.max_threads_per_block()) {
    return StrCat("the block has ", threads, " threads; the most is ", properties_.max_threads_per_block());
  }
  if (program.max_threads[0] > 0 && threads > most_threads) {
    return StrCat("the block has ", threads, " threads; the kernel was compiled for at most ", most_threads,
                  " (__launch_bounds__)");
  }
  const int64_t total = std::max(program.static_shared_bytes, program.dynamic_shared_offset) +
                        std::clamp<int64_t>(launch.dynamic_shared_bytes, 0, int64_t{1} << 40);
  if (launch.dynamic_shared_bytes < 0 || total > properties_.max_shared_bytes()) {
    return StrCat("the block needs ", program.static_shared_bytes, " bytes of static and ", launch.dynamic_shared_bytes,
                  " of dynamic shared memory; the most together is ", properties_.max_shared_bytes());
  }
  if (program.parameter_bytes > kMostParameterBytes) {
    return StrCat("the parameters have ", program.parameter_bytes, " bytes; the most is ", kMostParameterBytes);
  }
  return "";
}

bool Emulator::Run(const Operation& operation, RunState& run, RunOutcome* outcome) {
  const LaunchParameters& parameters = operation.launch;
  const Program& program = *operation.module->FindProgram(parameters.entry);
  if (const std::string problem = CheckLaunch(program, parameters); !problem.empty()) {
    outcome->set_kind(RunOutcome::FAULT);
    outcome->set_reason(StrCat(program.entry, " cannot be launched: ", problem));
    Fault& fault = *outcome->mutable_fault();
    fault.set_kind(Fault::INVALID_LAUNCH);
    fault.set_kernel(program.entry);
    fault.set_message(outcome->reason());
    return false;
  }
  if (!program.unsupported.empty()) {
    outcome->set_kind(RunOutcome::NEEDS_DEVICE);
    outcome->set_reason(StrCat(program.entry, " uses ", program.unsupported, ", which the emulator does not execute"));
    return false;
  }
  Launch launch;
  launch.program = &program;
  launch.memory = memory_.map();
  launch.options = &options_;
  for (int i = 0; i < 3; ++i) {
    launch.grid[i] = static_cast<uint32_t>(parameters.grid[i]);
    launch.block[i] = static_cast<uint32_t>(parameters.block[i]);
  }
  launch.dynamic_shared_bytes = parameters.dynamic_shared_bytes;
  launch.number = ++launches_;
  launch.parameters.assign(static_cast<size_t>(program.parameter_bytes), '\0');
  for (size_t i = 0; i < parameters.arguments.size(); ++i) {
    std::memcpy(launch.parameters.data() + program.parameters[i].offset, parameters.arguments[i].data(),
                parameters.arguments[i].size());
  }
  launch.run = &run;
  return RunLaunch(launch, outcome);
}

}  // namespace

std::unique_ptr<Device> MakeEmulator(const EmulatorOptions& options) { return std::make_unique<Emulator>(options); }

v1::DeviceProperties EmulatorProperties() {
  v1::DeviceProperties p;
  p.set_kind(v1::EMULATOR);
  p.set_name("Solstice emulator (sm_90a)");
  p.set_arch("sm_90a");
  p.set_sm_count(132);
  p.set_max_shared_bytes(232448);
  p.set_max_threads_per_block(1024);
  p.set_max_threads_per_sm(2048);
  p.set_max_registers_per_block(65536);
  p.set_shared_bytes_per_sm(233472);
  p.set_l2_bytes(52428800);
  p.set_memory_bytes(int64_t{141} * 1000 * 1000 * 1000);
  for (const int64_t x : {int64_t{2147483647}, int64_t{65535}, int64_t{65535}}) p.add_max_grid(x);
  for (const int64_t x : {1024, 1024, 64}) p.add_max_block(x);
  return p;
}

}  // namespace solstice::device
