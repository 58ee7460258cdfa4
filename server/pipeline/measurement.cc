#include "server/pipeline/measurement.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/strings.h"
#include "runtime/timing/statistics.h"
#include "runtime/timing/timing.h"
#include "server/pipeline/pipeline.h"

namespace solstice::pipeline {
namespace {

double SumUs(const std::vector<int64_t>& nanoseconds) {
  return std::accumulate(nanoseconds.begin(), nanoseconds.end(), 0.0) * 1e-3;
}

}  // namespace

std::string ProtocolName(v1::Timer timer) {
  switch (timer) {
    case v1::TIMER_EVENTS:
      return std::string(kProtocol) + "-events";
    case v1::TIMER_NONE:
      return std::string(kProtocol) + "-untimed";
    default:
      return kProtocol;
  }
}

double OverheadUs(const BatchTimes& stand_ins) {
  if (stand_ins.iterations() == 0) return 0;
  return (stand_ins.wall_us - SumUs(stand_ins.decoy_ns) - SumUs(stand_ins.latency_ns)) / stand_ins.iterations();
}

ClockReading ReadClock(const BatchTimes& batch, double overhead_us) {
  ClockReading reading;
  if (batch.empty()) return reading;
  reading.reported_ns = timing::Median(batch.latency_ns);
  reading.decoys = static_cast<int>(batch.decoy_ns.size());
  const double reported_us = static_cast<double>(reading.reported_ns) * 1e-3, decoys_us = SumUs(batch.decoy_ns);
  const double slots_us = static_cast<double>(batch.latency_ns.size()) * reported_us;
  reading.excess_us = (batch.wall_us - decoys_us - slots_us) / batch.iterations() - overhead_us;
  reading.decoy_excess_us = decoys_us - reading.decoys * reported_us;
  return reading;
}

std::string ClockFinding(const ClockReading& reading) {
  const double reported_us = static_cast<double>(reading.reported_ns) * 1e-3;
  if (double allowed_us = std::max(0.05 * reported_us, 0.5); reading.excess_us > allowed_us) {
    return base::StrCat("by the judge's clock an iteration took ", reading.excess_us, " us longer than the latency of ",
                        reported_us, " us that the device reports; at most ", allowed_us, " us are allowed");
  }
  if (double allowed_us = reading.decoys * std::max(0.5 * reported_us, 10.0); reading.decoy_excess_us > allowed_us) {
    return base::StrCat("the iterations before those that count took ", reading.decoy_excess_us,
                        " us longer in all; at most ", allowed_us, " us are allowed");
  }
  return {};
}

void Measurement::Add(const BatchTimes& batch, double overhead_us) {
  if (batch.empty()) return;
  const ClockReading reading = ReadClock(batch, overhead_us);
  if (std::string finding = ClockFinding(reading); !finding.empty()) {
    ++findings_;
    finding_ = std::move(finding);
    return;
  }
  latency_ns_.insert(latency_ns_.end(), batch.latency_ns.begin(), batch.latency_ns.end());
  excess_ns_.push_back(static_cast<int64_t>(reading.excess_us * 1e3));
}

int64_t Measurement::excess_ns() const { return timing::Median(excess_ns_); }

v1::LatencyStatistics Measurement::statistics() const {
  v1::LatencyStatistics statistics = timing::Summarise(latency_ns_);
  statistics.set_stopped(stopped_);
  return statistics;
}

bool Measurement::Done(bool out_of_time) {
  if (TooManyFindings()) return true;
  if (const char* enough = timing::Enough(latency_ns_); enough != nullptr) {
    stopped_ = enough;
    return true;
  }
  return out_of_time && (samples() > 0 || findings_ >= kFewFindings);
}

}  // namespace solstice::pipeline
