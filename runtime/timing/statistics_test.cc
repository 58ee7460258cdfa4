#include "runtime/timing/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>

namespace solstice::timing {
namespace {

TEST(MedianRanksTest, AreTheTablesOfTheSignTest) {
  // Ranks from 1 of the usual tables: n = 6: 1 and 6; 10: 2 and 9; 20: 6 and 15; 50: 18 and 33; 100: 40 and 61.
  for (const auto& [n, low] :
       {std::pair<size_t, size_t>{6, 1}, {8, 1}, {9, 2}, {10, 2}, {20, 6}, {50, 18}, {100, 40}}) {
    EXPECT_EQ(MedianRanks(n).low, low - 1) << n;
    EXPECT_EQ(MedianRanks(n).high, n - low) << n;
  }
  for (size_t n = 1; n < 6; ++n) {
    EXPECT_EQ(MedianRanks(n).low, 0u);
    EXPECT_EQ(MedianRanks(n).high, n - 1);
  }
  const Ranks many = MedianRanks(4096);  // the normal distribution's 2048 -+ 0.98 sqrt(n)
  EXPECT_NEAR(static_cast<double>(many.low), 2047 - 0.98 * 64, 1.5);
}

TEST(MedianRanksTest, CoversTheMedianAsOftenAsItSays) {
  std::mt19937_64 random(1);
  std::exponential_distribution<double> skewed;
  int held = 0;
  constexpr int kTrials = 4000;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<int64_t> samples(64);
    for (int64_t& sample : samples) sample = static_cast<int64_t>(1e6 * skewed(random));
    const auto statistics = Summarise(samples);
    const double median = 1e6 * std::log(2.0);
    held += static_cast<double>(statistics.low_ns()) <= median && median <= static_cast<double>(statistics.high_ns());
  }
  EXPECT_GE(held, kTrials * 94 / 100);
}

TEST(SummariseTest, OrderStatistics) {
  std::vector<int64_t> samples(101);
  std::iota(samples.begin(), samples.end(), 1000);
  std::shuffle(samples.begin(), samples.end(), std::mt19937(7));
  const auto statistics = Summarise(samples);
  EXPECT_EQ(statistics.samples(), 101);
  EXPECT_EQ(statistics.minimum_ns(), 1000);
  EXPECT_EQ(statistics.p5_ns(), 1005);
  EXPECT_EQ(statistics.median_ns(), 1050);
  EXPECT_EQ(statistics.p95_ns(), 1095);
  EXPECT_DOUBLE_EQ(statistics.mean_ns(), 1050);
  EXPECT_EQ(statistics.deviation_ns(), 25);
  EXPECT_EQ(statistics.low_ns(), 1040);
  EXPECT_EQ(statistics.high_ns(), 1060);
  EXPECT_EQ(statistics.stopped(), "");
  EXPECT_EQ(Summarise({}).samples(), 0);
  EXPECT_EQ(Summarise({5}).median_ns(), 5);
  EXPECT_EQ(Summarise({5}).high_ns(), 5);
}

TEST(TickTest, IsWhatTheDifferencesShare) {
  EXPECT_EQ(TickNs({1056, 1024, 1120}), 32);
  EXPECT_EQ(TickNs({1056, 1024, 1121}), 1);
  EXPECT_EQ(TickNs({1056, 1056}), 1);
  EXPECT_EQ(TickNs({}), 1);
}

std::vector<int64_t> Scattered(size_t n, double median, double deviation, int64_t tick) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(median, deviation);
  std::vector<int64_t> samples(n);
  for (int64_t& sample : samples) sample = static_cast<int64_t>(normal(random)) / tick * tick;
  return samples;
}

TEST(EnoughTest, ANarrowInterval) {
  EXPECT_EQ(Enough(Scattered(49, 20000, 0, 1)), nullptr);
  EXPECT_STREQ(Enough(Scattered(50, 20000, 0, 1)), "interval");
  EXPECT_STREQ(Enough(Scattered(64, 20000, 20, 1)), "interval");
  // 4 % of scatter: the interval of 64 is about 2 % wide.
  EXPECT_EQ(Enough(Scattered(64, 20000, 800, 1)), nullptr);
  EXPECT_STREQ(Enough(Scattered(4000, 20000, 800, 1)), "interval");
}

TEST(EnoughTest, OneTickIsNarrowWhateverItsShare) {
  // 2 us in ticks of 32 ns: 1.6 %.
  EXPECT_STREQ(Enough(Scattered(64, 2000, 20, 32)), "interval");
}

TEST(EnoughTest, APlateauWhereMoreSamplesDoNotHelp) {
  // It rises all the time: the interval gets wider.
  std::vector<int64_t> drifting;
  for (int64_t i = 0; i < 400; ++i) drifting.push_back(20000 + 10 * i);
  EXPECT_STREQ(Enough(drifting), "plateau");
  drifting.resize(199);
  EXPECT_EQ(Enough(drifting), nullptr);
}

}  // namespace
}  // namespace solstice::timing
