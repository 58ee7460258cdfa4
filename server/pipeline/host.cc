#include "server/pipeline/host.h"

#include <spdlog/spdlog.h>

#include "server/pipeline/devices.h"

namespace solstice::pipeline {
namespace {

constexpr int64_t kIntervalNs = 2000000000;

}  // namespace

void Host::Look() {
  {
    base::MutexLock lock(mutex_);
    ++looking_;
  }
  LookNow();
}

void Host::LookNow() {
  StatusOr<v1::HostProbe> probed = probe_();
  if (!probed.ok()) spdlog::warn("the host cannot be looked at: {}", base::MessageOf(probed.status()));
  base::MutexLock lock(mutex_);
  host_ = probed.ok() ? *std::move(probed) : FailedProbe(probed.status());
  looked_unix_ns_ = clock_->NowUnixNs();
  looked_steady_ns_ = clock_->NowSteadyNs();
  --looking_;
}

void Host::LookAgain() {
  {
    base::MutexLock lock(mutex_);
    if (looking_ > 0 || clock_->NowSteadyNs() - looked_steady_ns_ < kIntervalNs) return;
    ++looking_;
  }
  LookNow();
}

v1::HostProbe Host::probe() const {
  base::MutexLock lock(mutex_);
  return host_;
}

void Host::Describe(v1::ServerInfo* info) const {
  base::MutexLock lock(mutex_);
  *info->mutable_host() = host_;
  info->mutable_probed()->set_seconds(looked_unix_ns_ / 1000000000);
  info->mutable_probed()->set_nanos(static_cast<int32_t>(looked_unix_ns_ % 1000000000));
}

}  // namespace solstice::pipeline
