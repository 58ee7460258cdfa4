// A connection to a Solstice server. Thread-safe; StopWatching() exists for that.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "solstice/v1/service.pb.h"

namespace grpc {
class Channel;
class ClientContext;
}  // namespace grpc

namespace solstice::client {

struct ConnectOptions {
  std::string server;    // "127.0.0.1:7411", "unix:/path"; empty: $SOLSTICE_SERVER, else a private server
  std::string data_dir;  // of the private server; empty: $SOLSTICE_DATA_DIR, else the user's data folder
  std::string tenant;    // sent as metadata solstice-tenant; empty: not sent
};

class Client {
 public:
  // UNAVAILABLE when nobody answers within 10 s. Starts a private server where none is named.
  static StatusOr<std::unique_ptr<Client>> Connect(const ConnectOptions& options);
  ~Client();

  // Each has a deadline of its own (30 s; Compile 120 s) and returns the server's error with its mend.
  StatusOr<v1::SubmitResponse> Submit(const v1::SubmitRequest& request);
  StatusOr<v1::Evaluation> Get(const std::string& id);
  StatusOr<v1::ListResponse> List(const v1::ListRequest& request);
  StatusOr<v1::Evaluation> Cancel(const std::string& id);
  StatusOr<v1::CompileResponse> Compile(const v1::CompileRequest& request);
  StatusOr<v1::ListDefinitionsResponse> ListDefinitions();
  StatusOr<v1::DefinitionBundle> GetDefinition(const std::string& name);
  // `probe`: the server looks at its host again, if it has nothing else to do.
  StatusOr<v1::ServerInfo> GetInfo(bool probe = false);

  // Calls `on_event` for every event from the first, until the final one, whose evaluation it returns. A broken stream
  // is taken up again where it stopped, for up to 60 s. CANCELLED after StopWatching().
  StatusOr<v1::Evaluation> Watch(const std::string& id, const std::function<void(const v1::Event&)>& on_event);
  // Any thread.
  void StopWatching();

  // Where it is connected, for messages.
  const std::string& address() const { return address_; }

 private:
  Client() = default;
  struct Stubs;
  StatusOr<v1::Evaluation> WatchOnce(const std::string& id, int64_t* next_seq,
                                     const std::function<void(const v1::Event&)>& on_event);
  void Prepare(grpc::ClientContext* context, int deadline_s) const;

  std::string address_, tenant_;
  std::unique_ptr<Stubs> stubs_;
  base::Mutex mutex_;
  grpc::ClientContext* watching_ SOLSTICE_GUARDED_BY(mutex_) = nullptr;
  std::atomic<bool> stopped_{false};
};

// The address of the private server of `data_dir` ("": the default folder), started if need be; one of another build is
// asked to hand over first. UNAVAILABLE, with the end of its log, when none answers within 10 s (30 s for a hand-over).
StatusOr<std::string> EnsurePrivateServer(const std::string& data_dir);

}  // namespace solstice::client
