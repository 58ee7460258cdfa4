#include "runtime/timing/statistics.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/timing/timing.h"

namespace solstice::timing {
namespace {

constexpr double kTail = 0.025;
constexpr double kNarrow = 0.005;
// Of independent samples, twice as many make the interval narrower by a factor of 0.71.
constexpr double kNoNarrower = 0.9;

int64_t At(const std::vector<int64_t>& sorted, double share) {
  return sorted[static_cast<size_t>(share * static_cast<double>(sorted.size() - 1))];
}

int64_t Width(const v1::LatencyStatistics& statistics) { return statistics.high_ns() - statistics.low_ns(); }

}  // namespace

Ranks MedianRanks(size_t n) {
  if (n == 0) return {};
  // The largest k with P(B(n, 1/2) < k) <= 2.5 %: then the k-th smallest and the k-th largest sample hold the median.
  const double log_all = static_cast<double>(n) * std::log(2.0);
  double below = 0, log_choose = 0;  // of n over k
  size_t k = 0;
  for (; k < n; ++k) {
    below += std::exp(log_choose - log_all);
    if (below > kTail) break;
    log_choose += std::log(static_cast<double>(n - k)) - std::log(static_cast<double>(k + 1));
  }
  const size_t low = k == 0 ? 0 : k - 1;
  return {low, n - 1 - low};
}

v1::LatencyStatistics Summarise(std::vector<int64_t> samples) {
  v1::LatencyStatistics statistics;
  if (samples.empty()) return statistics;
  std::sort(samples.begin(), samples.end());
  statistics.set_samples(static_cast<int32_t>(samples.size()));
  statistics.set_minimum_ns(samples.front());
  statistics.set_p5_ns(At(samples, 0.05));
  statistics.set_median_ns(At(samples, 0.5));
  statistics.set_p95_ns(At(samples, 0.95));
  statistics.set_mean_ns(std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size()));
  const Ranks ranks = MedianRanks(samples.size());
  statistics.set_low_ns(samples[ranks.low]);
  statistics.set_high_ns(samples[ranks.high]);
  for (int64_t& sample : samples) sample = std::abs(sample - statistics.median_ns());
  statistics.set_deviation_ns(Median(std::move(samples)));
  return statistics;
}

int64_t TickNs(const std::vector<int64_t>& samples) {
  int64_t tick = 0;
  for (const int64_t sample : samples) tick = std::gcd(tick, sample - samples.front());
  return std::max<int64_t>(tick, 1);
}

const char* Enough(const std::vector<int64_t>& samples) {
  if (samples.size() < size_t{kLeastSamples}) return nullptr;
  const v1::LatencyStatistics all = Summarise(samples);
  const double narrow = std::max(kNarrow * static_cast<double>(all.median_ns()), static_cast<double>(TickNs(samples)));
  if (static_cast<double>(Width(all)) <= narrow) return "interval";
  if (samples.size() < size_t{4 * kLeastSamples}) return nullptr;
  const auto middle = samples.begin() + static_cast<std::ptrdiff_t>(samples.size() / 2);
  const v1::LatencyStatistics first = Summarise({samples.begin(), middle});
  return static_cast<double>(Width(all)) >= kNoNarrower * static_cast<double>(Width(first)) ? "plateau" : nullptr;
}

}  // namespace solstice::timing
