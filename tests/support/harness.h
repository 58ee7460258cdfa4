// Real programs for tests: a solsticed on a unix socket with a data folder of its own, and the command line against it.
#pragma once

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "runtime/core/json.h"

namespace solstice::test {

// A folder that goes with the object.
class TempFolder {
 public:
  TempFolder();
  ~TempFolder();
  const std::string& path() const { return path_; }
  // Writes a file below it and returns its path.
  std::string Write(const std::string& name, const std::string& content) const;

 private:
  std::string path_;
};

struct CommandResult {
  int exit_code = -1;  // 128 + signal when it was killed
  std::string out, err;
  // stdout as JSON; null when it is none.
  core::Json Json() const;
};

// Runs a program to its end (at most `timeout_s`, then it is killed and the test fails).
CommandResult RunProgram(const std::vector<std::string>& argv, double timeout_s = 120,
                         const std::vector<std::string>& environment = {});

// A program that goes on in the background; killed with the object.
class BackgroundProgram {
 public:
  explicit BackgroundProgram(const std::vector<std::string>& argv, const std::string& log_path);
  ~BackgroundProgram();
  void Signal(int signal) const;
  // Exit code, or none if it still runs after `timeout_s`.
  std::optional<int> Wait(double timeout_s);
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

class TestServer {
 public:
  // Starts solsticed with its own data folder and `flags`, and waits until it answers.
  explicit TestServer(std::vector<std::string> flags = {});
  ~TestServer();

  // The command line against this server: `solstice --server ... ARGS`.
  CommandResult Cli(std::vector<std::string> arguments, double timeout_s = 120) const;
  // With --json; fails the test if stdout is no JSON object.
  core::Json CliJson(std::vector<std::string> arguments, int* exit_code = nullptr, double timeout_s = 120) const;

  void Kill();      // SIGKILL
  int Terminate();  // SIGTERM, waits, exit code
  void Start();     // again, on the same data folder
  pid_t pid() const { return server_->pid(); }
  const std::string& address() const { return address_; }
  const std::string& data_dir() const { return data_dir_; }
  std::string Log() const;

  // Pids (in our namespace) of this server's workers whose command line holds `role` ("compile", "judge", "run").
  std::vector<pid_t> Workers(const std::string& role) const;

 private:
  TempFolder folder_;
  std::string address_, data_dir_;
  std::vector<std::string> flags_;
  std::optional<BackgroundProgram> server_;
};

std::string SourcePath(const std::string& relative);  // in the source tree
std::string ProgramPath(const std::string& name);     // in build/<preset>/bin

}  // namespace solstice::test
