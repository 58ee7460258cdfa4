#include "tests/conformance/runner.h"

#include "runtime/base/strings.h"
#include "runtime/device/emulator/emulator.h"
#include "tests/conformance/kernel.h"

namespace solstice::conformance {
namespace {

using base::StrCat;
using v1::internal::RunOutcome;

constexpr int64_t kBufferBytes = 64 << 10;
constexpr uint8_t kUnwritten = 0xee;

std::string Bytes(uint64_t value) { return std::string(reinterpret_cast<const char*>(&value), 8); }

std::string ExtraParameter() {
  std::string bytes;
  for (int i = 0; i < kExtraBytes; ++i) bytes += static_cast<char>(7 * i + 120);
  return bytes;
}

}  // namespace

StatusOr<std::unique_ptr<device::Module>> LoadModule(device::Device& device, const Module& module,
                                                     const std::string& cubin, std::string* why_not) {
  v1::internal::LoadProgram program;
  program.set_ptx(module.ptx);
  program.set_cubin(cubin);
  for (const std::string& entry : module.entries) program.add_kernels()->set_name(entry);
  RunOutcome outcome;
  SOLSTICE_ASSIGN_OR_RETURN(auto loaded, device.Load(program, &outcome));
  if (loaded == nullptr) *why_not = outcome.reason();
  return loaded;
}

StatusOr<std::unique_ptr<Bench>> Bench::Make(
    const std::function<StatusOr<std::unique_ptr<device::Device>>()>& make_device) {
  std::unique_ptr<Bench> bench(new Bench());
  SOLSTICE_ASSIGN_OR_RETURN(bench->device_, make_device());
  device::Device& device = *bench->device_;
  const int64_t mapped = (kBufferBytes + device.granularity() - 1) / device.granularity() * device.granularity();
  for (auto* buffer : {&bench->input_, &bench->output_, &bench->scratch_}) {
    SOLSTICE_ASSIGN_OR_RETURN(*buffer, device.Allocate(mapped, {"conformance", 0, kBufferBytes, "buffer"}));
  }
  return bench;
}

StatusOr<std::string> Bench::Launch(const device::Module& module, const std::string& entry, int threads,
                                    const std::vector<uint8_t>& input, std::vector<uint8_t>* answer) {
  const size_t scratch_bytes = static_cast<size_t>(kCommonBytes) + static_cast<size_t>(threads) * kOwnBytes;
  for (const size_t bytes : {input.size(), answer->size(), scratch_bytes}) {
    if (bytes > static_cast<size_t>(kBufferBytes)) return base::InvalidArgument(StrCat(entry, " is too large"));
  }
  const std::vector<uint8_t> unwritten(answer->size(), kUnwritten), zeros(scratch_bytes);
  SOLSTICE_RETURN_IF_ERROR(device_->CopyIn(input_->address(), input));
  SOLSTICE_RETURN_IF_ERROR(device_->CopyIn(output_->address(), unwritten));
  SOLSTICE_RETURN_IF_ERROR(device_->CopyIn(scratch_->address(), zeros));
  device::LaunchParameters launch;
  launch.entry = entry;
  launch.block[0] = threads;
  launch.arguments = {Bytes(input_->address()), Bytes(output_->address()), Bytes(scratch_->address()),
                      ExtraParameter()};
  SOLSTICE_RETURN_IF_ERROR(device_->EnqueueLaunch(module, launch));
  SOLSTICE_ASSIGN_OR_RETURN(RunOutcome outcome, device_->Synchronize({}));
  if (outcome.kind() == RunOutcome::NEEDS_DEVICE) return outcome.reason();
  if (outcome.kind() != RunOutcome::OK) return base::Internal(StrCat(entry, " failed: ", outcome.reason()));
  SOLSTICE_RETURN_IF_ERROR(device_->CopyOut(*answer, output_->address()));
  return std::string();
}

StatusOr<std::vector<Answer>> RunOnEmulator(const std::vector<Case>& cases, int threads) {
  device::EmulatorOptions options;
  options.threads = threads;
  const auto make = [options]() -> StatusOr<std::unique_ptr<device::Device>> { return device::MakeEmulator(options); };
  SOLSTICE_ASSIGN_OR_RETURN(auto bench, Bench::Make(make));
  std::vector<Answer> answers;
  for (const Case& c : cases) {
    Answer answer;
    // A module each: what the parser cannot read spoils no other case.
    const Module module{c.arch, ModuleHeader(c.arch) + c.ptx, {c.entry}};
    SOLSTICE_ASSIGN_OR_RETURN(auto loaded, LoadModule(bench->device(), module, "", &answer.why_not));
    if (loaded != nullptr) {
      answer.bytes.resize(c.AnswerBytes());
      auto refused = bench->Launch(*loaded, c.entry, c.tuples, c.input, &answer.bytes);
      answer.failed = !refused.ok();
      answer.why_not = refused.ok() ? *refused : base::MessageOf(refused.status());
    }
    if (!answer.why_not.empty()) answer.bytes.clear();
    if (answer.failed) {
      // A device is not used after a fault.
      loaded.reset();
      SOLSTICE_ASSIGN_OR_RETURN(bench, Bench::Make(make));
    }
    answers.push_back(std::move(answer));
  }
  return answers;
}

}  // namespace solstice::conformance
