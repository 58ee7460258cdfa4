// What a list of latencies says: order statistics, the interval of the median, and whether more of them would say more.
// Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "solstice/v1/evaluation.pb.h"

namespace solstice::timing {

// Ranks (from 0) of the sorted samples between which the median of the distribution lies with 95 % confidence, whatever
// the distribution: by the binomial of n and 1/2. Below 6 samples there are none so sure, and these are the ends.
struct Ranks {
  size_t low = 0, high = 0;
};
Ranks MedianRanks(size_t n);

// Percentiles are the lower of two neighbours. `stopped` stays empty. Zeros for no samples.
v1::LatencyStatistics Summarise(std::vector<int64_t> samples_ns);

// The clock's tick, as the samples show it: the greatest common divisor of their differences, 1 ns at least.
int64_t TickNs(const std::vector<int64_t>& samples_ns);

inline constexpr int kLeastSamples = 50;

// When samples are enough, in the order in which they were taken:
//   "interval": the median's interval is no wider than 0.5 % of it or than one tick;
//   "plateau": four times kLeastSamples, of which the later half made it no narrower, so that the device drifts rather
//              than scatters.
// Null: go on.
const char* Enough(const std::vector<int64_t>& samples_ns);

}  // namespace solstice::timing
