#include "runtime/device/cuda/properties.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/device/cuda/driver.h"

namespace solstice::device::cuda {
namespace {

using base::StrCat;

constexpr std::string_view kDrivable[] = {"sm_90a", "sm_100a", "sm_103a"};
constexpr int kNameBytes = 256;

}  // namespace

std::string ArchName(int major, int minor) {
  // The rest of each family has none: their kernels are those of the base architecture.
  constexpr std::pair<int, int> kSpecific[] = {{9, 0}, {10, 0}, {10, 3}, {11, 0}, {12, 0}, {12, 1}};
  const bool specific =
      std::find(std::begin(kSpecific), std::end(kSpecific), std::pair(major, minor)) != std::end(kSpecific);
  return StrCat("sm_", major * 10 + minor, specific ? "a" : "");
}

Status CheckDrivable(std::string_view name, std::string_view arch) {
  if (std::find(std::begin(kDrivable), std::end(kDrivable), arch) != std::end(kDrivable)) return absl::OkStatus();
  return base::FailedPrecondition(
      StrCat(name, " (", arch, ") is not a GPU that Solstice drives: it compiles for sm_90a, sm_100a and sm_103a"),
      "use a Hopper or Blackwell data centre GPU (H100, H200, B200, B300), or the emulator");
}

StatusOr<v1::DeviceProperties> ReadProperties(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  SOLSTICE_CUDA_CALL(&driver, cuDeviceGet, &device, ordinal);
  auto read = [&driver, device](CUdevice_attribute attribute, int64_t* value) -> Status {
    int number = 0;
    SOLSTICE_CUDA_CALL(&driver, cuDeviceGetAttribute, &number, attribute, device);
    *value = number;
    return absl::OkStatus();
  };
  int64_t major = 0, minor = 0, sm_count = 0, shared = 0, threads = 0, sm_threads = 0, registers = 0, sm_shared = 0,
          l2 = 0;
  int64_t grid[3] = {}, block[3] = {};
  const std::pair<CUdevice_attribute, int64_t*> wanted[] = {
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, &major},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, &minor},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, &sm_count},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, &shared},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, &threads},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, &sm_threads},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, &registers},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, &sm_shared},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, &l2},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, &grid[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, &grid[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, &grid[2]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, &block[0]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, &block[1]},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, &block[2]},
  };
  for (const auto& [attribute, value] : wanted) SOLSTICE_RETURN_IF_ERROR(read(attribute, value));
  char name[kNameBytes] = {};
  SOLSTICE_CUDA_CALL(&driver, cuDeviceGetName, name, kNameBytes - 1, device);
  size_t memory = 0;
  SOLSTICE_CUDA_CALL(&driver, cuDeviceTotalMem, &memory, device);

  v1::DeviceProperties properties;
  properties.set_kind(v1::CUDA);
  properties.set_name(name);
  properties.set_arch(ArchName(static_cast<int>(major), static_cast<int>(minor)));
  properties.set_ordinal(ordinal);
  properties.set_sm_count(sm_count);
  properties.set_max_shared_bytes(shared);
  properties.set_max_threads_per_block(threads);
  properties.set_max_threads_per_sm(sm_threads);
  properties.set_max_registers_per_block(registers);
  properties.set_shared_bytes_per_sm(sm_shared);
  properties.set_l2_bytes(l2);
  properties.set_memory_bytes(static_cast<int64_t>(memory));
  for (int64_t size : grid) properties.add_max_grid(size);
  for (int64_t size : block) properties.add_max_block(size);
  return properties;
}

StatusOr<v1::DeviceProperties> QueryProperties(const Driver& driver, int ordinal) {
  SOLSTICE_ASSIGN_OR_RETURN(v1::DeviceProperties properties, ReadProperties(driver, ordinal));
  SOLSTICE_RETURN_IF_ERROR(CheckDrivable(properties.name(), properties.arch()));
  return properties;
}

std::string UuidText(std::string_view bytes) {
  std::string hex = base::Hex(std::string(bytes)), text;
  for (size_t i = 0; i < hex.size(); ++i) {
    if (i == 8 || i == 12 || i == 16 || i == 20) text += '-';
    text += hex[i];
  }
  return text;
}

StatusOr<std::string> QueryUuid(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  SOLSTICE_CUDA_CALL(&driver, cuDeviceGet, &device, ordinal);
  CUuuid uuid = {};
  SOLSTICE_CUDA_CALL(&driver, cuDeviceGetUuid, &uuid, device);
  char name[kNameBytes] = {};
  SOLSTICE_CUDA_CALL(&driver, cuDeviceGetName, name, kNameBytes - 1, device);
  // The driver tells no other way whether this is an instance: "NVIDIA H200 MIG 1g.18gb".
  const bool instance = std::string_view(name).find(" MIG ") != std::string_view::npos;
  return StrCat(instance ? "MIG-" : "GPU-", UuidText(std::string_view(uuid.bytes, sizeof uuid.bytes)));
}

StatusOr<std::string> QueryPci(const Driver& driver, int ordinal) {
  CUdevice device = 0;
  SOLSTICE_CUDA_CALL(&driver, cuDeviceGet, &device, ordinal);
  char text[32] = {};
  SOLSTICE_CUDA_CALL(&driver, cuDeviceGetPCIBusId, text, sizeof text - 1, device);
  return base::Lower(text);
}

}  // namespace solstice::device::cuda
