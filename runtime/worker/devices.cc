#include "runtime/worker/devices.h"

#include <dirent.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/device/cuda/cuda_device.h"
#include "runtime/device/emulator/emulator.h"

namespace solstice::worker {
namespace {

// Shared libraries that this process has mapped.
std::vector<std::string> MappedLibraries() {
  std::vector<std::string> libraries;
  std::ifstream maps("/proc/self/maps");
  std::set<std::string> seen;
  for (std::string line; std::getline(maps, line);) {
    const size_t slash = line.find('/');
    if (slash == std::string::npos) continue;
    std::string path = line.substr(slash);
    if (path.find(".so") == std::string::npos || !seen.insert(path).second) continue;
    libraries.push_back(std::move(path));
  }
  return libraries;
}

// Device nodes that this process holds open.
std::vector<std::string> OpenNodes() {
  std::set<std::string> nodes;
  DIR* folder = ::opendir("/proc/self/fd");
  if (folder == nullptr) return {};
  while (const dirent* entry = ::readdir(folder)) {
    char* target = ::realpath((std::string("/proc/self/fd/") + entry->d_name).c_str(), nullptr);
    if (target == nullptr) continue;
    if (std::string_view(target).substr(0, 11) == "/dev/nvidia") nodes.insert(target);
    ::free(target);
  }
  ::closedir(folder);
  return {nodes.begin(), nodes.end()};
}

}  // namespace

StatusOr<std::unique_ptr<device::Device>> OpenDevice(int argc, char** argv, DeviceUse use) {
  SOLSTICE_ASSIGN_OR_RETURN(Flags flags, Flags::Parse(argc, argv));
  const std::string name = flags.Get("device");
  if (name == DeviceFlag(v1::EMULATOR)) return device::MakeEmulator();
  if (name != DeviceFlag(v1::CUDA)) return base::InvalidArgument(base::StrCat("--device=", base::Quote(name)));
  // The one GPU that this process may use.
  if (std::string gpu = flags.Get("gpu"); !gpu.empty()) ::setenv("CUDA_VISIBLE_DEVICES", gpu.c_str(), 1);
  device::CudaOptions options;
  options.driver_library = flags.Get("driver");
  options.cupti_library = flags.Get("cupti");
  options.capture_output = use == DeviceUse::kRunner;
  return device::MakeCuda(options);
}

std::string DeviceFlag(v1::DeviceKind kind) { return base::Lower(v1::DeviceKind_Name(kind)); }

void DescribeDevice(device::Device& device, v1::internal::Hello* hello) {
  std::string note;
  for (v1::Timer timer : device.Timers(&note)) hello->add_timers(timer);
  hello->set_timer_note(note);
  if (device.properties().kind() == v1::EMULATOR) return;
  for (std::string& library : MappedLibraries()) hello->add_device_libraries(std::move(library));
  for (std::string& node : OpenNodes()) hello->add_device_nodes(std::move(node));
}

}  // namespace solstice::worker
