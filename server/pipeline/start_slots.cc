#include "server/pipeline/start_slots.h"

#include <future>

#include "runtime/base/strings.h"
#include "runtime/bulk/bulk.h"

namespace solstice::pipeline {
namespace {

// Compiled as any program is, and cached as one. Invalid for the emulator, whose judge works on the host.
std::shared_future<StatusOr<v1::internal::Program>> TrustedKernels(CompilerPool& pool, const v1::HostProbe& host,
                                                                   const DeviceSpec& device) {
  if (device.kind != v1::CUDA) return {};
  std::string arch;
  for (const v1::GpuProbe& gpu : host.gpus()) {
    if (gpu.uuid() == device.uuid) arch = gpu.properties().arch();
  }
  auto compile = [&pool, arch]() -> StatusOr<v1::internal::Program> {
    SOLSTICE_ASSIGN_OR_RETURN(auto compiled, pool.Compile("solstice", "trusted", bulk::KernelSource(arch)));
    if (compiled.program.verdict() == v1::PASSED) return std::move(compiled.program);
    return base::Internal(base::StrCat("Solstice's own kernels do not compile for ", arch, ": ",
                                       compiled.program.reason(), "\n", compiled.program.log()));
  };
  return std::async(std::launch::async, compile).share();
}

}  // namespace

StatusOr<std::vector<std::unique_ptr<DeviceSlot>>> StartDeviceSlots(sandbox::Spawner* spawner,
                                                                    const worker::Installation& installation,
                                                                    CompilerPool& pool, const v1::HostProbe& host,
                                                                    const std::vector<DeviceSpec>& devices) {
  std::vector<std::future<StatusOr<std::unique_ptr<DeviceSlot>>>> starting;
  for (size_t i = 0; i < devices.size(); ++i) {
    Workers::Options options;
    options.spawner = spawner;
    options.installation = installation;
    options.device = {devices[i].kind, devices[i].ordinal, devices[i].uuid};
    options.slot_index = static_cast<int>(i);
    options.trusted = TrustedKernels(pool, host, devices[i]);
    starting.push_back(std::async(std::launch::async, DeviceSlot::Start, std::move(options)));
  }
  std::vector<std::unique_ptr<DeviceSlot>> slots;
  Status status;
  for (auto& start : starting) {
    auto slot = start.get();
    if (slot.ok()) {
      slots.push_back(*std::move(slot));
    } else if (status.ok()) {
      status = slot.status();
    }
  }
  if (!status.ok()) return status;
  return slots;
}

}  // namespace solstice::pipeline
