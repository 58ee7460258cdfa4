#include "runtime/sandbox/spawner.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <deque>
#include <map>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/base/mutex.h"
#include "runtime/base/strings.h"
#include "runtime/sandbox/bubblewrap.h"
#include "runtime/sandbox/channel.h"
#include "runtime/sandbox/child.h"
#include "runtime/sandbox/filter.h"
#include "runtime/sandbox/process.h"
#include "runtime/sandbox/stage.h"

namespace solstice::sandbox {
namespace {

using base::StrCat;

constexpr int kFilterFd = 4;
constexpr int kWatchIntervalMs = 100;
constexpr auto kProbeTimeout = std::chrono::seconds(20);

class BubblewrapSpawner : public Spawner {
 public:
  BubblewrapSpawner(Bubblewrap bwrap, int first_uid)
      : bwrap_(std::move(bwrap)), first_uid_(first_uid), as_root_(::geteuid() == 0), filter_(SystemCallFilter()) {}

  ~BubblewrapSpawner() override {
    {
      base::MutexLock lock(mutex_);
      stopping_ = true;
    }
    Wake();
    if (thread_.joinable()) thread_.join();
  }

  Status Start() {
    wake_ = base::UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
    epoll_ = base::UniqueFd(::epoll_create1(EPOLL_CLOEXEC));
    if (!wake_.valid() || !epoll_.valid()) return base::FromErrno(errno, "eventfd, epoll_create1");
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = 0;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, wake_.get(), &event) != 0) return base::FromErrno(errno, "epoll_ctl");
    thread_ = std::thread([this] { Loop(); });
    base::MutexLock lock(mutex_);
    while (!started_) changed_.Wait(mutex_);
    return start_status_;
  }

  StatusOr<std::unique_ptr<Process>> Spawn(const JailSpec& spec) override {
    SOLSTICE_RETURN_IF_ERROR(CheckJailSpec(spec));
    Request request;
    request.spec = &spec;
    {
      base::MutexLock lock(mutex_);
      requests_.push_back(&request);
    }
    Wake();
    base::MutexLock lock(mutex_);
    while (!request.done) changed_.Wait(mutex_);
    return std::move(request.result);
  }

  std::vector<std::string> Enforced() const override {
    return {"jail=bubblewrap", as_root_ ? "uid=per-slot" : "uid=server", "limiter=rlimits+watchdog",
            filter_.empty() ? "seccomp=none" : "seccomp=denylist"};
  }

 private:
  struct Request {
    const JailSpec* spec = nullptr;
    bool done = false;
    StatusOr<std::unique_ptr<Process>> result = base::Internal("not spawned");
  };

  void Wake() {
    uint64_t one = 1;
    // Full only if the thread has been woken already.
    [[maybe_unused]] ssize_t written = ::write(wake_.get(), &one, sizeof one);
  }

  void Loop() {
    Status status;
    if (as_root_) {
      auto stage = Stage::Create();
      status = stage.status();
      if (stage.ok()) stage_ = *std::move(stage);
    }
    {
      base::MutexLock lock(mutex_);
      started_ = true;
      start_status_ = status;
    }
    changed_.NotifyAll();
    while (Step()) {
    }
    // Children die with this thread; killing them first makes it certain before the thread's end is seen.
    for (auto& [id, weak] : watched_) {
      if (auto state = weak.lock()) state->Kill();
    }
  }

  // One round: drain stderr, serve requests, check memory. False at the end.
  bool Step() {
    epoll_event events[32];
    int count = ::epoll_wait(epoll_.get(), events, 32, watched_.empty() ? -1 : kWatchIntervalMs);
    for (int i = 0; i < count; ++i) {
      if (events[i].data.u64 == 0) {
        uint64_t ignored;
        [[maybe_unused]] ssize_t got = ::read(wake_.get(), &ignored, sizeof ignored);
      } else {
        DrainOne(events[i].data.u64);
      }
    }
    CheckMemory();
    std::deque<Request*> requests;
    bool stopping;
    {
      base::MutexLock lock(mutex_);
      requests.swap(requests_);
      stopping = stopping_;
    }
    for (Request* request : requests) {
      auto result = SpawnHere(*request->spec);
      base::MutexLock lock(mutex_);
      request->result = std::move(result);
      request->done = true;
      changed_.NotifyAll();
    }
    return !stopping;
  }

