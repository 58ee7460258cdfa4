// What a server knows of the host that it runs on. Thread-safe.
#pragma once

#include <functional>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "solstice/v1/service.pb.h"

namespace solstice::pipeline {

class Host {
 public:
  using Probe = std::function<StatusOr<v1::HostProbe>()>;  // worker::ProbeHost; its failure is kept as the answer

  Host(Probe probe, const base::Clock* clock) : probe_(std::move(probe)), clock_(clock) {}

  void Look();
  // The same, unless somebody looks just now or did so less than two seconds ago: anyone may ask, any number of times.
  void LookAgain();

  v1::HostProbe probe() const;
  // Sets `host` and `probed`.
  void Describe(v1::ServerInfo* info) const;

 private:
  // After looking_ was raised.
  void LookNow();

  const Probe probe_;
  const base::Clock* const clock_;
  mutable base::Mutex mutex_;
  v1::HostProbe host_ SOLSTICE_GUARDED_BY(mutex_);
  int64_t looked_unix_ns_ SOLSTICE_GUARDED_BY(mutex_) = 0;
  int64_t looked_steady_ns_ SOLSTICE_GUARDED_BY(mutex_) = 0;
  int looking_ SOLSTICE_GUARDED_BY(mutex_) = 0;
};

}  // namespace solstice::pipeline
