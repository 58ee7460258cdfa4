// The CUDA driver's entry points, opened at run time: every program starts without a GPU and says what is missing.
// Include in this folder only. Thread-safe after Open().
#pragma once

#include <cuda.h>

#include <string>

#include "runtime/base/status.h"

namespace solstice::device::cuda {

// By base name; cuGetProcAddress gives the version of CUDA 12.0 (or of the newer toolkit that first had it).
#define SOLSTICE_CUDA_FUNCTIONS(X)  \
  X(cuInit)                         \
  X(cuDeviceGetCount)               \
  X(cuDeviceGet)                    \
  X(cuDeviceGetName)                \
  X(cuDeviceGetAttribute)           \
  X(cuDeviceTotalMem)               \
  X(cuDeviceGetUuid)                \
  X(cuDeviceGetPCIBusId)            \
  X(cuDevicePrimaryCtxRetain)       \
  X(cuDevicePrimaryCtxRelease)      \
  X(cuCtxSetCurrent)                \
  X(cuCtxSetLimit)                  \
  X(cuMemGetInfo)                   \
  X(cuMemGetAllocationGranularity)  \
  X(cuMemCreate)                    \
  X(cuMemRelease)                   \
  X(cuMemAddressReserve)            \
  X(cuMemAddressFree)               \
  X(cuMemMap)                       \
  X(cuMemUnmap)                     \
  X(cuMemSetAccess)                 \
  X(cuMemExportToShareableHandle)   \
  X(cuMemImportFromShareableHandle) \
  X(cuMemcpyHtoD)                   \
  X(cuMemcpyDtoH)                   \
  X(cuMemsetD8Async)                \
  X(cuMemHostAlloc)                 \
  X(cuMemFreeHost)                  \
  X(cuMemHostGetDevicePointer)      \
  X(cuStreamCreate)                 \
  X(cuStreamDestroy)                \
  X(cuStreamQuery)                  \
  X(cuStreamSynchronize)            \
  X(cuStreamWaitValue32)            \
  X(cuModuleLoadData)               \
  X(cuModuleUnload)                 \
  X(cuModuleGetFunction)            \
  X(cuFuncSetAttribute)             \
  X(cuFuncGetParamInfo)             \
  X(cuLaunchKernelEx)               \
  X(cuEventCreate)                  \
  X(cuEventDestroy)                 \
  X(cuEventRecord)                  \
  X(cuEventElapsedTime)

struct Driver {
  int cuda_version = 0;  // 13000: the newest CUDA that it supports
  std::string path;      // of the library as it was loaded
#define SOLSTICE_CUDA_FIELD(name) decltype(&::name) name##_ = nullptr;
  SOLSTICE_CUDA_FUNCTIONS(SOLSTICE_CUDA_FIELD)
#undef SOLSTICE_CUDA_FIELD

  // The process's driver, opened and initialised by the first call that finds it; how that ends is kept. `library`: a
  // path, or empty for the loader's own search. FAILED_PRECONDITION: there is none, it is too old, or it finds no GPU
  // to drive.
  static StatusOr<const Driver*> Open(const std::string& library = "");
  // Never fork a process in which this is true: the driver cannot be used in the child.
  static bool Opened();
};

// "CUDA_ERROR_ILLEGAL_ADDRESS", from a table of our own: the driver is not asked after it failed.
std::string ErrorName(CUresult result);
// INTERNAL, RESOURCE_EXHAUSTED for CUDA_ERROR_OUT_OF_MEMORY, UNAVAILABLE where the device is lost.
Status CudaError(const char* what, CUresult result);
// The device can't be used any more, whatever the process does.
bool IsDeviceLost(CUresult result);

#define SOLSTICE_CUDA_CALL(driver, name, ...)                                                                \
  do {                                                                                                       \
    CUresult solstice_result = (driver)->name##_(__VA_ARGS__);                                               \
    if (solstice_result != CUDA_SUCCESS) return ::solstice::device::cuda::CudaError(#name, solstice_result); \
  } while (0)

}  // namespace solstice::device::cuda
