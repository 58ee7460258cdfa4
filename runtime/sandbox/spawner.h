// Starts worker processes in a jail: bubblewrap with namespaces of its own, an empty root that holds only what the
// specification names, an unprivileged uid (a server run as root), no_new_privs, a system call filter, resource limits,
// an empty environment, and no descriptors but 0 to 3 (stdin and stdout are /dev/null, stderr is kept). One Spawner
// thread lives as long as the server: bubblewrap's --die-with-parent follows the spawning thread. Thread-safe.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::sandbox {

struct Mount {
  std::string source;       // absolute, outside
  std::string destination;  // absolute, inside; read-only
};

struct ProcessLimits {
  int64_t address_space_bytes = 0;  // 0: none
  int64_t cpu_seconds = 0;
  int64_t file_bytes = 0;
  int64_t open_files = 1024;
  int64_t processes = 0;  // 0: none (needs a uid of its own)
  int64_t core_bytes = 0;
  // Resident memory of the whole process tree, checked a few times a second by the spawner, which kills what exceeds
  // it. 0: none.
  int64_t resident_bytes = 0;
};

struct JailSpec {
  std::string name;                     // "compiler", "judge", "runner"
  std::vector<std::string> argv;        // argv[0] inside the jail
  std::vector<Mount> mounts;            // what its root holds, besides /dev/null, /dev/zero, /dev/urandom
  bool proc = false;                    // mount /proc
  std::vector<std::string> devices;     // device nodes besides those, absolute, readable and writable
  int64_t tmp_bytes = 0;                // size of a private /tmp; 0: none
  std::string working_directory = "/";  // inside; made, empty, where there is none
  ProcessLimits limits;
  int slot = 0;        // uid = first_uid + slot when the server is root
  bool jailed = true;  // false: trusted code (judge): a plain child without namespaces
  // "NAME=value", of a trusted child; a jail's is always empty.
  std::vector<std::string> environment;
};

// A running worker. Destroying it kills and reaps the whole process tree. TakeChannel() apart, thread-safe.
class Process {
 public:
  virtual ~Process() = default;
  virtual pid_t pid() const = 0;             // of the outermost process (bwrap), in the server's namespace
  virtual base::UniqueFd TakeChannel() = 0;  // the server's end; valid once
  virtual void Kill() = 0;                   // SIGKILL, idempotent
  // Exit code, or 128 + signal. DEADLINE_EXCEEDED if it still runs.
  virtual StatusOr<int> Wait(std::chrono::nanoseconds timeout) = 0;
  // The last 64 KiB of what it wrote to stderr so far, any bytes.
  virtual std::string Stderr() = 0;
};

class Spawner {
 public:
  struct Options {
    std::string bwrap = "bwrap";  // a path, or a name: a bundle's own, then the one in PATH (bubblewrap.h)
    int first_uid = 610000;       // used when running as root
  };
  // FAILED_PRECONDITION when bubblewrap is missing or cannot make namespaces here (says which and how to allow it).
  // Takes the first bubblewrap that makes a jail.
  static StatusOr<std::unique_ptr<Spawner>> Create(const Options& options);
  virtual ~Spawner() = default;
  // The child finds its channel at descriptor 3. INVALID_ARGUMENT for a specification that makes no sense, NOT_FOUND
  // for a mount whose source is missing. That the jail could not be made shows in the process: it ends, with words on
  // stderr.
  virtual StatusOr<std::unique_ptr<Process>> Spawn(const JailSpec& spec) = 0;
  // "jail=bubblewrap", "uid=per-slot", "limiter=rlimits": what is enforced, for results' environment.
  virtual std::vector<std::string> Enforced() const = 0;
};

// Shared libraries (absolute paths, where the loader will look for them) that `program`, an ELF file for this machine,
// needs, directly or through others, and the dynamic loader: for mounts. NOT_FOUND names a missing library.
StatusOr<std::vector<std::string>> SharedLibraries(const std::string& program);

}  // namespace solstice::sandbox
