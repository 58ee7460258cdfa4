// A spawned process as its owner and the spawner's thread see it.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/sandbox/child.h"
#include "runtime/sandbox/spawner.h"

namespace solstice::sandbox {

// Shared between the Process and the thread that drains its stderr and watches its memory. Thread-safe.
class ProcessState {
 public:
  ProcessState(Child child, base::UniqueFd error_pipe, int64_t resident_limit_bytes);

  pid_t pid() const { return child_.pid; }
  int error_fd() const { return error_pipe_.get(); }
  void Kill();
  StatusOr<int> Wait(std::chrono::nanoseconds timeout) SOLSTICE_EXCLUDES(mutex_);
  std::string Stderr() SOLSTICE_EXCLUDES(mutex_);
  // Reads what is there, within a bound. False: the other end is closed.
  bool Drain() SOLSTICE_EXCLUDES(mutex_);
  // Kills the tree if its resident memory exceeds the limit.
  void CheckMemory() SOLSTICE_EXCLUDES(mutex_);
  // SIGKILL, then waits until the process and those it started (seen at the time of the call) are gone.
  void KillTree() SOLSTICE_EXCLUDES(mutex_);

 private:
  bool DrainLocked() SOLSTICE_REQUIRES(mutex_);
  void Keep(const char* data, size_t count) SOLSTICE_REQUIRES(mutex_);

  const Child child_;
  const base::UniqueFd error_pipe_;
  const int64_t resident_limit_bytes_;
  base::Mutex mutex_;
  std::string stderr_ SOLSTICE_GUARDED_BY(mutex_);
  std::optional<int> exit_code_ SOLSTICE_GUARDED_BY(mutex_);
};

// Process ids below `root` (itself included) and, in `resident_bytes`, what they hold in memory that is theirs alone
// (anonymous and shared memory files). Bounded.
std::vector<pid_t> ProcessTree(pid_t root, int64_t* resident_bytes);

std::unique_ptr<Process> MakeProcess(std::shared_ptr<ProcessState> state, base::UniqueFd channel);

}  // namespace solstice::sandbox
