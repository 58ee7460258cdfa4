#include "runtime/sandbox/process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "runtime/base/strings.h"

namespace solstice::sandbox {
namespace {

using SteadyClock = std::chrono::steady_clock;

constexpr size_t kKeptStderrBytes = 64 << 10;
constexpr size_t kMaxTree = 1024;
// A /proc file, whose size says nothing; "" if it cannot be read.
std::string ReadProc(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text(16 << 10, '\0');
  ssize_t count = fd.valid() ? ::read(fd.get(), text.data(), text.size()) : 0;
  text.resize(static_cast<size_t>(std::max<ssize_t>(count, 0)));
  return text;
}

int64_t StatusField(const std::string& status, std::string_view name) {
  size_t at = status.find(name);
  if (at == std::string::npos) return 0;
  at = status.find_first_of("0123456789", at + name.size());
  int64_t value = 0;
  if (at != std::string::npos) std::from_chars(status.data() + at, status.data() + status.size(), value);
  return value;
}

// True when the process behind `pidfd` has ended.
bool WaitForEnd(int pidfd, SteadyClock::time_point deadline) {
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    pollfd entry = {pidfd, POLLIN, 0};
    int ready = ::poll(&entry, 1, static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30)));
    if (ready > 0) return true;
    if (ready == 0 && left <= 0) return false;
    if (ready < 0 && errno != EINTR) return false;
  }
}

class SpawnedProcess : public Process {
 public:
  SpawnedProcess(std::shared_ptr<ProcessState> state, base::UniqueFd channel)
      : state_(std::move(state)), channel_(std::move(channel)) {}
  ~SpawnedProcess() override { state_->KillTree(); }
  pid_t pid() const override { return state_->pid(); }
  base::UniqueFd TakeChannel() override { return std::move(channel_); }
  void Kill() override { state_->Kill(); }
  StatusOr<int> Wait(std::chrono::nanoseconds timeout) override { return state_->Wait(timeout); }
  std::string Stderr() override { return state_->Stderr(); }

 private:
  std::shared_ptr<ProcessState> state_;
  base::UniqueFd channel_;
};

}  // namespace

std::vector<pid_t> ProcessTree(pid_t root, int64_t* resident_bytes) {
  std::vector<pid_t> tree = {root};
  *resident_bytes = 0;
  for (size_t next = 0; next < tree.size() && tree.size() < kMaxTree; ++next) {
    std::string folder = base::StrCat("/proc/", tree[next]);
    std::string status = ReadProc(folder + "/status");
    *resident_bytes += (StatusField(status, "RssAnon:") + StatusField(status, "RssShmem:")) * 1024;
    // Children that a second thread started are listed under that thread; a worker's own threads do not fork.
    std::string children = ReadProc(base::StrCat(folder, "/task/", tree[next], "/children"));
    for (std::string_view word : base::Split(children, ' ')) {
      pid_t pid = 0;
      auto result = std::from_chars(word.data(), word.data() + word.size(), pid);
      if (result.ec == std::errc() && pid > 1) tree.push_back(pid);
    }
  }
  return tree;
}

ProcessState::ProcessState(Child child, base::UniqueFd error_pipe, int64_t resident_limit_bytes)
    : child_(std::move(child)), error_pipe_(std::move(error_pipe)), resident_limit_bytes_(resident_limit_bytes) {}

void ProcessState::Kill() { ::syscall(SYS_pidfd_send_signal, child_.pidfd.get(), SIGKILL, nullptr, 0); }

StatusOr<int> ProcessState::Wait(std::chrono::nanoseconds timeout) {
  {
    base::MutexLock lock(mutex_);
    if (exit_code_.has_value()) return *exit_code_;
  }
  // The ceiling keeps the sum from overflowing.
  auto deadline = SteadyClock::now() + std::clamp<std::chrono::nanoseconds>(timeout, std::chrono::nanoseconds(0),
                                                                            std::chrono::hours(24 * 365));
  if (!WaitForEnd(child_.pidfd.get(), deadline)) return base::DeadlineExceeded("the process still runs");
  base::MutexLock lock(mutex_);
  if (exit_code_.has_value()) return *exit_code_;
  siginfo_t info = {};
  while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(child_.pidfd.get()), &info, WEXITED) != 0) {
    if (errno == EINTR) continue;
    // Reaped elsewhere, or SIGCHLD is ignored: it has ended, how is not known.
    exit_code_ = 255;
    return 255;
  }
  exit_code_ = info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
  return *exit_code_;
}

void ProcessState::Keep(const char* data, size_t count) {
  stderr_.append(data, count);
  if (stderr_.size() > 2 * kKeptStderrBytes) stderr_.erase(0, stderr_.size() - kKeptStderrBytes);
}

bool ProcessState::DrainLocked() {
  char buffer[16 << 10];
  for (int i = 0; i < 8; ++i) {
    ssize_t count = ::read(error_pipe_.get(), buffer, sizeof buffer);
    if (count > 0) {
      Keep(buffer, static_cast<size_t>(count));
    } else if (count == 0) {
      return false;
    } else if (errno != EINTR) {
      return errno == EAGAIN;
    }
  }
  return true;
}

bool ProcessState::Drain() {
  base::MutexLock lock(mutex_);
  return DrainLocked();
}

std::string ProcessState::Stderr() {
  base::MutexLock lock(mutex_);
  DrainLocked();
  return stderr_.size() > kKeptStderrBytes ? stderr_.substr(stderr_.size() - kKeptStderrBytes) : stderr_;
}

void ProcessState::CheckMemory() {
  if (resident_limit_bytes_ <= 0) return;
  {
    // Once it is reaped its number may be another's.
    base::MutexLock lock(mutex_);
    if (exit_code_.has_value()) return;
  }
  int64_t resident_bytes = 0;
  ProcessTree(child_.pid, &resident_bytes);
  if (resident_bytes <= resident_limit_bytes_) return;
  std::string message = base::StrCat("killed: ", resident_bytes >> 20, " MiB of memory in use, the limit is ",
                                     resident_limit_bytes_ >> 20, " MiB\n");
  base::MutexLock lock(mutex_);
  Keep(message.data(), message.size());
  Kill();
}

void ProcessState::KillTree() {
  std::vector<base::UniqueFd> others;
  {
    base::MutexLock lock(mutex_);
    if (exit_code_.has_value()) return;
    int64_t unused;
    std::vector<pid_t> tree = ProcessTree(child_.pid, &unused);
    for (size_t i = 1; i < tree.size(); ++i) {
      base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, tree[i], 0)));
      if (pidfd.valid()) others.push_back(std::move(pidfd));
    }
  }
  Kill();
  Wait(std::chrono::seconds(10)).IgnoreError();
  // The kernel kills them with bubblewrap; this only waits until their memory is free again.
  auto deadline = SteadyClock::now() + std::chrono::seconds(5);
  for (const base::UniqueFd& pidfd : others) WaitForEnd(pidfd.get(), deadline);
}

std::unique_ptr<Process> MakeProcess(std::shared_ptr<ProcessState> state, base::UniqueFd channel) {
  return std::make_unique<SpawnedProcess>(std::move(state), std::move(channel));
}

}  // namespace solstice::sandbox
