#include "runtime/sandbox/child.h"

#include <fcntl.h>
#include <linux/close_range.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "runtime/base/strings.h"

namespace solstice::sandbox {
namespace {

// What the child needs, made before it exists: it shares the server's memory until exec, so it must neither allocate
// nor take a lock.
struct Preparation {
  std::vector<char*> argv, environment;
  int null_fd = -1, error_fd = -1, channel_fd = -1, filter_fd = -1;
  std::vector<std::pair<int, rlimit>> limits;
  bool drop_privileges = false;
  uid_t id = 0;
  pid_t parent = 0;
  // Where the child failed; read by the parent, whose memory this is.
  const char* failed_step = nullptr;
  int failed_errno = 0;
};

int Fail(Preparation* preparation, const char* step) {
  preparation->failed_step = step;
  preparation->failed_errno = errno;
  ::_exit(127);
}

// Raw system calls for the ids: glibc's would change every thread of the server.
int ChildMain(void* argument) {
  auto* p = static_cast<Preparation*>(argument);
  struct sigaction standard = {};
  standard.sa_handler = SIG_DFL;
  for (int signal = 1; signal < NSIG; ++signal) ::sigaction(signal, &standard, nullptr);
  if (::setsid() < 0) return Fail(p, "setsid");
  if (::dup2(p->null_fd, 0) < 0 || ::dup2(p->null_fd, 1) < 0 || ::dup2(p->error_fd, 2) < 0 ||
      ::dup2(p->channel_fd, 3) < 0 || (p->filter_fd >= 0 && ::dup2(p->filter_fd, 4) < 0)) {
    return Fail(p, "dup2");
  }
  if (::syscall(SYS_close_range, p->filter_fd >= 0 ? 5u : 4u, ~0u, 0u) != 0) return Fail(p, "close_range");
  for (const auto& [resource, limit] : p->limits) {
    if (::syscall(SYS_prlimit64, 0, resource, &limit, nullptr) != 0) return Fail(p, "prlimit");
  }
  if (p->drop_privileges) {
    if (::syscall(SYS_setgroups, 0, nullptr) != 0) return Fail(p, "setgroups");
    if (::syscall(SYS_setresgid, p->id, p->id, p->id) != 0) return Fail(p, "setresgid");
    if (::syscall(SYS_setresuid, p->id, p->id, p->id) != 0) return Fail(p, "setresuid");
  }
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return Fail(p, "no_new_privs");
  // After the change of ids, which would clear it.
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) != 0) return Fail(p, "PR_SET_PDEATHSIG");
  if (::getppid() != p->parent) ::_exit(127);
  sigset_t none;
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execve(p->argv[0], p->argv.data(), p->environment.data());
  return Fail(p, "execve");
}

// Above the numbers that the child fills.
StatusOr<base::UniqueFd> HighDuplicate(int fd) {
  base::UniqueFd copy(::fcntl(fd, F_DUPFD_CLOEXEC, 16));
  if (!copy.valid()) return base::FromErrno(errno, "fcntl(F_DUPFD_CLOEXEC)");
  return copy;
}

void AddLimit(int resource, int64_t value, bool zero_means_none, Preparation* preparation) {
  if (value == 0 && zero_means_none) return;
  rlimit limit = {static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  preparation->limits.emplace_back(resource, limit);
}

class Stack {
 public:
  Stack() : memory_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0)) {}
  ~Stack() {
    if (memory_ != MAP_FAILED) ::munmap(memory_, kBytes);
  }
  bool valid() const { return memory_ != MAP_FAILED; }
  void* top() const { return static_cast<char*>(memory_) + kBytes; }

 private:
  static constexpr size_t kBytes = 256 << 10;
  void* memory_;
};

}  // namespace

StatusOr<Child> StartChild(const ChildSpec& spec) {
  Preparation preparation;
  std::vector<std::string> argv = spec.argv;
  for (std::string& argument : argv) preparation.argv.push_back(argument.data());
  preparation.argv.push_back(nullptr);
  std::vector<std::string> environment = spec.environment;
  for (std::string& entry : environment) preparation.environment.push_back(entry.data());
  preparation.environment.push_back(nullptr);

  base::UniqueFd null_file(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null_file.valid()) return base::FromErrno(errno, "/dev/null");
  SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd null_fd, HighDuplicate(null_file.get()));
  SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd error_fd, HighDuplicate(spec.error_fd));
  SOLSTICE_ASSIGN_OR_RETURN(base::UniqueFd channel_fd, HighDuplicate(spec.channel_fd));
  base::UniqueFd filter_fd;
  if (spec.filter_fd >= 0) {
    SOLSTICE_ASSIGN_OR_RETURN(filter_fd, HighDuplicate(spec.filter_fd));
  }
  preparation.null_fd = null_fd.get();
  preparation.error_fd = error_fd.get();
  preparation.channel_fd = channel_fd.get();
  preparation.filter_fd = filter_fd.get();
  preparation.drop_privileges = spec.drop_privileges;
  preparation.id = spec.id;
  preparation.parent = ::getpid();
  AddLimit(RLIMIT_AS, spec.limits.address_space_bytes, true, &preparation);
  AddLimit(RLIMIT_CPU, spec.limits.cpu_seconds, true, &preparation);
  AddLimit(RLIMIT_FSIZE, spec.limits.file_bytes, true, &preparation);
  AddLimit(RLIMIT_NOFILE, spec.limits.open_files, true, &preparation);
  // Counted per uid: shared with the server's own processes it would bind the wrong ones.
  if (spec.drop_privileges) AddLimit(RLIMIT_NPROC, spec.limits.processes, true, &preparation);
  AddLimit(RLIMIT_CORE, spec.limits.core_bytes, false, &preparation);

  Stack stack;
  if (!stack.valid()) return base::FromErrno(errno, "mmap");
  sigset_t all, old;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_SETMASK, &all, &old);
  int pidfd = -1;
  // As posix_spawn does: no copy of a large server's page tables, no fork handlers, and this thread waits until exec.
  pid_t pid = ::clone(ChildMain, stack.top(), CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD, &preparation, &pidfd);
  int clone_errno = errno;
  ::pthread_sigmask(SIG_SETMASK, &old, nullptr);
  if (pid < 0) return base::FromErrno(clone_errno, "clone");
  Child child;
  child.pid = pid;
  child.pidfd = base::UniqueFd(pidfd);
  if (preparation.failed_step != nullptr) {
    siginfo_t info;
    while (::waitid(static_cast<idtype_t>(P_PIDFD), static_cast<id_t>(pidfd), &info, WEXITED) != 0 && errno == EINTR) {
    }
    return base::FailedPrecondition(base::StrCat("cannot start ", spec.argv[0], ": ", preparation.failed_step, ": ",
                                                 std::strerror(preparation.failed_errno)));
  }
  return child;
}

}  // namespace solstice::sandbox
