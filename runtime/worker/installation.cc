#include <sys/stat.h>
#include <unistd.h>

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

Status CheckDevice(v1::DeviceKind kind) {
  if (kind == v1::EMULATOR) return absl::OkStatus();
  return base::FailedPrecondition(StrCat("this build cannot drive ", v1::DeviceKind_Name(kind)), "use the emulator");
}

void AddDeviceFlags(v1::DeviceKind kind, int ordinal, JailSpec* spec) {
  spec->argv.push_back(StrCat("--device=", DeviceFlag(kind)));
  spec->argv.push_back(StrCat("--ordinal=", ordinal));
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

StatusOr<JailSpec> JudgeProcess(const Installation& installation, v1::DeviceKind kind, int ordinal) {
  SOLSTICE_RETURN_IF_ERROR(CheckDevice(kind));
  JailSpec spec;
  spec.name = "judge";
  spec.argv = {installation.worker_program, "judge"};
  AddDeviceFlags(kind, ordinal, &spec);
  spec.jailed = false;
  spec.limits.open_files = 4096;
  return spec;
}

StatusOr<JailSpec> RunnerJail(const Installation& installation, v1::DeviceKind kind, int ordinal, int slot) {
  SOLSTICE_RETURN_IF_ERROR(CheckDevice(kind));
  SOLSTICE_ASSIGN_OR_RETURN(JailSpec spec, WorkerJail(installation, "runner", "run"));
  AddDeviceFlags(kind, ordinal, &spec);
  spec.slot = 2 * slot + 1;
  spec.limits.file_bytes = 64 << 20;
  spec.limits.processes = 512;
  if (!kSanitized) {
    // The emulator holds the mapped tensors (8 GiB at most) and its own state.
    spec.limits.address_space_bytes = 32 * kGiB;
    spec.limits.resident_bytes = 12 * kGiB;
  }
  return spec;
}

}  // namespace solstice::worker
