// What the timed batches of one workload say: the latency, and whether the judge's own clock agrees. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "solstice/v1/evaluation.pb.h"

namespace solstice::pipeline {

// "solstice-v1", "solstice-v1-events", "solstice-v1-untimed": the protocol by which latencies are taken with `timer`.
std::string ProtocolName(v1::Timer timer);

// Begins the reason of a REWARD_HACK that the judge's clock found.
inline constexpr char kJudgeClock[] = "judge_clock: ";

// One batch: as the server's clock saw it, and as the device reports it.
struct BatchTimes {
  double wall_us = 0;  // from opening the gate to the end of the last iteration
  std::vector<int64_t> decoy_ns, latency_ns;

  bool empty() const { return latency_ns.empty(); }
  int iterations() const { return static_cast<int>(decoy_ns.size() + latency_ns.size()); }
};

// What an iteration takes beside its latency, microseconds: of a batch of stand-ins, the calibration.
double OverheadUs(const BatchTimes& stand_ins);

// How much more a batch took than its records say.
struct ClockReading {
  int64_t reported_ns = 0;  // the median of the batch
  double excess_us = 0;     // an iteration, by the server's clock; decoys count with what the device reports for them
  double decoy_excess_us = 0;  // all decoys, by the device, over the median
  int decoys = 0;
};
ClockReading ReadClock(const BatchTimes& batch, double overhead_us);

// What is not allowed in that, in words; empty: nothing. An iteration may exceed the latency by max(5 %, 0.5 us), each
// decoy by half of it and 10 us at least: 12 us in all were seen on an H200, where work for all slots of a batch takes
// more than that.
std::string ClockFinding(const ClockReading& reading);

// The batches of a workload. Those with a finding count for nothing; too many of them, and the workload has one.
class Measurement {
 public:
  // Findings that end it, unless more batches have none. A disturbed machine makes one now and then; work done
  // elsewhere makes one every time.
  static constexpr int kMostFindings = 6;
  // Before fewer say anything, where the budget leaves no time for more.
  static constexpr int kFewFindings = 3;

  void Add(const BatchTimes& batch, double overhead_us);

  int samples() const { return static_cast<int>(latency_ns_.size()); }
  int findings() const { return findings_; }
  const std::vector<int64_t>& latency_ns() const { return latency_ns_; }
  // Of the batches that count.
  v1::LatencyStatistics statistics() const;
  // Of the batches that count: the median of what an iteration exceeds its latency by.
  int64_t excess_ns() const;
  // The last finding.
  const std::string& finding() const { return finding_; }
  // `out_of_time`: the budget is used up.
  bool Done(bool out_of_time);
  // What Done() ends with: the workload is not to be believed.
  bool Refuted() const { return TooManyFindings() || (latency_ns_.empty() && findings_ > 0); }

 private:
  bool TooManyFindings() const {
    return findings_ >= kMostFindings && findings_ >= static_cast<int>(excess_ns_.size());
  }

  std::vector<int64_t> latency_ns_, excess_ns_;
  int findings_ = 0;
  std::string finding_;
  const char* stopped_ = "budget";
};

}  // namespace solstice::pipeline
