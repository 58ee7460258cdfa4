// A whole Solstice server in one object: store, evaluations, catalogue, pipeline, gRPC. solsticed and tests use the
// same.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "server/pipeline/pipeline.h"
#include "solstice/v1/config.pb.h"

namespace solstice::service {

inline constexpr int kMaxMessageBytes = 16 << 20;

struct ServerOptions {
  v1::ServerConfig config;  // completed (CompleteConfig)
  std::string version = "0.0.0";
  std::string build_id;
  bool accept_loss = false;  // opens a store that lost acknowledged data
  // For one user's commands: listens on the folder's own socket only (rpc/private_server.h), ends when idle for
  // `linger`, when its lock file goes, and after another build asked for the folder.
  bool private_server = false;
  std::chrono::milliseconds linger{60000};
  // How long calls and evaluations may still run after another build asked.
  std::chrono::milliseconds handover_timeout{60000};
  // How long calls may still run once the server stops.
  std::chrono::milliseconds stop_grace{5000};
  const base::Clock* clock = &base::Clock::System();
  // Tests of error paths replace it.
  std::function<StatusOr<std::unique_ptr<pipeline::Pipeline>>(const pipeline::Options&, const catalog::Catalog*,
                                                              state::Evaluations*, store::Store*, const base::Clock*)>
      start_pipeline = pipeline::Pipeline::Start;
};

// Thread-safe.
class Server {
 public:
  // Returns when calls are answered. INVALID_ARGUMENT: the configuration; NOT_FOUND: a device named there is missing;
  // FAILED_PRECONDITION: address or data folder in use, or what the pipeline needs is missing; DATA_LOSS as
  // OpenRocksDb.
  static StatusOr<std::unique_ptr<Server>> Start(ServerOptions options);
  // Shuts down.
  virtual ~Server() = default;

  // Where it listens, port 0 resolved: "127.0.0.1:43211", "unix:/path".
  virtual const std::vector<std::string>& addresses() const = 0;
  // Until RequestShutdown, or until a private server's time has come. Returns the reason.
  virtual std::string Wait() = 0;
  // Any thread; the first reason stands.
  virtual void RequestShutdown(const std::string& reason) = 0;
  // Accepts no new work, and ends once nothing runs any more (or after handover_timeout).
  virtual void RequestHandover() = 0;
  // Ends streams and calls, stops workers (evaluations under way go on after the next start), closes the store.
  // Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace solstice::service
