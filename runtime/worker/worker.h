// The three workers and how a server starts them. `solstice-worker compile|judge|run` are the programs; each finds its
// channel at descriptor 3, sends Hello, then answers WorkerRequests in order, echoing sequence and nonce. A fourth,
// `solstice-worker probe`, sends what it found on the host in Hello's place and ends.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/sandbox/channel.h"
#include "runtime/sandbox/spawner.h"
#include "runtime/worker/batch_clock.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::worker {

inline constexpr int kProtocolVersion = 2;

// LoadProgram.program of Solstice's own kernels (runtime/bulk).
inline constexpr int kTrustedKernels = -1;

// Entry points of the worker program; they return its exit code.
int CompileMain(int argc, char** argv);
int JudgeMain(int argc, char** argv);
int RunnerMain(int argc, char** argv);
int ProbeMain(int argc, char** argv);

// Server side: a worker process and its conversation. Not thread-safe, Kill() apart.
class Client {
 public:
  // Waits for Hello.
  static StatusOr<std::unique_ptr<Client>> Start(sandbox::Spawner& spawner, const sandbox::JailSpec& spec,
                                                 std::chrono::nanoseconds timeout);
  ~Client();

  const v1::internal::Hello& hello() const { return hello_; }
  // Sends and waits. Checks version, sequence and nonce. UNAVAILABLE: the worker died (message says how);
  // DEADLINE_EXCEEDED: it did not answer: kill it; a WorkerError comes back as its status. An answer that does not
  // belong to the request kills the worker (UNAVAILABLE). After any of these but a WorkerError the client is of no more
  // use. `reply_descriptors` may be nullptr where none are expected.
  StatusOr<v1::internal::WorkerReply> Call(v1::internal::WorkerRequest request, const std::vector<int>& descriptors,
                                           std::vector<base::UniqueFd>* reply_descriptors,
                                           std::chrono::nanoseconds timeout);
  // The same for Go: the page of `clock` travels with it, and `batch_us` is what the batch took by it.
  StatusOr<v1::internal::WorkerReply> CallGo(v1::internal::WorkerRequest request, BatchClock& clock,
                                             std::chrono::nanoseconds timeout, double* batch_us);
  // Any thread.
  void Kill();
  pid_t pid() const;
  bool alive();

 private:
  Client() = default;
  // Call() with something to do between sending and receiving.
  StatusOr<v1::internal::WorkerReply> Converse(v1::internal::WorkerRequest request, const std::vector<int>& descriptors,
                                               std::vector<base::UniqueFd>* reply_descriptors,
                                               std::chrono::nanoseconds timeout, const std::function<void()>& meanwhile);

  std::unique_ptr<sandbox::Process> process_;
  std::unique_ptr<sandbox::Channel> channel_;
  v1::internal::Hello hello_;
  std::string name_;
  int64_t sequence_ = 0;
  bool broken_ = false;
};

// Jail descriptions for this installation. Pure functions but for looking at files; thread-safe. Compilers and runners
// of the same slot number have different uids.
struct Installation {
  std::string worker_program;  // path of solstice-worker
  std::string header_pack;     // runtime/compile/headers
  std::string toolkit_root;    // as compile::FindToolkit found it
  std::string cupti_library;   // path beside the toolkit; empty: there is none
};
// The worker beside the running program; $SOLSTICE_HEADER_PACK, <program folder>/../share/solstice/headers or
// runtime/compile/headers in a folder above the program; the toolkit as compile::FindToolkit. NOT_FOUND says what is
// missing.
StatusOr<Installation> FindInstallation();
StatusOr<sandbox::JailSpec> CompilerJail(const Installation& installation, int slot);
// One that takes a PrecompileHeaders first: it has a /tmp for the header. Its compiles are ABORTED where they should be
// tried by one of the others.
StatusOr<sandbox::JailSpec> HeaderCompilerJail(const Installation& installation, int slot);

// One device of this host.
struct DeviceId {
  v1::DeviceKind kind = v1::EMULATOR;
  int ordinal = 0;   // among the visible GPUs
  std::string uuid;  // "GPU-..."; how a worker is told which one is its own
};
StatusOr<sandbox::JailSpec> JudgeProcess(const Installation& installation, const DeviceId& device);
// `judge`: what the device's judge said; a GPU's runner gets the same driver, and of /dev only its own nodes.
StatusOr<sandbox::JailSpec> RunnerJail(const Installation& installation, const DeviceId& device,
                                       const v1::internal::Hello& judge, int slot);
sandbox::JailSpec ProbeProcess(const Installation& installation);
// Of this process's environment what decides how the driver is found and which GPUs it shows, for a trusted worker.
std::vector<std::string> DriverEnvironment();

// Looks at this host by a process of its own, which makes no context on any GPU: driver, GPUs, NVML, CUPTI. A host
// without them is an answer; a Status says that the probe itself died or did not answer in time.
StatusOr<v1::HostProbe> ProbeHost(sandbox::Spawner& spawner, const Installation& installation,
                                  std::chrono::nanoseconds timeout);

}  // namespace solstice::worker
