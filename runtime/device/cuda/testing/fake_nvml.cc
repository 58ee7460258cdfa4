// Stands in for libnvidia-ml.so.1 in tests: NVML itself runs only beside a driver. One GPU, "GPU-fake" at 0000:01:00.0,
// with forty processes; it tells no temperature and has no MIG. FAKE_NVML=broken: it does not start.
#include <cstdlib>
#include <cstring>

#include "runtime/device/cuda/nvml_api.h"

using namespace solstice::device::cuda::nvml;  // NOLINT: the interface that this file implements

namespace {
int gpu;
constexpr unsigned int kProcesses = 40;
Device Gpu() { return reinterpret_cast<Device>(&gpu); }
Return Give(Device device, unsigned int value, unsigned int* out) {
  if (device != Gpu()) return kNotFound;
  *out = value;
  return kSuccess;
}
}  // namespace

extern "C" {
Return nvmlInit_v2() {
  const char* mode = std::getenv("FAKE_NVML");
  return mode != nullptr && std::strcmp(mode, "broken") == 0 ? 9 : kSuccess;
}
Return nvmlShutdown() { return kSuccess; }
const char* nvmlErrorString(Return result) { return result == 9 ? "Driver Not Loaded" : "another error"; }
Return nvmlSystemGetDriverVersion(char* text, unsigned int length) {
  if (length < 8) return kInsufficientSize;
  std::strcpy(text, "580.1.2");
  return kSuccess;
}
Return nvmlDeviceGetHandleByUUID(const char* uuid, Device* device) {
  if (std::strcmp(uuid, "GPU-fake") != 0) return kNotFound;
  *device = Gpu();
  return kSuccess;
}
Return nvmlDeviceGetHandleByPciBusId_v2(const char* pci, Device* device) {
  if (std::strcmp(pci, "0000:01:00.0") != 0) return kNotFound;
  *device = Gpu();
  return kSuccess;
}
Return nvmlDeviceGetClockInfo(Device device, int type, unsigned int* mhz) {
  return Give(device, type == kClockSm ? 345 : 2619, mhz);
}
Return nvmlDeviceGetMaxClockInfo(Device device, int type, unsigned int* mhz) {
  return Give(device, type == kClockSm ? 1980 : 2620, mhz);
}
Return nvmlDeviceGetCurrentClocksThrottleReasons(Device device, unsigned long long* mask) {
  *mask = 0x1 | 0x4;
  return device == Gpu() ? kSuccess : kNotFound;
}
Return nvmlDeviceGetPowerUsage(Device device, unsigned int* milliwatts) { return Give(device, 76500, milliwatts); }
Return nvmlDeviceGetEnforcedPowerLimit(Device device, unsigned int* milliwatts) {
  return Give(device, 700000, milliwatts);
}
Return nvmlDeviceGetTemperature(Device, int, unsigned int* celsius) {
  *celsius = 99;
  return kNotSupported;
}
Return nvmlDeviceGetMemoryInfo(Device device, Memory* memory) {
  *memory = {1000, 400, 600};
  return device == Gpu() ? kSuccess : kNotFound;
}
Return nvmlDeviceGetComputeRunningProcesses_v3(Device device, unsigned int* count, ProcessInfo* processes) {
  if (device != Gpu()) return kNotFound;
  const unsigned int room = *count;
  *count = kProcesses;
  if (room < kProcesses) return kInsufficientSize;
  for (unsigned int i = 0; i < kProcesses; ++i) processes[i] = {i + 1, i == 0 ? kValueNotAvailable : i, 0, 0};
  return kSuccess;
}
Return nvmlDeviceGetEccMode(Device device, unsigned int* current, unsigned int* pending) {
  *pending = 0;
  return Give(device, 1, current);
}
Return nvmlDeviceGetPersistenceMode(Device device, unsigned int* mode) { return Give(device, 0, mode); }
}
