#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <regex>

#include "client/cli/render.h"

namespace solstice::cli {
namespace {

using testing::HasSubstr;

// Columns parted by "|" instead of two spaces or more.
std::string Render(const std::string& text) {
  v1::Evaluation evaluation;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &evaluation)) << text;
  return std::regex_replace(RenderEvaluation(evaluation), std::regex("  +"), "|");
}

TEST(RenderEvaluationTest, ALatencyWithItsUncertainty) {
  const std::string text = Render(R"pb(
    state: COMPLETED
    verdict: PASSED
    complete: true
    workloads {
      uuid: "w1"
      verdict: PASSED
      latency_ns: 20000
      reference_latency_ns: 50000
      statistics { samples: 64 median_ns: 20000 low_ns: 19960 high_ns: 20040 }
    }
    workloads { uuid: "w2" verdict: TIMEOUT })pb");
  EXPECT_THAT(text, HasSubstr("|LATENCY|+-|REFERENCE|SPEEDUP"));
  EXPECT_THAT(text, HasSubstr("0.2%|"));
  EXPECT_THAT(text, HasSubstr("2.50x"));
  EXPECT_THAT(text, HasSubstr("TIMEOUT|-|-|-|-|-|-|-"));
}

}  // namespace
}  // namespace solstice::cli
