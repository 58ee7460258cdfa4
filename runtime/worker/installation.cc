#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <map>

#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/worker/devices.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using sandbox::JailSpec;

constexpr char kWorkerInside[] = "/bin/solstice-worker";
constexpr int64_t kGiB = int64_t{1} << 30;

// Under the sanitizers a process maps terabytes: limits on address space would stop it at once.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

bool Exists(const std::string& path, mode_t kind) {
  struct stat info;
  return ::stat(path.c_str(), &info) == 0 && (info.st_mode & S_IFMT) == kind;
}

std::string BaseName(const std::string& path) { return path.substr(path.rfind('/') + 1); }
std::string Parent(const std::string& path) {
  size_t slash = path.rfind('/');
  return slash == 0 || slash == std::string::npos ? "" : path.substr(0, slash);
}

StatusOr<std::string> FindHeaderPack(const std::string& program_folder) {
  if (const char* given = std::getenv("SOLSTICE_HEADER_PACK"); given != nullptr && *given != '\0') {
    if (Exists(given, S_IFDIR)) return std::string(given);
    return base::NotFound(StrCat("SOLSTICE_HEADER_PACK=", base::Quote(given), " is not a folder"));
  }
  std::string shared = StrCat(Parent(program_folder), "/share/solstice/headers");
  if (Exists(shared, S_IFDIR)) return shared;
  for (std::string folder = program_folder; !folder.empty(); folder = Parent(folder)) {
    std::string pack = StrCat(folder, "/runtime/compile/headers");
    if (Exists(pack, S_IFDIR)) return pack;
  }
  return base::NotFound(
      StrCat("the header pack is neither at ", shared, " nor in a source tree above ", program_folder),
      "set SOLSTICE_HEADER_PACK to its folder (runtime/compile/headers of the source)");
}

// As wheels, packages and installers place it.
std::string FindCupti(const std::string& toolkit_root) {
  for (const char* folder : {"lib64", "lib", "targets/x86_64-linux/lib", "extras/CUPTI/lib64"}) {
    for (const char* name : {"libcupti.so.13", "libcupti.so.12", "libcupti.so"}) {
      char resolved[PATH_MAX];
      if (::realpath(StrCat(toolkit_root, "/", folder, "/", name).c_str(), resolved) == nullptr) continue;
      // Jails take only plain absolute paths.
      if (Exists(resolved, S_IFREG)) return resolved;
    }
  }
  return "";
}

// Adds files that the loader will look for at these very places.
Status AddLibraries(const std::string& program, JailSpec* spec) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<std::string> libraries, sandbox::SharedLibraries(program));
  for (const std::string& library : libraries) {
    bool known = false;
    for (const sandbox::Mount& mount : spec->mounts) known = known || mount.destination == library;
    if (!known) spec->mounts.push_back({library, library});
  }
  return absl::OkStatus();
}

StatusOr<JailSpec> WorkerJail(const Installation& installation, const std::string& name, const std::string& role) {
  JailSpec spec;
  spec.name = name;
  spec.argv = {kWorkerInside, role};
  spec.mounts = {{installation.worker_program, kWorkerInside}};
  SOLSTICE_RETURN_IF_ERROR(AddLibraries(installation.worker_program, &spec));
  return spec;
}

// Hashing tens of megabytes of headers once a process is enough: a server is restarted for another toolkit.
StatusOr<std::string> HeadersDigest(const std::vector<std::string>& folders) {
  static base::Mutex mutex;
  static std::map<std::vector<std::string>, std::string>* known = new std::map<std::vector<std::string>, std::string>;
  base::MutexLock lock(mutex);
  auto found = known->find(folders);
  if (found != known->end()) return found->second;
  SOLSTICE_ASSIGN_OR_RETURN(std::string digest, compile::HeaderTreeDigest(folders));
  (*known)[folders] = digest;
  return digest;
}

void AddDeviceFlags(const Installation& installation, const DeviceId& device, JailSpec* spec) {
  spec->argv.push_back(StrCat("--device=", DeviceFlag(device.kind)));
  if (device.kind != v1::CUDA) return;
  spec->argv.push_back(StrCat("--gpu=", device.uuid));
  if (!installation.cupti_library.empty()) spec->argv.push_back(StrCat("--cupti=", installation.cupti_library));
}

// The driver and the profiler's library as the judge loaded them, at the same places; the loader's cache, by which the
// driver finds its parts; the GPU's own nodes.
void AddDriver(const v1::internal::Hello& judge, JailSpec* spec) {
  for (const std::string& library : judge.device_libraries()) {
    bool known = false;
    for (const sandbox::Mount& mount : spec->mounts) known = known || mount.destination == library;
    if (!known && Exists(library, S_IFREG)) spec->mounts.push_back({library, library});
    if (library.rfind('/') == std::string::npos || BaseName(library).rfind("libcuda.so", 0) != 0) continue;
    spec->argv.push_back(StrCat("--driver=", library));
  }
  if (Exists("/etc/ld.so.cache", S_IFREG)) spec->mounts.push_back({"/etc/ld.so.cache", "/etc/ld.so.cache"});
  for (const std::string& node : judge.device_nodes()) spec->devices.push_back(node);
  // cuInit reads it.
  spec->proc = true;
}

}  // namespace

