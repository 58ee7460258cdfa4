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

StatusOr<std::string> FindProgram(const std::string& name) {
  std::vector<std::string> candidates;
  if (name.find('/') != std::string::npos) {
    candidates.push_back(name);
  } else {
    const char* path = ::getenv("PATH");
    std::string folders = StrCat(path == nullptr ? "" : path, ":/usr/bin:/bin");
    for (std::string_view folder : base::Split(folders, ':')) {
      if (!folder.empty() && folder[0] == '/') candidates.push_back(StrCat(folder, "/", name));
    }
  }
  for (const std::string& candidate : candidates) {
    if (::access(candidate.c_str(), X_OK) != 0) continue;
    char* resolved = ::realpath(candidate.c_str(), nullptr);
    std::string text = resolved == nullptr ? "" : resolved;
    ::free(resolved);
    if (!text.empty()) return text;
  }
  return base::FailedPrecondition(StrCat("bubblewrap is missing: there is no program ", base::Quote(name)),
                                  "install it (Debian, Ubuntu: apt-get install bubblewrap)");
}

class BubblewrapSpawner : public Spawner {
 public:
  BubblewrapSpawner(std::string bwrap, int first_uid)
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

  // Paths from which bubblewrap can take the mounts.
  StatusOr<std::vector<std::string>> Sources(const JailSpec& spec) {
    std::vector<std::string> sources;
    for (const Mount& mount : spec.mounts) {
      if (stage_ != nullptr) {
        SOLSTICE_ASSIGN_OR_RETURN(std::string staged, stage_->Add(mount.source));
        sources.push_back(std::move(staged));
      } else {
        struct stat info;
        if (::stat(mount.source.c_str(), &info) != 0) return base::FromErrno(errno, mount.source);
        sources.push_back(mount.source);
      }
    }
    return sources;
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
      SOLSTICE_ASSIGN_OR_RETURN(std::vector<std::string> sources, Sources(spec));
      if (!filter_.empty()) {
        // One a jail: bubblewrap reads it to its end, and descriptors share their position.
        SOLSTICE_ASSIGN_OR_RETURN(filter, base::SealedMemfd("filter", filter_));
        if (::lseek(filter.get(), 0, SEEK_SET) != 0) return base::FromErrno(errno, "lseek");
        child_spec.filter_fd = filter.get();
      }
      child_spec.argv = BubblewrapCommand(bwrap_, spec, sources, filter.valid() ? kFilterFd : -1);
      child_spec.drop_privileges = as_root_;
      child_spec.id = static_cast<uid_t>(first_uid_ + spec.slot);
    } else {
      child_spec.argv = spec.argv;
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

  const std::string bwrap_;
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
Status Probe(Spawner& spawner, bool as_root) {
  JailSpec spec;
  spec.name = "probe";
  SOLSTICE_ASSIGN_OR_RETURN(std::string program, FindProgram("true"));
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
      StrCat("bubblewrap cannot make a jail here: ",
             code.ok() ? StrCat("it ended with ", *code, " and said ", words) : std::string("it did not finish")),
      as_root
          ? "allow user namespaces: sysctl user.max_user_namespaces=15000; in a container run it with --privileged or "
            "--security-opt seccomp=unconfined --security-opt systempaths=unconfined"
          : "allow unprivileged user namespaces: sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu sysctl "
            "kernel.apparmor_restrict_unprivileged_userns=0");
}

}  // namespace

StatusOr<std::unique_ptr<Spawner>> Spawner::Create(const Options& options) {
  SOLSTICE_ASSIGN_OR_RETURN(std::string bwrap, FindProgram(options.bwrap));
  if (options.first_uid <= 0) return base::InvalidArgument(StrCat("first_uid ", options.first_uid, " must be above 0"));
  auto spawner = std::make_unique<BubblewrapSpawner>(bwrap, options.first_uid);
  SOLSTICE_RETURN_IF_ERROR(spawner->Start());
  SOLSTICE_RETURN_IF_ERROR(Probe(*spawner, ::geteuid() == 0));
  return std::unique_ptr<Spawner>(std::move(spawner));
}

}  // namespace solstice::sandbox
