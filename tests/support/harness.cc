#include "tests/support/harness.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <thread>

namespace solstice::test {
namespace {

using SteadyClock = std::chrono::steady_clock;

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const auto& text : strings) pointers.push_back(const_cast<char*>(text.c_str()));
  pointers.push_back(nullptr);
  return pointers;
}

int DecodeStatus(int status) { return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status); }

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

TempFolder::TempFolder() {
  char path[] = "/tmp/solstice_test_XXXXXX";
  if (::mkdtemp(path) == nullptr) std::abort();
  path_ = path;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

std::string TempFolder::Write(const std::string& name, const std::string& content) const {
  std::string path = path_ + "/" + name;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  std::ofstream(path, std::ios::binary) << content;
  return path;
}

core::Json CommandResult::Json() const {
  auto json = core::ParseJson(out, "stdout");
  return json.ok() ? *json : core::Json();
}

CommandResult RunProgram(const std::vector<std::string>& argv, double timeout_s,
                         const std::vector<std::string>& environment) {
  int out[2], err[2];
  if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) std::abort();
  auto arguments = Pointers(argv);
  pid_t pid = ::fork();
  if (pid == 0) {
    for (const auto& entry : environment) ::putenv(const_cast<char*>(entry.c_str()));
    ::dup2(out[1], 1);
    ::dup2(err[1], 2);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  ::close(out[1]);
  ::close(err[1]);
  CommandResult result;
  pollfd files[2] = {{out[0], POLLIN, 0}, {err[0], POLLIN, 0}};
  const auto deadline = SteadyClock::now() + std::chrono::duration<double>(timeout_s);
  int open = 2;
  bool timed_out = false;
  while (open > 0) {
    if (SteadyClock::now() > deadline) {
      timed_out = true;
      break;
    }
    ::poll(files, 2, 100);
    for (int i = 0; i < 2; ++i) {
      if (files[i].fd < 0 || files[i].revents == 0) continue;
      char buffer[65536];
      ssize_t n = ::read(files[i].fd, buffer, sizeof buffer);
      if (n > 0) {
        (i == 0 ? result.out : result.err).append(buffer, static_cast<size_t>(n));
      } else {
        files[i].fd = -1;
        --open;
      }
    }
  }
  ::close(out[0]);
  ::close(err[0]);
  if (timed_out) {
    ::kill(pid, SIGKILL);
    ADD_FAILURE() << argv[0] << " did not end within " << timeout_s << " s";
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  result.exit_code = DecodeStatus(status);
  return result;
}

BackgroundProgram::BackgroundProgram(const std::vector<std::string>& argv, const std::string& log_path) {
  auto arguments = Pointers(argv);
  pid_ = ::fork();
  if (pid_ == 0) {
    int log = ::open(log_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    ::dup2(log, 1);
    ::dup2(log, 2);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
}

BackgroundProgram::~BackgroundProgram() {
  if (pid_ > 0 && !exit_code_.has_value()) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void BackgroundProgram::Signal(int signal) const {
  if (!exit_code_.has_value()) ::kill(pid_, signal);
}

std::optional<int> BackgroundProgram::Wait(double timeout_s) {
  const auto deadline = SteadyClock::now() + std::chrono::duration<double>(timeout_s);
  while (!exit_code_.has_value()) {
    int status = 0;
    if (::waitpid(pid_, &status, WNOHANG) == pid_) exit_code_ = DecodeStatus(status);
    if (!exit_code_.has_value() && SteadyClock::now() > deadline) return std::nullopt;
    if (!exit_code_.has_value()) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return exit_code_;
}

TestServer::TestServer(std::vector<std::string> flags) : flags_(std::move(flags)) {
  address_ = "unix:" + folder_.path() + "/server.sock";
  data_dir_ = folder_.path() + "/data";
  Start();
}

TestServer::~TestServer() {
  if (server_.has_value()) {
    server_->Signal(SIGTERM);
    server_->Wait(20);
  }
  if (testing::Test::HasFailure()) std::fprintf(stderr, "---- server log ----\n%s\n", Log().c_str());
}

void TestServer::Start() {
  std::vector<std::string> argv = {ProgramPath("solsticed"),
                                   "--listen",
                                   address_,
                                   "--data-dir",
                                   data_dir_,
                                   "--definition-root",
                                   SourcePath("definitions"),
                                   "--reference-kernels",
                                   SourcePath("reference_kernels"),
                                   "--accept-inline-definitions"};
  argv.insert(argv.end(), flags_.begin(), flags_.end());
  server_.emplace(argv, folder_.path() + "/server.log");
  const auto deadline = SteadyClock::now() + std::chrono::seconds(60);
  while (SteadyClock::now() < deadline) {
    auto result = RunProgram({ProgramPath("solstice"), "--server", address_, "--json", "doctor"}, 30);
    if (result.exit_code == 0) return;
    if (server_->Wait(0.05).has_value()) break;
  }
  ADD_FAILURE() << "solsticed did not start:\n" << Log();
}

std::string TestServer::Log() const { return ReadText(folder_.path() + "/server.log"); }

CommandResult TestServer::Cli(std::vector<std::string> arguments, double timeout_s) const {
  std::vector<std::string> argv = {ProgramPath("solstice"), "--server", address_};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return RunProgram(argv, timeout_s);
}

core::Json TestServer::CliJson(std::vector<std::string> arguments, int* exit_code, double timeout_s) const {
  arguments.insert(arguments.begin(), "--json");
  CommandResult result = Cli(arguments, timeout_s);
  core::Json json = result.Json();
  EXPECT_TRUE(json.is_object()) << "exit " << result.exit_code << "\n" << result.out << result.err;
  if (exit_code != nullptr) *exit_code = result.exit_code;
  return json;
}

void TestServer::Kill() {
  server_->Signal(SIGKILL);
  server_->Wait(20);
}

int TestServer::Terminate() {
  server_->Signal(SIGTERM);
  return server_->Wait(30).value_or(-1);
}

std::vector<pid_t> TestServer::Workers(const std::string& role) const {
  std::map<pid_t, pid_t> parents;
  std::map<pid_t, std::string> commands;
  DIR* proc = ::opendir("/proc");
  while (dirent* entry = ::readdir(proc)) {
    pid_t pid = static_cast<pid_t>(std::atoi(entry->d_name));
    if (pid <= 0) continue;
    std::string stat = ReadText("/proc/" + std::string(entry->d_name) + "/stat");
    size_t close = stat.rfind(')');
    if (close == std::string::npos) continue;
    char state = 0;
    int parent = 0;
    std::sscanf(stat.c_str() + close + 1, " %c %d", &state, &parent);
    parents[pid] = parent;
    std::string command = ReadText("/proc/" + std::string(entry->d_name) + "/cmdline");
    for (char& c : command) c = c == '\0' ? ' ' : c;
    commands[pid] = command;
  }
  ::closedir(proc);
  std::vector<pid_t> found;
  for (const auto& [pid, command] : commands) {
    // The worker itself, not the bubblewrap around it.
    if (command.find("solstice-worker " + role) == std::string::npos || command.find("bwrap") != std::string::npos) {
      continue;
    }
    for (pid_t up = pid; up > 1; up = parents.count(up) > 0 ? parents[up] : 0) {
      if (up == server_->pid()) {
        found.push_back(pid);
        break;
      }
    }
  }
  return found;
}

std::string SourcePath(const std::string& relative) { return std::string(SOLSTICE_SOURCE_DIR) + "/" + relative; }
std::string ProgramPath(const std::string& name) { return std::string(SOLSTICE_BINARY_DIR) + "/bin/" + name; }

}  // namespace solstice::test
