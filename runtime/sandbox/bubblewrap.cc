#include "runtime/sandbox/bubblewrap.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/strings.h"

namespace solstice::sandbox {
namespace {

using base::StrCat;

constexpr int kMaxSlots = 10000;
constexpr size_t kMaxMounts = 256;

Status CheckPath(std::string_view what, const std::string& path) {
  if (path.empty() || path[0] != '/' || path.find('\0') != std::string::npos) {
    return base::InvalidArgument(StrCat("jail: ", what, " ", base::Quote(path), " is not an absolute path"));
  }
  for (std::string_view part : base::Split(path, '/')) {
    if (part == "..") return base::InvalidArgument(StrCat("jail: ", what, " ", base::Quote(path), " contains \"..\""));
  }
  return absl::OkStatus();
}

// The real path of an executable file, or "".
std::string Executable(const std::string& path) {
  struct stat info;
  if (::access(path.c_str(), X_OK) != 0 || ::stat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode)) return "";
  char* resolved = ::realpath(path.c_str(), nullptr);
  std::string text = resolved == nullptr ? "" : resolved;
  ::free(resolved);
  return text;
}

void AddBubblewrap(const std::string& program, std::vector<Bubblewrap>* found) {
  if (program.empty()) return;
  std::string libraries = StrCat(program.substr(0, program.rfind('/')), "/bwrap-libraries");
  struct stat info;
  bool own = ::stat(libraries.c_str(), &info) == 0 && S_ISDIR(info.st_mode);
  found->push_back({program, own ? libraries : ""});
}

}  // namespace

std::string FindProgram(const std::string& name) {
  if (name.find('/') != std::string::npos) return Executable(name);
  const char* path = ::getenv("PATH");
  std::string folders = StrCat(path == nullptr ? "" : path, ":/usr/bin:/bin");
  for (std::string_view folder : base::Split(folders, ':')) {
    if (folder.empty() || folder[0] != '/') continue;
    if (std::string program = Executable(StrCat(folder, "/", name)); !program.empty()) return program;
  }
  return "";
}

std::vector<Bubblewrap> FindBubblewraps(const std::string& name, const std::string& program_folder) {
  std::vector<Bubblewrap> found;
  if (name.find('/') == std::string::npos) {
    AddBubblewrap(Executable(StrCat(program_folder, "/../libexec/solstice/", name)), &found);
  }
  AddBubblewrap(FindProgram(name), &found);
  return found;
}

Status CheckJailSpec(const JailSpec& spec) {
  if (spec.argv.empty()) return base::InvalidArgument("jail: the command is empty");
  SOLSTICE_RETURN_IF_ERROR(CheckPath("program", spec.argv[0]));
  for (const std::string& argument : spec.argv) {
    if (argument.find('\0') != std::string::npos) return base::InvalidArgument("jail: an argument contains a NUL");
  }
  if (spec.jailed && !spec.environment.empty()) return base::InvalidArgument("jail: its environment must be empty");
  for (const std::string& entry : spec.environment) {
    const size_t equals = entry.find('=');
    if (equals == 0 || equals == std::string::npos || entry.find('\0') != std::string::npos) {
      return base::InvalidArgument(StrCat("environment: ", base::Quote(entry), " is not NAME=value"));
    }
  }
  if (spec.mounts.size() > kMaxMounts) return base::InvalidArgument("jail: too many mounts");
  for (const Mount& mount : spec.mounts) {
    SOLSTICE_RETURN_IF_ERROR(CheckPath("mount source", mount.source));
    SOLSTICE_RETURN_IF_ERROR(CheckPath("mount destination", mount.destination));
    if (mount.destination == "/") return base::InvalidArgument("jail: a mount may not replace the root");
  }
  for (const std::string& node : spec.devices) {
    SOLSTICE_RETURN_IF_ERROR(CheckPath("device", node));
    if (node.rfind("/dev/", 0) != 0) return base::InvalidArgument(StrCat("jail: ", base::Quote(node), " is no device"));
  }
  if (spec.slot < 0 || spec.slot >= kMaxSlots) return base::InvalidArgument(StrCat("jail: slot ", spec.slot));
  if (spec.tmp_bytes < 0) return base::InvalidArgument("jail: the size of /tmp is negative");
  if (spec.working_directory.empty() || spec.working_directory[0] != '/') {
    return base::InvalidArgument("jail: the working directory is not absolute");
  }
  return absl::OkStatus();
}

std::vector<std::string> BubblewrapCommand(const std::string& bwrap, const JailSpec& spec,
                                           const std::vector<std::string>& sources, int filter_fd) {
  std::vector<std::string> command = {bwrap};
  auto add = [&command](std::initializer_list<std::string> words) {
    command.insert(command.end(), words.begin(), words.end());
  };
  add({"--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try"});
  add({"--die-with-parent", "--new-session", "--cap-drop", "ALL", "--uid", "65534", "--gid", "65534"});
  add({"--hostname", "solstice", "--clearenv"});
  if (filter_fd >= 0) add({"--seccomp", std::to_string(filter_fd)});
  for (const char* node : {"/dev/null", "/dev/zero", "/dev/urandom"}) add({"--dev-bind", node, node});
  for (const std::string& node : spec.devices) add({"--dev-bind", node, node});
  for (size_t i = 0; i < spec.mounts.size(); ++i) add({"--ro-bind", sources[i], spec.mounts[i].destination});
  if (spec.proc) add({"--proc", "/proc"});
  if (spec.tmp_bytes > 0) add({"--size", std::to_string(spec.tmp_bytes), "--tmpfs", "/tmp"});
  // The root itself is a tmpfs that its owner could fill.
  add({"--dir", spec.working_directory, "--remount-ro", "/", "--chdir", spec.working_directory, "--"});
  command.insert(command.end(), spec.argv.begin(), spec.argv.end());
  return command;
}

}  // namespace solstice::sandbox
