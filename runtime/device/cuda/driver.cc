#include "runtime/device/cuda/driver.h"

#include <dlfcn.h>
#include <stdlib.h>

#include <atomic>

#include "runtime/base/mutex.h"
#include "runtime/base/strings.h"

namespace solstice::device::cuda {
namespace {

using base::StrCat;

constexpr int kOldestCuda = 12040;  // cuFuncGetParamInfo
std::atomic<bool> opened{false};

struct NamedError {
  CUresult result;
  const char* name;
};
#define SOLSTICE_NAMED(name) \
  { name, #name }
constexpr NamedError kErrors[] = {
    SOLSTICE_NAMED(CUDA_ERROR_INVALID_VALUE),
    SOLSTICE_NAMED(CUDA_ERROR_OUT_OF_MEMORY),
    SOLSTICE_NAMED(CUDA_ERROR_NOT_INITIALIZED),
    SOLSTICE_NAMED(CUDA_ERROR_DEINITIALIZED),
    SOLSTICE_NAMED(CUDA_ERROR_STUB_LIBRARY),
    SOLSTICE_NAMED(CUDA_ERROR_DEVICE_UNAVAILABLE),
    SOLSTICE_NAMED(CUDA_ERROR_NO_DEVICE),
    SOLSTICE_NAMED(CUDA_ERROR_INVALID_DEVICE),
    SOLSTICE_NAMED(CUDA_ERROR_INVALID_IMAGE),
    SOLSTICE_NAMED(CUDA_ERROR_INVALID_CONTEXT),
    SOLSTICE_NAMED(CUDA_ERROR_MAP_FAILED),
    SOLSTICE_NAMED(CUDA_ERROR_NO_BINARY_FOR_GPU),
    SOLSTICE_NAMED(CUDA_ERROR_ECC_UNCORRECTABLE),
    SOLSTICE_NAMED(CUDA_ERROR_NVLINK_UNCORRECTABLE),
    SOLSTICE_NAMED(CUDA_ERROR_INVALID_PTX),
    SOLSTICE_NAMED(CUDA_ERROR_CONTAINED),
    SOLSTICE_NAMED(CUDA_ERROR_OPERATING_SYSTEM),
    SOLSTICE_NAMED(CUDA_ERROR_INVALID_HANDLE),
    SOLSTICE_NAMED(CUDA_ERROR_NOT_FOUND),
    SOLSTICE_NAMED(CUDA_ERROR_NOT_READY),
    SOLSTICE_NAMED(CUDA_ERROR_ILLEGAL_ADDRESS),
    SOLSTICE_NAMED(CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES),
    SOLSTICE_NAMED(CUDA_ERROR_LAUNCH_TIMEOUT),
    SOLSTICE_NAMED(CUDA_ERROR_ASSERT),
    SOLSTICE_NAMED(CUDA_ERROR_HARDWARE_STACK_ERROR),
    SOLSTICE_NAMED(CUDA_ERROR_ILLEGAL_INSTRUCTION),
    SOLSTICE_NAMED(CUDA_ERROR_MISALIGNED_ADDRESS),
    SOLSTICE_NAMED(CUDA_ERROR_INVALID_ADDRESS_SPACE),
    SOLSTICE_NAMED(CUDA_ERROR_INVALID_PC),
    SOLSTICE_NAMED(CUDA_ERROR_LAUNCH_FAILED),
    SOLSTICE_NAMED(CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE),
    SOLSTICE_NAMED(CUDA_ERROR_TENSOR_MEMORY_LEAK),
    SOLSTICE_NAMED(CUDA_ERROR_NOT_PERMITTED),
    SOLSTICE_NAMED(CUDA_ERROR_NOT_SUPPORTED),
    SOLSTICE_NAMED(CUDA_ERROR_SYSTEM_NOT_READY),
    SOLSTICE_NAMED(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH),
    SOLSTICE_NAMED(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE),
    SOLSTICE_NAMED(CUDA_ERROR_MPS_CONNECTION_FAILED),
    SOLSTICE_NAMED(CUDA_ERROR_UNKNOWN),
};
#undef SOLSTICE_NAMED

std::string LoadedPath(void* symbol) {
  Dl_info info;
  return ::dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

std::string VersionText(int version) { return StrCat(version / 1000, ".", version % 1000 / 10); }

Status FindFunctions(void* library, Driver* driver) {
  using GetVersion = CUresult (*)(int*);
  auto get_version = reinterpret_cast<GetVersion>(::dlsym(library, "cuDriverGetVersion"));
  auto find = reinterpret_cast<decltype(&::cuGetProcAddress)>(::dlsym(library, "cuGetProcAddress_v2"));
  int version = 0;
  if (get_version != nullptr && get_version(&version) != CUDA_SUCCESS) version = 0;
  driver->cuda_version = version;
  if (find == nullptr || version < kOldestCuda) {
    return base::FailedPrecondition(
        StrCat("the CUDA driver supports CUDA ", VersionText(version), "; Solstice needs ", VersionText(kOldestCuda)),
        "install a newer NVIDIA driver");
  }
  std::string missing;
#define SOLSTICE_CUDA_FIND(name)                                                                                \
  {                                                                                                             \
    void* found = nullptr;                                                                                      \
    CUdriverProcAddressQueryResult query = CU_GET_PROC_ADDRESS_SUCCESS;                                         \
    if (find(#name, &found, kOldestCuda, CU_GET_PROC_ADDRESS_DEFAULT, &query) != CUDA_SUCCESS) found = nullptr; \
    if (found == nullptr) missing = #name;                                                                      \
    driver->name##_ = reinterpret_cast<decltype(driver->name##_)>(found);                                       \
  }
  SOLSTICE_CUDA_FUNCTIONS(SOLSTICE_CUDA_FIND)
#undef SOLSTICE_CUDA_FIND
  if (!missing.empty()) {
    return base::FailedPrecondition(StrCat("the CUDA driver (", VersionText(version), ") has no ", missing),
                                    "install a newer NVIDIA driver");
  }
  return absl::OkStatus();
}

// `loaded`: the library is in the process, so that the answer is for good.
StatusOr<Driver*> OpenOnce(const std::string& library, bool* loaded) {
  const std::string name = library.empty() ? "libcuda.so.1" : library;
  // Kernels are loaded when their module is, not in the middle of the first timed run.
  ::setenv("CUDA_MODULE_LOADING", "EAGER", 1);
  // Ordinals are those of nvidia-smi, so that --device cuda:1 means the same everywhere.
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 0);
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    const char* why = ::dlerror();
    return base::FailedPrecondition(StrCat("there is no CUDA driver here: ", why == nullptr ? name : why),
                                    "install the NVIDIA driver (libcuda.so.1), or use the emulator");
  }
  *loaded = true;
  static Driver driver;
  SOLSTICE_RETURN_IF_ERROR(FindFunctions(handle, &driver));
  driver.path = LoadedPath(reinterpret_cast<void*>(driver.cuInit_));
  CUresult result = driver.cuInit_(0);
  opened.store(true);
  if (result != CUDA_SUCCESS) {
    return base::FailedPrecondition(StrCat("the CUDA driver does not start: ", ErrorName(result)),
                                    result == CUDA_ERROR_NO_DEVICE
                                        ? "no GPU is visible: look at nvidia-smi and CUDA_VISIBLE_DEVICES"
                                        : "look at nvidia-smi; device nodes /dev/nvidia* must be readable");
  }
  return &driver;
}

}  // namespace

StatusOr<const Driver*> Driver::Open(const std::string& library) {
  static base::Mutex mutex;
  static StatusOr<Driver*>* made = nullptr;
  base::MutexLock lock(mutex);
  if (made == nullptr) {
    bool loaded = false;
    StatusOr<Driver*> opened = OpenOnce(library, &loaded);
    if (!loaded) return opened.status();
    made = new StatusOr<Driver*>(std::move(opened));
  }
  if (!made->ok()) return made->status();
  return static_cast<const Driver*>(**made);
}

bool Driver::Opened() { return opened.load(); }

std::string ErrorName(CUresult result) {
  for (const NamedError& error : kErrors) {
    if (error.result == result) return error.name;
  }
  return StrCat("CUDA error ", static_cast<int>(result));
}

bool IsDeviceLost(CUresult result) {
  switch (result) {
    case CUDA_ERROR_ECC_UNCORRECTABLE:
    case CUDA_ERROR_NVLINK_UNCORRECTABLE:
    case CUDA_ERROR_DEVICE_UNAVAILABLE:
    case CUDA_ERROR_NO_DEVICE:
    case CUDA_ERROR_SYSTEM_NOT_READY:
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
    case CUDA_ERROR_DEINITIALIZED:
    case CUDA_ERROR_UNKNOWN:
      return true;
    default:
      return false;
  }
}

Status CudaError(const char* what, CUresult result) {
  const std::string message = StrCat("CUDA: ", what, ": ", ErrorName(result));
  if (result == CUDA_ERROR_OUT_OF_MEMORY) return base::ResourceExhausted(message);
  if (IsDeviceLost(result)) return base::Unavailable(message);
  return base::Internal(message);
}

}  // namespace solstice::device::cuda
