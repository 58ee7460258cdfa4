// What the timed batches of one workload say: the latency, and whether the judge's own clock agrees. Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "solstice/v1/evaluation.pb.h"

namespace solstice::pipeline {

// Iterations that a latency is the median of, at least.
inline constexpr int kLeastSamples = 50;

// "solstice-v1", "solstice-v1-events", "solstice-v1-untimed": the protocol by which latencies are taken with `timer`.
std::string ProtocolName(v1::Timer timer);

// Begins the reason of a REWARD_HACK that the judge's clock found. A disturbed machine may find one too.
inline constexpr char kJudgeClock[] = "judge_clock: ";

class Measurement {
 public:
  // `wall_us`: the batch by the server's clock, from opening the gate to the answer; latencies as the device reports
  // them.
  void AddBatch(double wall_us, const std::vector<int64_t>& decoy_ns, const std::vector<int64_t>& latency_ns);

  int samples() const { return static_cast<int>(latency_ns_.size()); }
  int64_t median_ns() const;

  // What an iteration takes beside its latency, of batches of an empty kernel: the calibration.
  double OverheadUs() const;
  // By how much the judge's clock exceeds the reported latency, microseconds an iteration, with that overhead taken
  // off: the median over batches. Decoys count with what the device reports for them, which DecoyExcessUs bounds.
  double ExcessUs(double overhead_us, int64_t reported_ns) const;
  // How much longer the decoys of a batch took together than the reported latency: the median over batches.
  double DecoyExcessUs(int64_t reported_ns) const;
  int decoys() const { return batches_.empty() ? 0 : batches_[0].decoys; }

 private:
  struct Batch {
    double wall_us = 0;
    int decoys = 0, slots = 0;
    double decoys_us = 0, slots_us = 0;  // in all
    int iterations() const { return decoys + slots; }
  };
  std::vector<Batch> batches_;
  std::vector<int64_t> latency_ns_;
};

// What the two say beyond what is allowed, in words; empty: nothing. An iteration may exceed the latency by max(5 %,
// 0.5 us), each decoy by half of it and 10 us at least: 12 us in all were seen on an H200, where work for all slots of
// a batch takes more than that.
std::string ClockFinding(double excess_us, double decoys_us, int decoys, int64_t reported_ns);

}  // namespace solstice::pipeline
