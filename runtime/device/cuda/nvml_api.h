// The part of NVML's C interface that Solstice uses, declared by its public documentation: there is no header for it in
// the toolkit's wheels. Include in this folder only.
#pragma once

#include <cstdint>

namespace solstice::device::cuda::nvml {

using Return = int;
using Device = struct DeviceOpaque*;

inline constexpr Return kSuccess = 0, kNotSupported = 3, kNotFound = 6, kInsufficientSize = 7;
// Clock types and the one temperature sensor.
inline constexpr int kClockSm = 1, kClockMemory = 2, kTemperatureGpu = 0;
inline constexpr unsigned long long kValueNotAvailable = ~0ULL;

struct Memory {
  unsigned long long total, free, used;
};

struct ProcessInfo {
  unsigned int pid;
  unsigned long long used_gpu_memory;
  unsigned int gpu_instance_id, compute_instance_id;
};

struct Functions {
  Return (*Init)();
  Return (*Shutdown)();
  const char* (*ErrorString)(Return);
  Return (*SystemGetDriverVersion)(char*, unsigned int length);
  Return (*DeviceGetHandleByUUID)(const char*, Device*);
  Return (*DeviceGetHandleByPciBusId)(const char*, Device*);
  Return (*DeviceGetClockInfo)(Device, int type, unsigned int* mhz);
  Return (*DeviceGetMaxClockInfo)(Device, int type, unsigned int* mhz);
  Return (*DeviceGetCurrentClocksThrottleReasons)(Device, unsigned long long* mask);
  Return (*DeviceGetPowerUsage)(Device, unsigned int* milliwatts);
  Return (*DeviceGetEnforcedPowerLimit)(Device, unsigned int* milliwatts);
  Return (*DeviceGetTemperature)(Device, int sensor, unsigned int* celsius);
  Return (*DeviceGetMemoryInfo)(Device, Memory*);
  Return (*DeviceGetComputeRunningProcesses)(Device, unsigned int* count, ProcessInfo*);
  Return (*DeviceGetMigMode)(Device, unsigned int* current, unsigned int* pending);
  Return (*DeviceGetEccMode)(Device, unsigned int* current, unsigned int* pending);
  Return (*DeviceGetPersistenceMode)(Device, unsigned int* mode);
};

}  // namespace solstice::device::cuda::nvml