  void DrainOne(uint64_t id) {
    auto found = watched_.find(id);
    if (found == watched_.end()) return;
    auto state = found->second.lock();
    if (state != nullptr && !state->Drain()) ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, state->error_fd(), nullptr);
  }

  void CheckMemory() {
    auto now = std::chrono::steady_clock::now();
    if (now < next_check_) return;
    next_check_ = now + std::chrono::milliseconds(kWatchIntervalMs);
    for (auto it = watched_.begin(); it != watched_.end();) {
      auto state = it->second.lock();
      if (state != nullptr) state->CheckMemory();
      it = state == nullptr ? watched_.erase(it) : std::next(it);
    }
  }

  // A path by which the child, which may have lost root's rights, reads `path`.
  StatusOr<std::string> Readable(const std::string& path) {
    if (stage_ != nullptr) return stage_->Add(path);
    struct stat info;
    if (::stat(path.c_str(), &info) != 0) return base::FromErrno(errno, path);
    return path;
  }

  Status AddCommand(const JailSpec& spec, bool filtered, ChildSpec* child) {
    std::vector<std::string> sources;
    for (const Mount& mount : spec.mounts) {
      SOLSTICE_ASSIGN_OR_RETURN(std::string source, Readable(mount.source));
      sources.push_back(std::move(source));
    }
    std::string program = bwrap_.program;
    if (!bwrap_.libraries.empty()) {
      SOLSTICE_ASSIGN_OR_RETURN(program, Readable(bwrap_.program));
      SOLSTICE_ASSIGN_OR_RETURN(std::string libraries, Readable(bwrap_.libraries));
      // For bubblewrap alone: it clears the environment of what it starts.
      child->environment.push_back(StrCat("LD_LIBRARY_PATH=", libraries));
    }
    child->argv = BubblewrapCommand(program, spec, sources, filtered ? kFilterFd : -1);
    return absl::OkStatus();
  }

  StatusOr<std::unique_ptr<Process>> SpawnHere(const JailSpec& spec) {
    SOLSTICE_ASSIGN_OR_RETURN(auto sockets, Channel::MakePair());
    int pipe_fds[2];
    if (::pipe2(pipe_fds, O_CLOEXEC) != 0) return base::FromErrno(errno, "pipe2");
    base::UniqueFd error_read(pipe_fds[0]), error_write(pipe_fds[1]);
    if (::fcntl(error_read.get(), F_SETFL, O_NONBLOCK) != 0) return base::FromErrno(errno, "fcntl");

    ChildSpec child_spec;
    child_spec.limits = spec.limits;
    child_spec.error_fd = error_write.get();
    child_spec.channel_fd = sockets.second.get();
    base::UniqueFd filter;
    if (spec.jailed) {
      if (!filter_.empty()) {
        // One a jail: bubblewrap reads it to its end, and descriptors share their position.
        SOLSTICE_ASSIGN_OR_RETURN(filter, base::SealedMemfd("filter", filter_));
        if (::lseek(filter.get(), 0, SEEK_SET) != 0) return base::FromErrno(errno, "lseek");
        child_spec.filter_fd = filter.get();
      }
      SOLSTICE_RETURN_IF_ERROR(AddCommand(spec, filter.valid(), &child_spec));
      child_spec.drop_privileges = as_root_;
      child_spec.id = static_cast<uid_t>(first_uid_ + spec.slot);
    } else {
      child_spec.argv = spec.argv;
      child_spec.environment = spec.environment;
    }
    SOLSTICE_ASSIGN_OR_RETURN(Child child, StartChild(child_spec));
    auto state = std::make_shared<ProcessState>(std::move(child), std::move(error_read), spec.limits.resident_bytes);
    uint64_t id = next_id_++;
    watched_[id] = state;
    epoll_event event = {};
    event.events = EPOLLIN;
    event.data.u64 = id;
    if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, state->error_fd(), &event) != 0) {
      state->KillTree();
      return base::FromErrno(errno, "epoll_ctl");
    }
    return MakeProcess(std::move(state), std::move(sockets.first));
  }

  const Bubblewrap bwrap_;
  const int first_uid_;
  const bool as_root_;
  const std::string filter_;
  base::UniqueFd wake_, epoll_;

  base::Mutex mutex_;
  base::CondVar changed_;
  std::deque<Request*> requests_ SOLSTICE_GUARDED_BY(mutex_);
  bool stopping_ SOLSTICE_GUARDED_BY(mutex_) = false;
  bool started_ SOLSTICE_GUARDED_BY(mutex_) = false;
  Status start_status_ SOLSTICE_GUARDED_BY(mutex_);

  // The thread's own. stage_ outlives the thread (members die after ~BubblewrapSpawner joined it).
  std::unique_ptr<Stage> stage_;
  std::map<uint64_t, std::weak_ptr<ProcessState>> watched_;
  uint64_t next_id_ = 1;
  std::chrono::steady_clock::time_point next_check_{};
  std::thread thread_;
};