StatusOr<Installation> FindInstallation() {
  Installation installation;
  SOLSTICE_ASSIGN_OR_RETURN(std::string folder, base::ProgramDirectory());
  installation.worker_program = StrCat(folder, "/solstice-worker");
  if (!Exists(installation.worker_program, S_IFREG)) {
    return base::NotFound(StrCat("there is no ", installation.worker_program),
                          "install solstice-worker beside the program");
  }
  SOLSTICE_ASSIGN_OR_RETURN(installation.header_pack, FindHeaderPack(folder));
  SOLSTICE_ASSIGN_OR_RETURN(compile::Toolkit toolkit, compile::FindToolkit());
  installation.toolkit_root = toolkit.root;
  installation.cupti_library = FindCupti(toolkit.root);
  return installation;
}

StatusOr<JailSpec> CompilerJail(const Installation& installation, int slot) {
  SOLSTICE_ASSIGN_OR_RETURN(compile::Toolkit toolkit, compile::FindToolkit());
  SOLSTICE_ASSIGN_OR_RETURN(JailSpec spec, WorkerJail(installation, "compiler", "compile"));
  for (const std::string& library : {toolkit.nvrtc, toolkit.nvrtc_builtins, toolkit.nvjitlink}) {
    spec.mounts.push_back({library, StrCat("/toolkit/lib/", BaseName(library))});
    SOLSTICE_RETURN_IF_ERROR(AddLibraries(library, &spec));
  }
  std::vector<std::string> folders = {toolkit.include, installation.header_pack};
  SOLSTICE_ASSIGN_OR_RETURN(std::string digest, HeadersDigest(folders));
  spec.mounts.push_back({toolkit.include, "/toolkit/include"});
  spec.mounts.push_back({installation.header_pack, "/pack"});
  spec.argv.push_back(StrCat("--preload=/toolkit/lib/", BaseName(toolkit.nvrtc_builtins)));
  spec.argv.push_back(StrCat("--nvrtc=/toolkit/lib/", BaseName(toolkit.nvrtc)));
  spec.argv.push_back(StrCat("--nvjitlink=/toolkit/lib/", BaseName(toolkit.nvjitlink)));
  // The pack stands first: its light headers hide the toolkit's heavy ones of the same name.
  spec.argv.push_back("--include=/pack");
  spec.argv.push_back("--include=/toolkit/include");
  if (Exists(StrCat(toolkit.include, "/cccl"), S_IFDIR)) spec.argv.push_back("--include=/toolkit/include/cccl");
  spec.argv.push_back(StrCat("--headers-digest=", digest));
  // Empty and always the same: paths in a program's line table then do not depend on where a server runs.
  spec.working_directory = "/src";
  spec.slot = 2 * slot;
  // Each compile's own limits are set by the zygote in its child; these bound what escapes it.
  spec.limits.file_bytes = kGiB / 2;
  spec.limits.processes = 256;
  if (!kSanitized) spec.limits.resident_bytes = 8 * kGiB;
  return spec;
}

StatusOr<JailSpec> HeaderCompilerJail(const Installation& installation, int slot) {
  SOLSTICE_ASSIGN_OR_RETURN(JailSpec spec, CompilerJail(installation, slot));
  // NVRTC's heap for precompiled headers has 256 MiB, so the file is not much larger. A running compile has another, of
  // 256 MiB at most; one that found no room there would die of SIGBUS.
  spec.tmp_bytes = 576 << 20;
  spec.argv.push_back("--headers-file=/tmp/headers.pch");
  return spec;
}

StatusOr<JailSpec> JudgeProcess(const Installation& installation, const DeviceId& device) {
  JailSpec spec;
  spec.name = "judge";
  spec.argv = {installation.worker_program, "judge"};
  AddDeviceFlags(installation, device, &spec);
  spec.jailed = false;
  // The driver that the probe found is the one to use.
  if (device.kind == v1::CUDA) spec.environment = DriverEnvironment();
  spec.limits.open_files = 4096;
  return spec;
}

StatusOr<JailSpec> RunnerJail(const Installation& installation, const DeviceId& device,
                              const v1::internal::Hello& judge, int slot) {
  SOLSTICE_ASSIGN_OR_RETURN(JailSpec spec, WorkerJail(installation, "runner", "run"));
  AddDeviceFlags(installation, device, &spec);
  spec.slot = 2 * slot + 1;
  spec.limits.file_bytes = 64 << 20;
  spec.limits.processes = 512;
  if (device.kind == v1::CUDA) {
    AddDriver(judge, &spec);
    // The driver reserves address space for all of the GPU's memory; only what is resident can be bounded.
    if (!kSanitized) spec.limits.resident_bytes = 8 * kGiB;
  } else if (!kSanitized) {
    // The emulator holds the mapped tensors (8 GiB at most) and its own state.
    spec.limits.address_space_bytes = 32 * kGiB;
    spec.limits.resident_bytes = 12 * kGiB;
  }
  return spec;
}

JailSpec ProbeProcess(const Installation& installation) {
  JailSpec spec;
  spec.name = "probe";
  spec.argv = {installation.worker_program, "probe"};
  if (!installation.cupti_library.empty()) spec.argv.push_back(StrCat("--cupti=", installation.cupti_library));
  spec.jailed = false;
  spec.environment = DriverEnvironment();
  return spec;
}

std::vector<std::string> DriverEnvironment() {
  std::vector<std::string> environment;
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER", "LD_LIBRARY_PATH", "NVIDIA_VISIBLE_DEVICES"}) {
    const char* value = std::getenv(name);
    if (value != nullptr) environment.push_back(StrCat(name, "=", value));
  }
  return environment;
}

}  // namespace solstice::worker
