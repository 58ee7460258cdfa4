// Compiler zygotes that hold a precompiled header each, made in the background. At most two; the least recently used
// goes, and what nobody used for ten minutes. Thread-safe.
#pragma once

#include <chrono>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "runtime/sandbox/spawner.h"
#include "runtime/worker/worker.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::pipeline {

class HeaderCompilers {
 public:
  static constexpr size_t kMost = 2;

  // Their jails take the slots `first_slot` and following.
  HeaderCompilers(sandbox::Spawner* spawner, worker::Installation installation, int first_slot);
  ~HeaderCompilers();
  HeaderCompilers(const HeaderCompilers&) = delete;
  HeaderCompilers& operator=(const HeaderCompilers&) = delete;

  // An idle zygote that has precompiled `headers` (compile::SharedHeaders), the caller's until Release; nullptr if
  // there is none.
  worker::Client* Acquire(const v1::internal::ProgramSource& headers);
  // `usable`: it answered its last request.
  void Release(worker::Client* client, bool usable);
  // Has one made, unless there is one or its making failed before. Returns at once. A request that comes while another
  // waits takes its place.
  void Request(const v1::internal::ProgramSource& headers);
  // Ends the zygotes that nobody holds and makes no more; holders kill theirs.
  void Shutdown();

 private:
  struct Entry {
    std::string key;
    int slot = 0;
    std::unique_ptr<worker::Client> client;
    bool busy = false;
    std::chrono::steady_clock::time_point used;
  };
  using Entries = std::vector<std::unique_ptr<Entry>>;

  void Work();
  bool Known(const std::string& key) const SOLSTICE_REQUIRES(mutex_);
  // Takes out what is idle and too old, and with `make_room` the oldest idle one of kMost.
  Entries TakeOld(bool make_room) SOLSTICE_REQUIRES(mutex_);
  int FreeSlot() const SOLSTICE_REQUIRES(mutex_);
  void Make(const v1::internal::ProgramSource& headers, int slot);

  sandbox::Spawner* const spawner_;
  const worker::Installation installation_;
  const int first_slot_;

  base::Mutex mutex_;
  base::CondVar changed_;
  Entries entries_ SOLSTICE_GUARDED_BY(mutex_);
  std::optional<v1::internal::ProgramSource> wanted_ SOLSTICE_GUARDED_BY(mutex_);
  std::string making_key_ SOLSTICE_GUARDED_BY(mutex_);
  worker::Client* making_ SOLSTICE_GUARDED_BY(mutex_) = nullptr;
  std::deque<std::string> failed_ SOLSTICE_GUARDED_BY(mutex_);
  bool shut_down_ SOLSTICE_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace solstice::pipeline
