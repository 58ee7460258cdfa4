#include "runtime/generate/arithmetic.h"

#include <gtest/gtest.h>

#include <cmath>

namespace solstice::generate {
namespace {

TEST(ArithmeticTest, LogAgreesWithTheLibrary) {
  for (double x = 1e-19; x < 1e19; x *= 1.0137) {
    EXPECT_NEAR(Log(x), std::log(x), 1e-9) << x;
    const float narrow = static_cast<float>(x);
    EXPECT_NEAR(Log(narrow), std::log(static_cast<double>(narrow)), 4e-6) << x;
  }
  EXPECT_EQ(Log(1.0), 0.0);
  EXPECT_EQ(Log(1.0f), 0.0f);
}

TEST(ArithmeticTest, ExpAgreesWithTheLibrary) {
  for (double x = -64; x <= 64; x += 0.00371) EXPECT_NEAR(Exp(x) / std::exp(x), 1, 1e-13) << x;
  EXPECT_EQ(Exp(0), 1);
}

TEST(ArithmeticTest, SineAndCosineAgreeWithTheLibrary) {
  for (double x = -3; x <= 3; x += 0.00173) {
    EXPECT_NEAR(Cos(x), std::cos(x), 1e-13) << x;
    EXPECT_NEAR(Sin(x), std::sin(x), 1e-13) << x;
  }
}

// The quantile function inverts the distribution function, which the library has as erfc.
TEST(ArithmeticTest, NormalQuantiles) {
  auto tail = [](double x) { return 0.5 * std::erfc(x / std::sqrt(2.0)); };
  for (double p = 0.075; p > 1e-19; p *= 0.983) {
    EXPECT_NEAR(tail(NormalTail(p)) / p, 1, 1e-5) << p;
    EXPECT_NEAR(NormalTail(static_cast<float>(p)), NormalTail(p), 3e-6) << p;
  }
  for (double q = 0; q <= 0.425; q += 0.00091) {
    EXPECT_NEAR(tail(NormalCentre(q)), 0.5 - q, 1e-6) << q;
    EXPECT_NEAR(NormalCentre(static_cast<float>(q)), NormalCentre(q), 1e-6) << q;
  }
  EXPECT_NEAR(NormalCentre(0.425), NormalTail(0.075), 1e-6) << "they meet";
}

}  // namespace
}  // namespace solstice::generate
