// What `solstice doctor` prints.
#include <cstdio>

#include "client/cli/render.h"
#include "client/lib/doctor.h"
#include "client/lib/evaluation_json.h"
#include "runtime/base/strings.h"

namespace solstice::cli {
namespace {

using base::StrCat;
using Rows = std::vector<std::vector<std::string>>;

std::string Format(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Gibibytes(int64_t bytes) { return Format("%.1f GiB", static_cast<double>(bytes) / (1 << 30)); }

// "1980 / 1980 MHz"; "-" where neither is known.
std::string OutOf(double value, double most, const char* format, const char* unit) {
  if (value <= 0 && most <= 0) return "-";
  return StrCat(value > 0 ? Format(format, value) : "?", most > 0 ? StrCat(" / ", Format(format, most)) : "", " ",
                unit);
}

const char* Switch(int mode) { return mode < 0 ? "-" : mode == 0 ? "off" : "on"; }

std::string Driver(const v1::HostProbe& host) {
  if (host.cuda_version().empty() && !host.driver_error().empty()) return host.driver_error();
  return StrCat(host.driver_version().empty() ? "version unknown" : host.driver_version(), ", CUDA ",
                host.cuda_version());
}

std::string Cupti(const v1::HostProbe& host) {
  if (!host.cupti_error().empty()) return host.cupti_error();
  return host.cupti_library().empty() ? "-" : StrCat(host.cupti_version(), " (", host.cupti_library(), ")");
}

std::string State(const v1::ServerInfo& info, const v1::GpuProbe& gpu) {
  if (!gpu.unusable().empty()) return "unusable";
  return client::Driven(info, gpu) ? "driven" : "not driven";
}

std::string RenderGpus(const v1::ServerInfo& info) {
  Rows rows = {{"GPU", "NAME", "ARCH", "SMS", "MEMORY", "SM CLOCK", "POWER", "TEMP", "MIG", "ECC", "STATE"}};
  Rows ids = {{"GPU", "UUID", "PCI"}};
  for (const v1::GpuProbe& gpu : info.host().gpus()) {
    const v1::DeviceProperties& properties = gpu.properties();
    const std::string label = StrCat("cuda:", properties.ordinal());
    const std::string memory =
        StrCat(gpu.memory_used_bytes() > 0 ? StrCat(Gibibytes(gpu.memory_used_bytes()), " of ") : "",
               Gibibytes(properties.memory_bytes()));
    rows.push_back({label, properties.name(), properties.arch(), StrCat(properties.sm_count()), memory,
                    OutOf(gpu.sm_clock_mhz(), gpu.max_sm_clock_mhz(), "%.0f", "MHz"),
                    OutOf(gpu.power_w(), gpu.power_limit_w(), "%.0f", "W"),
                    gpu.temperature_c() > 0 ? StrCat(gpu.temperature_c(), " C") : "-", Switch(gpu.mig_mode()),
                    Switch(gpu.ecc_mode()), State(info, gpu)});
    ids.push_back({label, gpu.uuid(), gpu.pci()});
  }
  return rows.size() == 1 ? "" : StrCat("\n", Table(rows), "\n", Table(ids));
}

}  // namespace

std::string RenderInfo(const v1::ServerInfo& info, const std::string& address) {
  const v1::HostProbe& host = info.host();
  Rows rows = {{"server", address},
               {"version", StrCat(info.version(), " (build ", info.build_id(), ")")},
               {"protocol", info.protocol()},
               {"toolkit", info.toolkit_root()},
               {"NVRTC", info.toolchain().nvrtc()},
               {"nvJitLink", info.toolchain().nvjitlink()},
               {"header pack", info.header_pack()},
               {"driver", Driver(host)},
               {"CUPTI", Cupti(host)},
               {"definitions", StrCat(info.definitions())},
               {"queue", StrCat(info.queued(), " waiting, ", info.running(), " at work")},
               {"data", info.data_dir()}};
  if (host.has_visible_devices()) rows.push_back({"CUDA_VISIBLE_DEVICES", base::Quote(host.visible_devices())});
  for (const auto& device : info.devices()) {
    const bool cuda = device.kind() == v1::CUDA;
    rows.push_back({"device", StrCat(client::DeviceName(device.kind()), cuda ? StrCat(":", device.ordinal()) : "", " ",
                                     device.name(), " (", device.arch(), ")")});
  }
  for (const auto& item : info.environment()) rows.push_back({"enforced", item});
  std::string out = StrCat(Table(rows), RenderGpus(info));
  // As one-cell tables: their cells are cleaned.
  for (const client::Finding& finding : client::Findings(info)) {
    out += StrCat("\n", Table({{StrCat("! ", finding.reason)}}));
    if (!finding.mend.empty()) out += Table({{StrCat("  mend: ", finding.mend)}});
  }
  return out;
}

}  // namespace solstice::cli
