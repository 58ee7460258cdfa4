#include "runtime/worker/compile_child.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <new>

#include "runtime/base/clock.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/worker/service.h"

namespace solstice::worker {
namespace {

using base::StrCat;
using v1::internal::CompileLimits;
using v1::internal::Program;
using v1::internal::WorkerReply;
using SteadyClock = std::chrono::steady_clock;

constexpr int kOutOfMemoryExit = 77;
// PTX, log and the rest beside the cubin.
constexpr int64_t kOtherResultBytes = 96 << 20;
// Kernels, state variables and the like of one program.
constexpr int kMaxListed = 4096;

int64_t ResultLimit(const CompileLimits& limits) { return limits.cubin_bytes() + kOtherResultBytes; }

void SetLimit(int resource, int64_t value) {
  rlimit limit = {static_cast<rlim_t>(value), static_cast<rlim_t>(value)};
  ::setrlimit(static_cast<__rlimit_resource>(resource), &limit);
}

[[noreturn]] void ChildMain(const std::function<StatusOr<Program>()>& work, const CompileLimits& limits,
                            int64_t scratch_bytes, int channel_fd, int result_fd) {
  // The conversation is the parent's alone: what runs here may be in the hands of a hostile source.
  ::close(channel_fd);
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
  SetLimit(RLIMIT_AS, limits.memory_bytes());
#endif
  // The deadline is the parent's clock; this ends what would outlive it. Several threads may compile.
  SetLimit(RLIMIT_CPU, static_cast<int64_t>(std::ceil(limits.time_s())) * 16 + 16);
  SetLimit(RLIMIT_FSIZE, std::max(ResultLimit(limits), scratch_bytes));
  WorkerReply reply;
  try {
    auto program = work();
    if (program.ok()) {
      *reply.mutable_program() = *std::move(program);
    } else {
      reply.mutable_error()->set_code(static_cast<int>(program.status().code()));
      reply.mutable_error()->set_message(base::MessageOf(program.status()));
    }
    MakeUtf8(&reply);
    if (!reply.SerializeToFileDescriptor(result_fd)) ::_exit(1);
  } catch (const std::bad_alloc&) {
    ::_exit(kOutOfMemoryExit);
  }
  // Not exit(): what the libraries registered is the parent's to run.
  ::_exit(0);
}

Program Failed(std::string reason, std::string mend) {
  Program program;
  program.set_format_version(1);
  program.set_verdict(v1::COMPILE_ERROR);
  program.set_reason(std::move(reason));
  program.set_mend(std::move(mend));
  return program;
}

Program TimeReached(const CompileLimits& limits) {
  return Failed(StrCat("compile time limit of ", limits.time_s(), " s reached"),
                "look for template recursion or macros that grow without bound, or instantiate fewer variants at once");
}

Program MemoryReached(const CompileLimits& limits) {
  return Failed(StrCat("compile memory limit of ", limits.memory_bytes() >> 20, " MiB reached"),
                "look for template recursion, huge initialised arrays or unrolled loops");
}

enum class Ended { kByItself, kDeadline, kPeerGone };

// Waits until the child ends; kills it at the deadline or when nobody waits for its result any more.
StatusOr<Ended> Watch(pid_t pid, int channel_fd, double time_s) {
  base::UniqueFd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  if (!pidfd.valid()) return base::FromErrno(errno, "pidfd_open");
  auto deadline = SteadyClock::now() + std::chrono::duration<double>(time_s);
  while (true) {
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - SteadyClock::now()).count();
    if (left <= 0) return Ended::kDeadline;
    // A request that comes early stays in the channel: only its end is of interest here.
    pollfd entries[2] = {{pidfd.get(), POLLIN, 0}, {channel_fd, POLLRDHUP, 0}};
    int ready = ::poll(entries, channel_fd >= 0 ? 2 : 1, static_cast<int>(left));
    if (ready < 0 && errno != EINTR) return base::FromErrno(errno, "poll");
    if (ready <= 0) continue;
    if ((entries[0].revents & POLLIN) != 0) return Ended::kByItself;
    if (entries[1].revents != 0) return Ended::kPeerGone;
  }
}

// A compiler in a submission's hands could fill the server's memory with millions of empty messages: what no program
// has is refused here, where memory is limited.
Status CheckCounts(const Program& program) {
  int parameters = 0;
  for (const v1::Kernel& kernel : program.kernels())
    parameters += kernel.parameters_size() + kernel.needs_device_size();
  if (program.kernels_size() > kMaxListed || program.device_state_size() > kMaxListed ||
      program.math_modes_size() > kMaxListed || parameters > 16 * kMaxListed) {
    return base::Internal("the compile process left a result of an impossible shape");
  }
  return absl::OkStatus();
}

StatusOr<Program> ReadResult(int result_fd, const CompileLimits& limits) {
  SOLSTICE_ASSIGN_OR_RETURN(std::string bytes, base::ReadMemfd(result_fd, ResultLimit(limits)));
  WorkerReply reply;
  if (!reply.ParseFromString(bytes)) return base::Internal("the compile process left no readable result");
  reply.DiscardUnknownFields();
  if (reply.has_program()) {
    SOLSTICE_RETURN_IF_ERROR(CheckCounts(reply.program()));
    return std::move(*reply.mutable_program());
  }
  if (!reply.has_error()) return base::Internal("the compile process left no result");
  auto code = static_cast<absl::StatusCode>(reply.error().code());
  if (code == absl::StatusCode::kResourceExhausted) return MemoryReached(limits);
  return base::MakeStatus(code, reply.error().message());
}

// What a death that was not ours says about the source.
Program Died(int wait_status, const rusage& usage, const CompileLimits& limits) {
  bool much_memory = usage.ru_maxrss > limits.memory_bytes() / 1024 / 2;
  if (WIFEXITED(wait_status)) {
    int code = WEXITSTATUS(wait_status);
    if (code == kOutOfMemoryExit || much_memory) return MemoryReached(limits);
    return Failed(StrCat("the compiler gave up on this source (exit code ", code, ")"),
                  "reduce the source until it compiles to find what it does not stand");
  }
  int signal = WTERMSIG(wait_status);
  if (signal == SIGXCPU) return TimeReached(limits);
  if (signal == SIGXFSZ) {
    return Failed(StrCat("the compiled program is larger than ", ResultLimit(limits) >> 20, " MiB"),
                  "instantiate fewer variants, or make tables smaller");
  }
  if (much_memory || signal == SIGKILL) return MemoryReached(limits);
  return Failed(StrCat("the compiler crashed on this source (signal ", signal, ")"),
                "reduce the source until it compiles to find what it does not stand");
}

}  // namespace

