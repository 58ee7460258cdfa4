#include "client/lib/doctor.h"

#include <cstdio>

#include "runtime/base/strings.h"

namespace solstice::client {
namespace {

using base::StrCat;
using core::Json;

constexpr int kMostNamed = 8;

std::string Label(const v1::GpuProbe& gpu) { return StrCat("cuda:", gpu.properties().ordinal()); }

std::string Gibibytes(int64_t bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f GiB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

// "pid 12 (3.0 GiB), pid 40"
std::string Users(const std::vector<const v1::GpuProcess*>& processes) {
  std::vector<std::string> names;
  for (const v1::GpuProcess* process : processes) {
    if (names.size() == kMostNamed) {
      names.push_back("...");
      break;
    }
    std::string name = StrCat("pid ", process->pid());
    if (process->memory_bytes() > 0) name += StrCat(" (", Gibibytes(process->memory_bytes()), ")");
    names.push_back(std::move(name));
  }
  return base::Join(names, ", ");
}

void FindUsers(const v1::GpuProbe& gpu, std::vector<Finding>* findings) {
  std::vector<const v1::GpuProcess*> others, foreign;
  for (const v1::GpuProcess& process : gpu.processes()) {
    if (!process.ours()) (process.visible() ? others : foreign).push_back(&process);
  }
  if (!others.empty()) {
    findings->push_back({StrCat(Label(gpu), " has other users, and timings suffer: ", Users(others)),
                         "stop them, or have the server drive another GPU (solsticed --device cuda:N)"});
  }
  if (!foreign.empty()) {
    findings->push_back({StrCat(Label(gpu), " has users that this container cannot see: ", Users(foreign),
                                "; the server's own workers may be among them"),
                         "timings suffer from any other: look at nvidia-smi on the container's host"});
  }
}

void FindInGpu(const v1::GpuProbe& gpu, std::vector<Finding>* findings) {
  const std::string label = Label(gpu);
  if (!gpu.unusable().empty()) {
    findings->push_back({StrCat(label, " is left out: ", gpu.unusable()), ""});
    return;
  }
  const std::string access = PageableAccess(gpu);
  if (!access.empty()) {
    findings->push_back(
        {StrCat(label, ": kernels can read pageable host memory (", access == "ats" ? "ATS" : "HMM",
                "), so that hostile code may reach its runner's own memory; results are not ranked there"),
         access == "ats"
             ? "ATS belongs to the machine: rank on another one"
             : "turn HMM off: `options nvidia_uvm uvm_disable_hmm=1` in a file of /etc/modprobe.d, then load "
               "the module again"});
  }
  if (gpu.mig_mode() == 1) {
    findings->push_back({StrCat(label, " is a MIG instance: it shares clocks and power with the GPU's other instances"),
                         "compare its latencies with those of the same kind of instance only"});
  }
  if (!gpu.throttle_reasons().empty()) {
    std::vector<std::string> reasons(gpu.throttle_reasons().begin(), gpu.throttle_reasons().end());
    findings->push_back({StrCat(label, " is held below its clocks: ", base::Join(reasons, ", ")),
                         "look at power limit, cooling and application clocks (nvidia-smi -q -d PERFORMANCE)"});
  }
  FindUsers(gpu, findings);
}

bool AnyUsable(const v1::HostProbe& host) {
  for (const v1::GpuProbe& gpu : host.gpus()) {
    if (gpu.unusable().empty()) return true;
  }
  return false;
}

bool Hidden(const v1::HostProbe& host) { return host.has_visible_devices() && host.none_visible(); }

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }
Json Positive(int64_t value) { return value > 0 ? Json(value) : Json(nullptr); }
Json Positive(double value) { return value > 0 ? Json(value) : Json(nullptr); }
Json Switch(int mode) { return mode < 0 ? Json(nullptr) : Json(mode != 0); }

Json GpuJson(const v1::ServerInfo& info, const v1::GpuProbe& gpu) {
  const v1::DeviceProperties& properties = gpu.properties();
  Json json;
  json.Set("ordinal", Json(static_cast<int64_t>(properties.ordinal())));
  json.Set("name", TextOrNull(properties.name()));
  json.Set("arch", TextOrNull(properties.arch()));
  json.Set("uuid", TextOrNull(gpu.uuid()));
  json.Set("pci", TextOrNull(gpu.pci()));
  json.Set("driven", Json(Driven(info, gpu)));
  json.Set("unusable", TextOrNull(gpu.unusable()));
  json.Set("sm_count", Positive(static_cast<int64_t>(properties.sm_count())));
  json.Set("memory_bytes", Positive(static_cast<int64_t>(properties.memory_bytes())));
  json.Set("memory_used_bytes", Positive(static_cast<int64_t>(gpu.memory_used_bytes())));
  json.Set("sm_clock_mhz", Positive(static_cast<int64_t>(gpu.sm_clock_mhz())));
  json.Set("max_sm_clock_mhz", Positive(static_cast<int64_t>(gpu.max_sm_clock_mhz())));
  json.Set("memory_clock_mhz", Positive(static_cast<int64_t>(gpu.memory_clock_mhz())));
  json.Set("max_memory_clock_mhz", Positive(static_cast<int64_t>(gpu.max_memory_clock_mhz())));
  json.Set("power_w", Positive(gpu.power_w()));
  json.Set("power_limit_w", Positive(gpu.power_limit_w()));
  json.Set("temperature_c", Positive(static_cast<int64_t>(gpu.temperature_c())));
  json.Set("mig", Switch(gpu.mig_mode()));
  json.Set("ecc", Switch(gpu.ecc_mode()));
  json.Set("persistence", Switch(gpu.persistence_mode()));
  json.Set("pageable_memory_access", TextOrNull(PageableAccess(gpu)));
  Json::Array reasons, processes;
  for (const std::string& reason : gpu.throttle_reasons()) reasons.push_back(Json(reason));
  json.Set("throttle_reasons", Json(std::move(reasons)));
  for (const v1::GpuProcess& process : gpu.processes()) {
    Json entry;
    entry.Set("pid", Json(static_cast<int64_t>(process.pid())));
    entry.Set("memory_bytes", Positive(static_cast<int64_t>(process.memory_bytes())));
    entry.Set("ours", process.visible() ? Json(process.ours()) : Json(nullptr));
    processes.push_back(std::move(entry));
  }
  json.Set("processes", gpu.processes_known() ? Json(std::move(processes)) : Json(nullptr));
  return json;
}

}  // namespace

std::string PageableAccess(const v1::GpuProbe& gpu) {
  if (!gpu.pageable_memory_access()) return "";
  return gpu.host_page_tables() ? "ats" : "hmm";
}

bool Driven(const v1::ServerInfo& info, const v1::GpuProbe& gpu) {
  for (const v1::DeviceProperties& device : info.devices()) {
    if (device.kind() == v1::CUDA && device.ordinal() == gpu.properties().ordinal()) return true;
  }
  return false;
}

bool GpuUnusable(const v1::ServerInfo& info) {
  const v1::HostProbe& host = info.host();
  if (AnyUsable(host) || Hidden(host)) return false;
  return host.gpu_present() || !host.gpus().empty();
}

std::vector<Finding> Findings(const v1::ServerInfo& info) {
  std::vector<Finding> findings;
  const v1::HostProbe& host = info.host();
  if (Hidden(host) && (host.driver_found() || host.gpu_present())) {
    findings.push_back({StrCat("CUDA_VISIBLE_DEVICES=", base::Quote(host.visible_devices()), " hides every GPU"),
                        "unset it for the server, and restart that"});
  } else if (!host.driver_error().empty() && (host.driver_found() || host.gpu_present())) {
    findings.push_back({StrCat("no GPU can be used: ", host.driver_error()), host.driver_mend()});
  }
  for (const v1::GpuProbe& gpu : host.gpus()) FindInGpu(gpu, &findings);
  // What follows matters only beside a GPU.
  if (!AnyUsable(host)) return findings;
  if (!host.nvml_error().empty()) {
    findings.push_back({StrCat("clocks, throttling and other users of the GPUs cannot be told: ", host.nvml_error()),
                        "install the management library of the same driver"});
  }
  if (!host.cupti_error().empty()) {
    findings.push_back({StrCat(host.cupti_error(),
                               "; latencies are taken by events, which read microseconds more, under "
                               "the protocol solstice-v1-events"),
                        "install CUPTI beside the toolkit's libraries (libcupti.so.13)"});
  }
  return findings;
}

Json HostJson(const v1::ServerInfo& info) {
  const v1::HostProbe& host = info.host();
  Json driver;
  driver.Set("version", TextOrNull(host.driver_version()));
  driver.Set("cuda_version", TextOrNull(host.cuda_version()));
  driver.Set("found", Json(host.driver_found()));
  driver.Set("error", TextOrNull(host.driver_error()));
  driver.Set("mend", TextOrNull(host.driver_mend()));
  Json nvml;
  nvml.Set("error", TextOrNull(host.nvml_error()));
  Json cupti;
  cupti.Set("library", TextOrNull(host.cupti_library()));
  cupti.Set("version", TextOrNull(host.cupti_version()));
  cupti.Set("error", TextOrNull(host.cupti_error()));
  Json::Array gpus;
  for (const v1::GpuProbe& gpu : host.gpus()) gpus.push_back(GpuJson(info, gpu));
  Json json;
  json.Set("driver", std::move(driver));
  json.Set("nvml", std::move(nvml));
  json.Set("cupti", std::move(cupti));
  json.Set("gpu_present", Json(host.gpu_present()));
  json.Set("visible_devices", host.has_visible_devices() ? Json(host.visible_devices()) : Json(nullptr));
  json.Set("gpus", Json(std::move(gpus)));
  return json;
}

Json FindingsJson(const std::vector<Finding>& findings) {
  Json::Array array;
  for (const Finding& finding : findings) {
    Json entry;
    entry.Set("reason", Json(finding.reason));
    entry.Set("mend", TextOrNull(finding.mend));
    array.push_back(std::move(entry));
  }
  return Json(std::move(array));
}

}  // namespace solstice::client
