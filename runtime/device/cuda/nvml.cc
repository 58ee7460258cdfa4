#include "runtime/device/cuda/nvml.h"

#include <dlfcn.h>

#include <algorithm>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/device/cuda/nvml_api.h"

namespace solstice::device::cuda {
namespace {

using base::StrCat;

constexpr unsigned int kMaxProcesses = 1024;

template <typename Function>
void Find(void* library, std::initializer_list<const char*> names, Function* function) {
  for (const char* name : names) {
    if (*function == nullptr) *function = reinterpret_cast<Function>(::dlsym(library, name));
  }
}

// A function that this NVML lacks stays null, and what it would tell unknown.
nvml::Functions FindFunctions(void* library) {
  nvml::Functions f = {};
  Find(library, {"nvmlInit_v2"}, &f.Init);
  Find(library, {"nvmlShutdown"}, &f.Shutdown);
  Find(library, {"nvmlErrorString"}, &f.ErrorString);
  Find(library, {"nvmlSystemGetDriverVersion"}, &f.SystemGetDriverVersion);
  Find(library, {"nvmlDeviceGetHandleByUUID"}, &f.DeviceGetHandleByUUID);
  Find(library, {"nvmlDeviceGetHandleByPciBusId_v2"}, &f.DeviceGetHandleByPciBusId);
  Find(library, {"nvmlDeviceGetClockInfo"}, &f.DeviceGetClockInfo);
  Find(library, {"nvmlDeviceGetMaxClockInfo"}, &f.DeviceGetMaxClockInfo);
  // One function under its new and its old name.
  Find(library, {"nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"},
       &f.DeviceGetCurrentClocksThrottleReasons);
  Find(library, {"nvmlDeviceGetPowerUsage"}, &f.DeviceGetPowerUsage);
  Find(library, {"nvmlDeviceGetEnforcedPowerLimit"}, &f.DeviceGetEnforcedPowerLimit);
  Find(library, {"nvmlDeviceGetTemperature"}, &f.DeviceGetTemperature);
  Find(library, {"nvmlDeviceGetMemoryInfo"}, &f.DeviceGetMemoryInfo);
  Find(library, {"nvmlDeviceGetComputeRunningProcesses_v3"}, &f.DeviceGetComputeRunningProcesses);
  Find(library, {"nvmlDeviceGetMigMode"}, &f.DeviceGetMigMode);
  Find(library, {"nvmlDeviceGetEccMode"}, &f.DeviceGetEccMode);
  Find(library, {"nvmlDeviceGetPersistenceMode"}, &f.DeviceGetPersistenceMode);
  return f;
}

// True when `function` is there and gave its answer.
template <typename Function, typename... Arguments>
bool Ask(Function function, Arguments... arguments) {
  return function != nullptr && function(arguments...) == nvml::kSuccess;
}

class OpenNvml : public Nvml {
 public:
  explicit OpenNvml(const nvml::Functions& functions) : f_(functions) {}
  ~OpenNvml() override {
    if (f_.Shutdown != nullptr) f_.Shutdown();
  }

  std::string DriverVersion() const override {
    char text[96] = {};
    return Ask(f_.SystemGetDriverVersion, text, static_cast<unsigned int>(sizeof text - 1)) ? text : "";
  }

  Status Describe(v1::GpuProbe* gpu) const override {
    nvml::Device device = nullptr;
    if (!Ask(f_.DeviceGetHandleByUUID, gpu->uuid().c_str(), &device) &&
        !Ask(f_.DeviceGetHandleByPciBusId, gpu->pci().c_str(), &device)) {
      return base::NotFound(StrCat("NVML knows no GPU ", base::Quote(gpu->uuid()), " at ", base::Quote(gpu->pci())));
    }
    DescribeClocks(device, gpu);
    DescribeModes(device, gpu);
    nvml::Memory memory = {};
    if (Ask(f_.DeviceGetMemoryInfo, device, &memory)) gpu->set_memory_used_bytes(static_cast<int64_t>(memory.used));
    DescribeProcesses(device, gpu);
    return absl::OkStatus();
  }

