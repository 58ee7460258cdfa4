// solsticed: the service. Flags override the configuration file. Exit codes: 0 stopped, 2 usage or configuration,
// 3 could not start, 4 no such device.
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/rpc/build_id.h"
#include "server/service/config.h"
#include "server/service/log.h"
#include "server/service/server.h"

namespace solstice {
namespace {

enum ExitCode { kStopped = 0, kUsage = 2, kNotStarted = 3, kNoDevice = 4 };

struct Flags {
  std::string config_path, data_dir, reference_kernels, log_level = "info";
  std::vector<std::string> listen, definition_roots, devices;
  bool accept_inline_definitions = false, trust_tenant_metadata = false, accept_loss = false, private_server = false;
  int queue_capacity = 0, compile_workers = 0, max_attempts = 0, ready_fd = -1, debug_pointer_shift = 0;
  double default_timeout_s = 0, max_timeout_s = 0, compile_timeout_s = 0, instruction_budget = 0;
  double private_linger_s = 60;
};

void AddFlags(CLI::App& app, Flags& flags) {
  app.add_option("--config", flags.config_path, "ServerConfig in protobuf text format; flags override it");
  app.add_option("--listen", flags.listen, "Address, repeated: host:port or unix:/path (127.0.0.1:7411)")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--data-dir", flags.data_dir, "Folder of everything stored ($SOLSTICE_DATA_DIR)");
  app.add_option("--definition-root", flags.definition_roots, "Folder of definitions, repeated")
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--reference-kernels", flags.reference_kernels, "Folder of the families' reference kernels");
  app.add_option("--device", flags.devices,
                 "emulator, cuda (every GPU) or cuda:N, repeated (default: every GPU, else the emulator)")
      ->take_all()
      ->allow_extra_args(false);
  app.add_flag("--accept-inline-definitions", flags.accept_inline_definitions,
               "Judge definitions that come with a submission");
  app.add_flag("--trust-tenant-metadata", flags.trust_tenant_metadata,
               "Take the tenant from metadata solstice-tenant: anyone may then claim any name");
  app.add_option("--queue-capacity", flags.queue_capacity, "Evaluations that may wait");
  app.add_option("--compile-workers", flags.compile_workers, "Compiler processes");
  app.add_option("--max-attempts", flags.max_attempts, "Attempts at an evaluation when ours fail");
  app.add_option("--default-timeout-s", flags.default_timeout_s, "Limit of one workload where none is asked for");
  app.add_option("--max-timeout-s", flags.max_timeout_s, "Largest limit that may be asked for");
  app.add_option("--compile-timeout-s", flags.compile_timeout_s, "Limit of one compilation");
  app.add_option("--instruction-budget", flags.instruction_budget,
                 "Thread instructions of a workload on the emulator, above which it is skipped");
  app.add_option("--debug-pointer-shift-bytes", flags.debug_pointer_shift,
                 "Tests only: misalign every tensor by so many bytes")
      ->check(CLI::Range(0, 255));
  app.add_flag("--accept-loss", flags.accept_loss, "Open a store that lost acknowledged data");
  app.add_flag("--private", flags.private_server,
               "For one user's commands: serve the data folder's own socket and end when idle");
  app.add_option("--private-linger-s", flags.private_linger_s, "Idle time before a private server ends")
      ->capture_default_str();
  app.add_option("--ready-fd", flags.ready_fd, "Write a line to this descriptor once calls are answered");
  app.add_option("--log-level", flags.log_level, "info, warning, error or off")->capture_default_str();
}

StatusOr<v1::ServerConfig> MakeConfig(const Flags& flags, const std::string& program_directory) {
  v1::ServerConfig config;
  if (!flags.config_path.empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(config, service::ReadConfig(flags.config_path));
  }
  auto replace = [](const std::vector<std::string>& from, google::protobuf::RepeatedPtrField<std::string>* to) {
    if (!from.empty()) to->Assign(from.begin(), from.end());
  };
  replace(flags.listen, config.mutable_listen());
  replace(flags.definition_roots, config.mutable_definition_roots());
  replace(flags.devices, config.mutable_devices());
  if (!flags.data_dir.empty()) config.set_data_dir(flags.data_dir);
  if (!flags.reference_kernels.empty()) config.set_reference_kernels(flags.reference_kernels);
  if (flags.accept_inline_definitions) config.set_accept_inline_definitions(true);
  if (flags.trust_tenant_metadata) config.set_trust_tenant_metadata(true);
  if (flags.queue_capacity != 0) config.set_queue_capacity(flags.queue_capacity);
  if (flags.compile_workers != 0) config.set_compile_workers(flags.compile_workers);
  if (flags.max_attempts != 0) config.set_max_attempts(flags.max_attempts);
  if (flags.default_timeout_s != 0) config.set_default_timeout_s(flags.default_timeout_s);
  if (flags.max_timeout_s != 0) config.set_max_timeout_s(flags.max_timeout_s);
  if (flags.compile_timeout_s != 0) config.set_compile_timeout_s(flags.compile_timeout_s);
  if (flags.instruction_budget != 0) config.set_instruction_budget(flags.instruction_budget);
  if (flags.debug_pointer_shift != 0) config.set_debug_pointer_shift_bytes(flags.debug_pointer_shift);
  if (flags.private_server && !flags.listen.empty()) {
    return base::InvalidArgument("--private and --listen exclude each other", "leave out one of them");
  }
  // A year in milliseconds still fits everywhere.
  if (!(flags.private_linger_s >= 0 && flags.private_linger_s <= 366 * 86400.0)) {
    return base::InvalidArgument("--private-linger-s is out of range", "use 0 to a year of seconds");
  }
  SOLSTICE_RETURN_IF_ERROR(service::CompleteConfig(program_directory, &config));
  return config;
}

int Fail(const Status& status, int exit_code) {
  std::string text = base::StrCat("solsticed: ", base::MessageOf(status));
  if (!base::MendOf(status).empty()) text = base::StrCat(text, "\n  ", base::MendOf(status));
  std::fprintf(stderr, "%s\n", text.c_str());
  return exit_code;
}

int ExitCodeOf(const Status& status) {
  if (status.code() == absl::StatusCode::kInvalidArgument) return kUsage;
  return status.code() == absl::StatusCode::kNotFound ? kNoDevice : kNotStarted;
}

// Signals reach the server through a pipe: a blocked mask would be inherited by workers.
int signal_pipe[2] = {-1, -1};

void OnSignal(int signal) {
  int saved = errno;
  char byte = static_cast<char>(signal);
  ssize_t written = ::write(signal_pipe[1], &byte, 1);
  (void)written;
  errno = saved;
}

void Ignore(int) {}

Status CatchSignals() {
  if (::pipe2(signal_pipe, O_CLOEXEC) != 0) return base::FromErrno(errno, "pipe");
  struct sigaction action = {};
  action.sa_flags = SA_RESTART;
  action.sa_handler = OnSignal;
  for (int signal : {SIGTERM, SIGINT, SIGUSR1}) ::sigaction(signal, &action, nullptr);
  // A handler, not SIG_IGN, which workers would inherit.
  action.sa_handler = Ignore;
  ::sigaction(SIGPIPE, &action, nullptr);
  return absl::OkStatus();
}

void ServeSignals(service::Server* server) {
  int stops = 0;
  char signal = 0;
  while (true) {
    ssize_t n = ::read(signal_pipe[0], &signal, 1);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0 || signal == 0) return;
    if (signal == SIGUSR1) {
      server->RequestHandover();
    } else if (++stops > 1) {
      // Asked twice: the store is durable without a farewell.
      ::_exit(128 + signal);
    } else {
      server->RequestShutdown(signal == SIGTERM ? "SIGTERM" : "SIGINT");
    }
  }
}

void TellReady(int fd, const service::Server& server) {
  if (fd < 0) return;
  std::string line = base::StrCat("ready ", server.addresses().front(), "\n");
  ssize_t written = ::write(fd, line.data(), line.size());
  (void)written;  // nobody listens any more
  ::close(fd);
}

int Main(int argc, char** argv) {
  CLI::App app{"solsticed judges CUDA kernels: it compiles, runs and checks what clients submit."};
  app.set_version_flag("--version", "solsticed " SOLSTICE_VERSION);
  Flags flags;
  AddFlags(app, flags);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kStopped : kUsage;
  }
  if (!service::SetLogLevel(flags.log_level)) {
    return Fail(base::InvalidArgument("--log-level: unknown level", "use info, warning, error or off"), kUsage);
  }
  StatusOr<std::string> directory = base::ProgramDirectory();
  if (!directory.ok()) return Fail(directory.status(), kNotStarted);
  StatusOr<v1::ServerConfig> config = MakeConfig(flags, *directory);
  if (!config.ok()) return Fail(config.status(), kUsage);
  StatusOr<std::string> build_id = rpc::InstallationBuildId(*directory);
  if (!build_id.ok()) return Fail(build_id.status(), kNotStarted);
  Status caught = CatchSignals();
  if (!caught.ok()) return Fail(caught, kNotStarted);

  service::ServerOptions options;
  options.config = *std::move(config);
  options.version = SOLSTICE_VERSION;
  options.build_id = *build_id;
  options.accept_loss = flags.accept_loss;
  options.private_server = flags.private_server;
  options.linger = std::chrono::milliseconds(std::llround(flags.private_linger_s * 1000));
  StatusOr<std::unique_ptr<service::Server>> server = service::Server::Start(std::move(options));
  if (!server.ok()) return Fail(server.status(), ExitCodeOf(server.status()));
  TellReady(flags.ready_fd, **server);
  std::thread signals(ServeSignals, server->get());
  std::string reason = (*server)->Wait();
  service::LogInfo(base::StrCat("stopping: ", reason));
  (*server)->Shutdown();
  OnSignal(0);  // ends the signal thread
  signals.join();
  service::LogInfo("stopped");
  return kStopped;
}

}  // namespace
}  // namespace solstice

int main(int argc, char** argv) { return solstice::Main(argc, argv); }