CompileLimits EffectiveLimits(const CompileLimits& limits) {
  CompileLimits effective = limits;
  // Written so that NaN takes the default.
  effective.set_time_s(limits.time_s() > 0 ? std::min(limits.time_s(), 3600.0) : 30.0);
  effective.set_memory_bytes(limits.memory_bytes() > 0 ? limits.memory_bytes() : int64_t{4} << 30);
  effective.set_cubin_bytes(limits.cubin_bytes() > 0 ? std::min<int64_t>(limits.cubin_bytes(), 128 << 20) : 32 << 20);
  effective.set_log_bytes(limits.log_bytes() > 0 ? std::min<int64_t>(limits.log_bytes(), 16 << 20) : 64 << 10);
  return effective;
}

StatusOr<Program> CompileInChild(const std::function<StatusOr<Program>()>& work, const CompileLimits& limits,
                                 int channel_fd, int64_t scratch_bytes) {
  base::Stopwatch watch;
  base::UniqueFd result(::memfd_create("compile-result", MFD_CLOEXEC));
  if (!result.valid()) return base::FromErrno(errno, "memfd_create");
  pid_t pid = ::fork();
  if (pid < 0) return base::FromErrno(errno, "fork");
  if (pid == 0) ChildMain(work, limits, scratch_bytes, channel_fd, result.get());

  auto ended = Watch(pid, channel_fd, limits.time_s());
  if (!ended.ok() || *ended != Ended::kByItself) ::kill(pid, SIGKILL);
  int wait_status = 0;
  rusage usage = {};
  while (::wait4(pid, &wait_status, 0, &usage) < 0) {
    if (errno != EINTR) return base::FromErrno(errno, "wait4");
  }
  if (!ended.ok()) return ended.status();
  if (*ended == Ended::kPeerGone) return base::Cancelled("the server went away during a compile");
  Program program;
  if (*ended == Ended::kDeadline) {
    program = TimeReached(limits);
  } else if (WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0) {
    SOLSTICE_ASSIGN_OR_RETURN(program, ReadResult(result.get(), limits));
  } else if (scratch_bytes > 0) {
    return base::MakeStatus(absl::StatusCode::kAborted, "the compiler found no room, or broke");
  } else {
    program = Died(wait_status, usage, limits);
  }
  program.set_milliseconds(watch.milliseconds());
  return program;
}

}  // namespace solstice::worker
