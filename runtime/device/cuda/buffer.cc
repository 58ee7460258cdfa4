#include "runtime/device/cuda/buffer.h"

#include "runtime/base/strings.h"

namespace solstice::device::cuda {
namespace {

CUmemAllocationProp Properties(CUdevice device) {
  CUmemAllocationProp properties = {};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = device;
  properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
  return properties;
}

}  // namespace

StatusOr<int64_t> Granularity(const Driver* driver, CUdevice device) {
  CUmemAllocationProp properties = Properties(device);
  size_t bytes = 0;
  SOLSTICE_CUDA_CALL(driver, cuMemGetAllocationGranularity, &bytes, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return static_cast<int64_t>(bytes);
}

StatusOr<std::unique_ptr<Buffer>> CudaBuffer::Allocate(const Driver* driver, CUdevice device, int64_t bytes,
                                                       int64_t granularity) {
  if (bytes <= 0 || bytes % granularity != 0) {
    return base::InvalidArgument(base::StrCat("a mapping of ", bytes, " bytes is no multiple of ", granularity));
  }
  std::unique_ptr<CudaBuffer> buffer(new CudaBuffer(driver, bytes));
  CUmemAllocationProp properties = Properties(device);
  SOLSTICE_CUDA_CALL(driver, cuMemCreate, &buffer->handle_, static_cast<size_t>(bytes), &properties, 0);
  buffer->owned_ = true;
  SOLSTICE_RETURN_IF_ERROR(buffer->Map(device, granularity, Access::kReadWrite));
  return std::unique_ptr<Buffer>(std::move(buffer));
}

StatusOr<std::unique_ptr<Buffer>> CudaBuffer::Import(const Driver* driver, CUdevice device, base::UniqueFd descriptor,
                                                     int64_t bytes, int64_t granularity, Access access) {
  if (bytes <= 0 || bytes % granularity != 0) {
    return base::InvalidArgument(base::StrCat("a mapping of ", bytes, " bytes is no multiple of ", granularity));
  }
  std::unique_ptr<CudaBuffer> buffer(new CudaBuffer(driver, bytes));
  SOLSTICE_CUDA_CALL(driver, cuMemImportFromShareableHandle, &buffer->handle_,
                     reinterpret_cast<void*>(static_cast<intptr_t>(descriptor.get())),
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
  buffer->owned_ = true;
  SOLSTICE_RETURN_IF_ERROR(buffer->Map(device, granularity, access));
  return std::unique_ptr<Buffer>(std::move(buffer));
}

Status CudaBuffer::Map(CUdevice device, int64_t granularity, Access access) {
  const int64_t reserved = bytes_ + granularity;
  SOLSTICE_CUDA_CALL(driver_, cuMemAddressReserve, &address_, static_cast<size_t>(reserved), 0, 0, 0);
  reserved_bytes_ = reserved;
  SOLSTICE_CUDA_CALL(driver_, cuMemMap, address_, static_cast<size_t>(bytes_), 0, handle_, 0);
  mapped_ = true;
  CUmemAccessDesc description = {};
  description.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  description.location.id = device;
  description.flags = access == Access::kReadOnly ? CU_MEM_ACCESS_FLAGS_PROT_READ : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  SOLSTICE_CUDA_CALL(driver_, cuMemSetAccess, address_, static_cast<size_t>(bytes_), &description, 1);
  return absl::OkStatus();
}

CudaBuffer::~CudaBuffer() {
  // On a spoilt context these fail, and the process is about to end.
  if (mapped_) driver_->cuMemUnmap_(address_, static_cast<size_t>(bytes_));
  if (reserved_bytes_ > 0) driver_->cuMemAddressFree_(address_, static_cast<size_t>(reserved_bytes_));
  if (owned_) driver_->cuMemRelease_(handle_);
}

StatusOr<base::UniqueFd> CudaBuffer::Export(Access) const {
  int descriptor = -1;
  SOLSTICE_CUDA_CALL(driver_, cuMemExportToShareableHandle, &descriptor, handle_,
                     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
  return base::UniqueFd(descriptor);
}

}  // namespace solstice::device::cuda
