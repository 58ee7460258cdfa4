#include "server/pipeline/devices.h"

#include "runtime/base/strings.h"

namespace solstice::pipeline {
namespace {

using base::StrCat;

const v1::GpuProbe* FindGpu(const v1::HostProbe& host, int ordinal) {
  for (const v1::GpuProbe& gpu : host.gpus()) {
    if (gpu.properties().ordinal() == ordinal) return &gpu;
  }
  return nullptr;
}

// "this host has cuda:0 (NVIDIA H200), emulator"
std::string Available(const v1::HostProbe& host) {
  std::vector<std::string> names;
  for (const v1::GpuProbe& gpu : host.gpus()) {
    if (gpu.unusable().empty()) {
      names.push_back(StrCat(DeviceLabel(v1::CUDA, gpu.properties().ordinal()), " (", gpu.properties().name(), ")"));
    }
  }
  names.push_back("emulator");
  return StrCat("this host has ", base::Join(names, ", "));
}

// Why no GPU can be driven here; "" if one can.
std::string WhyNone(const v1::HostProbe& host) {
  if (!host.driver_error().empty()) return host.driver_error();
  std::string why = "no GPU is visible";
  if (host.has_visible_devices()) {
    why += StrCat(" (CUDA_VISIBLE_DEVICES=", base::Quote(host.visible_devices()), ")");
  }
  for (const v1::GpuProbe& gpu : host.gpus()) {
    if (gpu.unusable().empty()) return "";
    why = gpu.unusable();
  }
  return why;
}

Status Missing(std::string_view wanted, std::string_view why, const v1::HostProbe& host) {
  std::string mend = Available(host);
  if (!host.driver_mend().empty()) mend = StrCat(host.driver_mend(), "; ", mend);
  return base::NotFound(StrCat("there is no ", wanted, " to drive: ", why), mend);
}

Status Add(const DeviceSpec& spec, DeviceChoice* choice) {
  for (const DeviceSpec& known : choice->devices) {
    // Two judges on one GPU would disturb each other's measurements.
    if (spec.kind == v1::CUDA && known.kind == v1::CUDA && known.ordinal == spec.ordinal) {
      return base::InvalidArgument(StrCat("device ", DeviceLabel(spec.kind, spec.ordinal), " is asked for twice"),
                                   "name it once; `cuda` is every GPU");
    }
  }
  choice->devices.push_back(spec);
  return absl::OkStatus();
}

Status AddGpu(const v1::GpuProbe& gpu, DeviceChoice* choice) {
  DeviceSpec spec;
  spec.kind = v1::CUDA;
  spec.ordinal = gpu.properties().ordinal();
  spec.uuid = gpu.uuid();
  spec.pageable_memory_access = gpu.pageable_memory_access();
  if (spec.pageable_memory_access) {
    choice->notes.push_back(
        StrCat(DeviceLabel(spec.kind, spec.ordinal),
               ": kernels can read pageable host memory there, so that its results are not ranked"));
  }
  return Add(spec, choice);
}

// True if there is one.
StatusOr<bool> AddEveryGpu(const v1::HostProbe& host, DeviceChoice* choice) {
  bool any = false;
  for (const v1::GpuProbe& gpu : host.gpus()) {
    const std::string label = DeviceLabel(v1::CUDA, gpu.properties().ordinal());
    if (!gpu.unusable().empty()) {
      choice->notes.push_back(StrCat(label, " is left out: ", gpu.unusable()));
      continue;
    }
    SOLSTICE_RETURN_IF_ERROR(AddGpu(gpu, choice));
    any = true;
  }
  return any;
}

Status AddRequested(const DeviceSpec& wanted, const v1::HostProbe& host, DeviceChoice* choice) {
  if (wanted.kind != v1::CUDA) return Add(DeviceSpec{}, choice);
  if (wanted.ordinal == kEveryOrdinal) {
    SOLSTICE_ASSIGN_OR_RETURN(bool any, AddEveryGpu(host, choice));
    return any ? absl::OkStatus() : Missing("GPU", WhyNone(host), host);
  }
  const std::string label = DeviceLabel(v1::CUDA, wanted.ordinal);
  const v1::GpuProbe* gpu = FindGpu(host, wanted.ordinal);
  if (gpu == nullptr) {
    const std::string why = WhyNone(host);
    return Missing(
        label,
        why.empty() ? StrCat(host.gpus_size(), host.gpus_size() == 1 ? " GPU is" : " GPUs are", " visible") : why,
        host);
  }
  if (!gpu->unusable().empty()) return Missing(label, gpu->unusable(), host);
  return AddGpu(*gpu, choice);
}

}  // namespace

StatusOr<DeviceChoice> ChooseDevices(const std::vector<DeviceSpec>& requested, const v1::HostProbe& host) {
  DeviceChoice choice;
  for (const DeviceSpec& wanted : requested) SOLSTICE_RETURN_IF_ERROR(AddRequested(wanted, host, &choice));
  if (!requested.empty()) return choice;
  SOLSTICE_ASSIGN_OR_RETURN(bool any, AddEveryGpu(host, &choice));
  if (any) return choice;
  // A machine without a GPU needs no explanation.
  if (host.driver_found() || host.gpu_present()) {
    choice.notes.push_back(StrCat("the emulator stands in for a GPU: ", WhyNone(host)));
  }
  choice.devices.push_back(DeviceSpec{});
  return choice;
}

v1::HostProbe FailedProbe(const Status& status) {
  v1::HostProbe host;
  host.set_driver_error(base::MessageOf(status));
  host.set_driver_mend(base::MendOf(status));
  // It died in the driver, or something is wrong that should be seen.
  host.set_driver_found(true);
  host.set_cupti_error("not looked at: the host's probe failed");
  host.set_nvml_error("not looked at: the host's probe failed");
  return host;
}

std::string DeviceLabel(v1::DeviceKind kind, int ordinal) {
  return kind == v1::EMULATOR ? "emulator" : StrCat("cuda:", ordinal);
}

}  // namespace solstice::pipeline