 private:
  void DescribeClocks(nvml::Device device, v1::GpuProbe* gpu) const {
    unsigned int value = 0;
    auto number = [&value] { return static_cast<int32_t>(value); };
    if (Ask(f_.DeviceGetClockInfo, device, nvml::kClockSm, &value)) gpu->set_sm_clock_mhz(number());
    if (Ask(f_.DeviceGetMaxClockInfo, device, nvml::kClockSm, &value)) gpu->set_max_sm_clock_mhz(number());
    if (Ask(f_.DeviceGetClockInfo, device, nvml::kClockMemory, &value)) gpu->set_memory_clock_mhz(number());
    if (Ask(f_.DeviceGetMaxClockInfo, device, nvml::kClockMemory, &value)) gpu->set_max_memory_clock_mhz(number());
    if (Ask(f_.DeviceGetPowerUsage, device, &value)) gpu->set_power_w(value * 1e-3);
    if (Ask(f_.DeviceGetEnforcedPowerLimit, device, &value)) gpu->set_power_limit_w(value * 1e-3);
    if (Ask(f_.DeviceGetTemperature, device, nvml::kTemperatureGpu, &value)) gpu->set_temperature_c(number());
    unsigned long long mask = 0;
    if (!Ask(f_.DeviceGetCurrentClocksThrottleReasons, device, &mask)) return;
    for (std::string& word : ThrottleWords(mask)) gpu->add_throttle_reasons(std::move(word));
  }

  void DescribeModes(nvml::Device device, v1::GpuProbe* gpu) const {
    unsigned int current = 0, pending = 0;
    auto mode = [&current](bool known) { return known ? static_cast<int32_t>(current) : -1; };
    // An instance is one whatever NVML says of its handle.
    if (gpu->mig_mode() != 1) gpu->set_mig_mode(mode(Ask(f_.DeviceGetMigMode, device, &current, &pending)));
    gpu->set_ecc_mode(mode(Ask(f_.DeviceGetEccMode, device, &current, &pending)));
    gpu->set_persistence_mode(mode(Ask(f_.DeviceGetPersistenceMode, device, &current)));
  }

  void DescribeProcesses(nvml::Device device, v1::GpuProbe* gpu) const {
    if (f_.DeviceGetComputeRunningProcesses == nullptr) return;
    std::vector<nvml::ProcessInfo> found(32);
    // More may start between the answers.
    for (int tries = 0; tries < 4; ++tries) {
      unsigned int count = static_cast<unsigned int>(found.size());
      nvml::Return result = f_.DeviceGetComputeRunningProcesses(device, &count, found.data());
      if (result == nvml::kInsufficientSize && found.size() < kMaxProcesses) {
        found.resize(
            std::min(kMaxProcesses, std::max<unsigned int>(count, static_cast<unsigned int>(found.size())) * 2));
        continue;
      }
      if (result != nvml::kSuccess) return;
      gpu->set_processes_known(true);
      for (unsigned int i = 0; i < std::min<size_t>(count, found.size()); ++i) {
        v1::GpuProcess* process = gpu->add_processes();
        process->set_pid(found[i].pid);
        if (found[i].used_gpu_memory != nvml::kValueNotAvailable) {
          process->set_memory_bytes(static_cast<int64_t>(found[i].used_gpu_memory));
        }
      }
      return;
    }
  }

  const nvml::Functions f_;
};

}  // namespace

std::vector<std::string> ThrottleWords(uint64_t mask) {
  constexpr std::pair<uint64_t, const char*> kReasons[] = {
      {0x08, "hardware slowdown"},
      {0x40, "hardware thermal slowdown"},
      {0x80, "hardware power brake"},
      {0x20, "software thermal slowdown"},
      {0x04, "power cap"},
      {0x10, "sync boost"},
      {0x02, "application clocks"},
  };
  constexpr uint64_t kHarmless = 0x01 | 0x100;  // idle, display clock
  std::vector<std::string> words;
  for (const auto& [bit, word] : kReasons) {
    if ((mask & bit) != 0) words.push_back(word);
    mask &= ~bit;
  }
  mask &= ~kHarmless;
  for (int bit = 0; bit < 64; ++bit) {
    if ((mask >> bit & 1) != 0) words.push_back(StrCat("reason ", bit));
  }
  return words;
}

StatusOr<std::unique_ptr<Nvml>> Nvml::Open(const std::string& library) {
  const std::string name = library.empty() ? "libnvidia-ml.so.1" : library;
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return base::FailedPrecondition(StrCat("there is no NVML here: ", why == nullptr ? name : why),
                                    "install the NVIDIA driver with its management library (libnvidia-ml.so.1)");
  }
  const nvml::Functions functions = FindFunctions(handle);
  const nvml::Return result = functions.Init == nullptr ? nvml::kNotFound : functions.Init();
  if (result != nvml::kSuccess) {
    std::string why = StrCat("NVML error ", result);
    if (functions.Init == nullptr) {
      why = StrCat(name, " has no nvmlInit_v2");
    } else if (functions.ErrorString != nullptr) {
      if (const char* text = functions.ErrorString(result)) why = text;
    }
    // Not unloaded: libraries of NVIDIA leave threads and handlers behind.
    return base::FailedPrecondition(StrCat("NVML does not start: ", why), "look at nvidia-smi");
  }
  return std::unique_ptr<Nvml>(new OpenNvml(functions));
}

}  // namespace solstice::device::cuda
