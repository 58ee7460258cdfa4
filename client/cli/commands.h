// The commands of `solstice`. Each returns an exit code: 0 PASSED (or done), 1 another verdict, 2 usage or request
// error, 3 the service failed, 4 no suitable device, 130 interrupted.
#pragma once

#include <string>
#include <vector>

#include "client/lib/client.h"
#include "solstice/v1/service.pb.h"

namespace solstice::cli {

inline constexpr int kExitPassed = 0, kExitVerdict = 1, kExitUsage = 2, kExitService = 3, kExitNoDevice = 4,
                     kExitInterrupted = 130;

struct GlobalOptions {
  client::ConnectOptions connect;
  bool json = false;
  bool quiet = false;
};

struct RunOptions {
  std::string file, definition, device, request_id;
  std::vector<std::string> workloads;
  std::string timer;  // "activity", "events", "none"; empty: the server chooses
  bool quick = false, allow_device_state = false, no_cache = false, strict = false, keep_samples = false;
  double timeout_s = 0;
};

struct CompileOptions {
  std::string file, definition, arch, emit, output;
};

int RunCommand(const GlobalOptions& global, const RunOptions& options);
// As RunCommand, on the emulator, and prints what the sanitizer found.
int SanitizeCommand(const GlobalOptions& global, RunOptions options);
int SubmitCommand(const GlobalOptions& global, const RunOptions& options);
int WatchCommand(const GlobalOptions& global, const std::string& id);
int ShowCommand(const GlobalOptions& global, const std::string& id);
int ListCommand(const GlobalOptions& global, const v1::ListRequest& request);
int CancelCommand(const GlobalOptions& global, const std::string& id);
int CompileCommand(const GlobalOptions& global, const CompileOptions& options);
int DefinitionsCommand(const GlobalOptions& global, const std::string& name);
int DoctorCommand(const GlobalOptions& global);

// Prints it (stderr, or as {"error": ...} on stdout with --json) and returns the exit code.
int Fail(const GlobalOptions& global, const Status& status);
int ExitCodeOf(const v1::Evaluation& evaluation);

}  // namespace solstice::cli
