// Finds or starts the private server of a data folder.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>

#include <chrono>
#include <thread>

#include "client/lib/client.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/rpc/build_id.h"
#include "runtime/rpc/private_server.h"
#include "solstice/v1/service.grpc.pb.h"

extern char** environ;

namespace solstice::client {
namespace {

using SteadyClock = std::chrono::steady_clock;
constexpr std::chrono::seconds kStartTimeout(10), kHandoverTimeout(30);
constexpr std::chrono::milliseconds kPoll(20);
constexpr int64_t kLogBytes = 1 << 20;
constexpr size_t kLogTailBytes = 2000;

bool Answers(const std::string& path) {
  base::UniqueFd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  if (!socket.valid() || path.size() >= sizeof address.sun_path) return false;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// The build that serves `address`; empty when it does not say in time.
std::string BuildOf(const std::string& address) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  auto channel = grpc::CreateCustomChannel(address, grpc::InsecureChannelCredentials(), arguments);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
  v1::ServerInfo info;
  if (!v1::Server::NewStub(channel)->GetInfo(&context, {}, &info).ok()) return {};
  return info.build_id();
}

// Starts solsticed in a session of its own, with its output in a log, and default signals whatever ours are.
StatusOr<pid_t> Launch(const std::string& program, const std::string& data_dir, const std::string& log) {
  std::vector<std::string> words = {program, "--private", "--data-dir", data_dir, "--accept-inline-definitions"};
  std::vector<char*> argv;
  for (auto& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, 1, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  posix_spawn_file_actions_adddup2(&actions, 1, 2);
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  posix_spawnattr_setsigmask(&attributes, &none);
  posix_spawnattr_setsigdefault(&attributes, &all);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  int error = ::posix_spawn(&pid, program.c_str(), &actions, &attributes, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  posix_spawnattr_destroy(&attributes);
  if (error != 0) return base::FromErrno(error, program);
  return pid;
}

Status StartFailed(const std::string& what, const std::string& log) {
  auto text = base::ReadFile(log, kLogBytes);
  std::string tail = text.ok() ? text->substr(text->size() > kLogTailBytes ? text->size() - kLogTailBytes : 0) : "";
  return base::Unavailable(base::StrCat("the private server ", what, tail.empty() ? "" : ":\n", tail),
                           base::StrCat("its log is ", log));
}

// Waits until nobody holds the folder's lock.
Status AwaitHandover(const std::string& data_dir, const std::string& build) {
  SOLSTICE_RETURN_IF_ERROR(rpc::RequestHandover(data_dir, build));
  const auto deadline = SteadyClock::now() + kHandoverTimeout;
  while (SteadyClock::now() < deadline) {
    SOLSTICE_ASSIGN_OR_RETURN(auto lock, rpc::PrivateLock::TryTake(data_dir));
    if (lock.has_value()) return absl::OkStatus();
    std::this_thread::sleep_for(kPoll);
  }
  return base::Unavailable("the private server of another build is still at work",
                           "wait for its evaluations, or use another --data-dir");
}

}  // namespace

StatusOr<std::string> EnsurePrivateServer(const std::string& data_dir) {
  std::string folder = data_dir;
  if (folder.empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(folder, rpc::DefaultDataDir());
  }
  SOLSTICE_ASSIGN_OR_RETURN(folder, rpc::PrepareDataDir(folder));
  SOLSTICE_ASSIGN_OR_RETURN(std::string path, rpc::PrivateSocketPath(folder));
  SOLSTICE_ASSIGN_OR_RETURN(std::string programs, base::ProgramDirectory());
  SOLSTICE_ASSIGN_OR_RETURN(std::string build, rpc::InstallationBuildId(programs));
  const std::string address = "unix:" + path, log = folder + "/server.log";
  if (Answers(path)) {
    std::string other = BuildOf(address);
    if (other == build) return address;
    if (!other.empty()) SOLSTICE_RETURN_IF_ERROR(AwaitHandover(folder, build));
  }
  pid_t pid = -1;
  const auto deadline = SteadyClock::now() + kStartTimeout;
  while (SteadyClock::now() < deadline) {
    if (pid < 0) {
      SOLSTICE_ASSIGN_OR_RETURN(pid, Launch(programs + "/solsticed", folder, log));
    }
    std::this_thread::sleep_for(kPoll);
    if (Answers(path)) return address;
    int status = 0;
    if (pid > 0 && ::waitpid(pid, &status, WNOHANG) == pid) {
      // The loser of a race for the lock ends; whoever won answers soon.
      SOLSTICE_ASSIGN_OR_RETURN(auto lock, rpc::PrivateLock::TryTake(folder));
      if (lock.has_value()) return StartFailed("did not start", log);
      pid = 0;
    }
  }
  return StartFailed("did not answer within 10 s", log);
}

}  // namespace solstice::client