// Starts a jail as a worker's and says what is missing if it does not come up.
Status Probe(Spawner& spawner, const std::string& bwrap, bool as_root) {
  JailSpec spec;
  spec.name = "probe";
  std::string program = FindProgram("true");
  if (program.empty()) return base::FailedPrecondition("there is no program \"true\" to try a jail with");
  spec.argv = {"/true"};
  spec.mounts = {{program, "/true"}};
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<std::string> libraries, SharedLibraries(program));
  for (const std::string& library : libraries) spec.mounts.push_back({library, library});
  spec.proc = true;
  spec.tmp_bytes = 1 << 20;
  SOLSTICE_ASSIGN_OR_RETURN(std::unique_ptr<Process> process, spawner.Spawn(spec));
  auto code = process->Wait(kProbeTimeout);
  if (code.ok() && *code == 0) return absl::OkStatus();
  std::string words = base::Quote(base::Trim(process->Stderr()), 400);
  return base::FailedPrecondition(
      StrCat("bubblewrap (", bwrap, ") cannot make a jail here: ",
             code.ok() ? StrCat("it ended with ", *code, " and said ", words) : std::string("it did not finish")),
      as_root
          ? "allow user namespaces: sysctl user.max_user_namespaces=15000; in a container run it with --privileged or "
            "--security-opt seccomp=unconfined --security-opt systempaths=unconfined"
          : "allow unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0");
}

}  // namespace

StatusOr<std::unique_ptr<Spawner>> Spawner::Create(const Options& options) {
  if (options.first_uid <= 0) return base::InvalidArgument(StrCat("first_uid ", options.first_uid, " must be above 0"));
  SOLSTICE_ASSIGN_OR_RETURN(std::string folder, base::ProgramDirectory());
  Status failure =
      base::FailedPrecondition(StrCat("bubblewrap is missing: there is no program ", base::Quote(options.bwrap)),
                               "install it (Debian, Ubuntu: apt-get install bubblewrap)");
  bool first = true;
  // Where namespaces are allowed by the program's path (AppArmor), one may work where another does not.
  for (const Bubblewrap& bwrap : FindBubblewraps(options.bwrap, folder)) {
    auto spawner = std::make_unique<BubblewrapSpawner>(bwrap, options.first_uid);
    SOLSTICE_RETURN_IF_ERROR(spawner->Start());
    Status works = Probe(*spawner, bwrap.program, ::geteuid() == 0);
    if (works.ok()) return std::unique_ptr<Spawner>(std::move(spawner));
    if (first) failure = works;
    first = false;
  }
  return failure;
}

}  // namespace solstice::sandbox
