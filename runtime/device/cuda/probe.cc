#include "runtime/device/cuda/probe.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "runtime/base/strings.h"
#include "runtime/device/cuda/driver.h"
#include "runtime/device/cuda/nvml.h"
#include "runtime/device/cuda/properties.h"

namespace solstice::device::cuda {
namespace {

using base::StrCat;

constexpr int kMaxGenerations = 64;

// The parent of `pid`; -1 where /proc does not tell.
pid_t ParentOf(pid_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/stat"));
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  // "pid (name) state ppid ...": a name may hold anything, brackets too.
  size_t end = text.rfind(") ");
  if (end == std::string::npos || end + 4 >= text.size()) return -1;
  pid_t parent = -1;
  auto result = std::from_chars(text.data() + end + 4, text.data() + text.size(), parent);
  return result.ec == std::errc() ? parent : -1;
}

bool HasGpuNode() {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/dev", error)) {
    const std::string name = entry.path().filename().string();
    if (name == "dxg") return true;  // WSL's
    if (name.starts_with("nvidia") && name.size() > 6 && name.find_first_not_of("0123456789", 6) == std::string::npos) {
      return true;
    }
  }
  return false;
}

void ProbeCupti(const std::string& library, v1::HostProbe* host) {
  void* handle = nullptr;
  std::string why;
  std::vector<std::string> names = {"libcupti.so.13", "libcupti.so.12"};
  if (!library.empty()) names = {library};
  for (const std::string& name : names) {
    handle = ::dlopen(name.c_str(), RTLD_LAZY | RTLD_LOCAL);
    if (handle != nullptr) break;
    const char* text = ::dlerror();
    if (why.empty()) why = text == nullptr ? name : text;
  }
  if (handle == nullptr) {
    host->set_cupti_library(library);
    host->set_cupti_error(StrCat("CUPTI cannot be opened: ", why));
    return;
  }
  using GetVersion = int (*)(unsigned int*);
  void* symbol = ::dlsym(handle, "cuptiGetVersion");
  Dl_info info;
  const bool placed = symbol != nullptr && ::dladdr(symbol, &info) != 0 && info.dli_fname != nullptr;
  host->set_cupti_library(placed ? info.dli_fname : library);
  unsigned int version = 0;
  if (symbol == nullptr || reinterpret_cast<GetVersion>(symbol)(&version) != 0) {
    host->set_cupti_error(StrCat(host->cupti_library(), " does not tell its version"));
    return;
  }
  host->set_cupti_version(CuptiVersionText(version));
}

void MarkProcesses(pid_t owner, v1::GpuProbe* gpu) {
  for (v1::GpuProcess& process : *gpu->mutable_processes()) {
    const pid_t pid = static_cast<pid_t>(process.pid());
    process.set_visible(ParentOf(pid) >= 0);
    process.set_ours(owner > 0 && DescendsFrom(pid, owner));
  }
}

v1::GpuProbe ProbeGpu(const Driver& driver, int ordinal, const Nvml* nvml, pid_t owner) {
  v1::GpuProbe gpu;
  gpu.set_mig_mode(-1);
  gpu.set_ecc_mode(-1);
  gpu.set_persistence_mode(-1);
  gpu.mutable_properties()->set_kind(v1::CUDA);
  gpu.mutable_properties()->set_ordinal(ordinal);
  auto properties = ReadProperties(driver, ordinal);
  Status usable = properties.status();
  if (properties.ok()) {
    *gpu.mutable_properties() = *std::move(properties);
    usable = CheckDrivable(gpu.properties().name(), gpu.properties().arch());
  }
  if (!usable.ok()) gpu.set_unusable(base::MessageOf(usable));
  if (auto uuid = QueryUuid(driver, ordinal); uuid.ok()) gpu.set_uuid(*uuid);
  if (auto pci = QueryPci(driver, ordinal); pci.ok()) gpu.set_pci(*pci);
  if (gpu.uuid().starts_with("MIG-")) gpu.set_mig_mode(1);
  CUdevice device = 0;
  int pageable = 0, host_tables = 0;
  if (driver.cuDeviceGet_(&device, ordinal) == CUDA_SUCCESS) {
    auto ask = [&](CUdevice_attribute attribute, int* value) {
      if (driver.cuDeviceGetAttribute_(value, attribute, device) != CUDA_SUCCESS) *value = 0;
    };
    ask(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, &pageable);
    ask(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, &host_tables);
  }
  gpu.set_pageable_memory_access(pageable != 0);
  gpu.set_host_page_tables(host_tables != 0);
  // A GPU that NVML does not know just has no figures.
  if (nvml != nullptr) nvml->Describe(&gpu).IgnoreError();
  MarkProcesses(owner, &gpu);
  return gpu;
}

}  // namespace

bool DescendsFrom(pid_t pid, pid_t ancestor) {
  for (int i = 0; i < kMaxGenerations && pid > 0; ++i) {
    if (pid == ancestor) return ParentOf(pid) >= 0;
    pid = ParentOf(pid);
  }
  return false;
}

std::string CuptiVersionText(unsigned int version) {
  // Older ones just counted.
  if (version < 10000) return StrCat("API ", version);
  return StrCat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

v1::HostProbe ProbeHost(const ProbeOptions& options) {
  v1::HostProbe host;
  host.set_gpu_present(HasGpuNode());
  if (const char* visible = ::getenv("CUDA_VISIBLE_DEVICES")) {
    host.set_has_visible_devices(true);
    host.set_visible_devices(visible);
  }
  ProbeCupti(options.cupti_library, &host);
  auto nvml = Nvml::Open();
  if (nvml.ok()) {
    host.set_driver_version((*nvml)->DriverVersion());
  } else {
    host.set_nvml_error(base::MessageOf(nvml.status()));
  }
  auto driver = Driver::Open();
  host.set_driver_found(driver.ok() || ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr);
  Status failed = driver.status();
  int count = 0;
  if (driver.ok()) {
    const int version = (*driver)->cuda_version;
    host.set_cuda_version(StrCat(version / 1000, ".", version % 1000 / 10));
    CUresult result = (*driver)->cuDeviceGetCount_(&count);
    if (result != CUDA_SUCCESS) failed = CudaError("cuDeviceGetCount", result);
  }
  if (!failed.ok()) {
    // What Driver::Open says with the error's name.
    host.set_none_visible(host.driver_found() && base::MessageOf(failed).ends_with(ErrorName(CUDA_ERROR_NO_DEVICE)));
    host.set_driver_error(base::MessageOf(failed));
    host.set_driver_mend(base::MendOf(failed));
    return host;
  }
  host.set_none_visible(count == 0);
  for (int i = 0; i < count; ++i) {
    *host.add_gpus() = ProbeGpu(**driver, i, nvml.ok() ? nvml->get() : nullptr, options.owner);
  }
  return host;
}

}  // namespace solstice::device::cuda
