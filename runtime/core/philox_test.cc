#include "runtime/core/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

namespace solstice::core {
namespace {

using Words = std::array<uint32_t, 4>;

// The generator's published known answers; words are in the order counter 0 to 3, key 0 to 1.
TEST(PhiloxTest, PublishedKnownAnswers) {
  EXPECT_EQ(Philox4x32(0, 0, 0), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(Philox4x32(~0ull, ~0ull, ~0ull), (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(Philox4x32(0x299f31d0a4093822ull, 0x0370734413198a2eull, 0x85a308d3243f6a88ull),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(PhiloxTest, EveryArgumentBitMatters) {
  const Words base = Philox4x32(1, 2, 3);
  for (int bit = 0; bit < 64; ++bit) {
    const uint64_t flip = 1ull << bit;
    EXPECT_NE(Philox4x32(1 ^ flip, 2, 3), base) << bit;
    EXPECT_NE(Philox4x32(1, 2 ^ flip, 3), base) << bit;
    EXPECT_NE(Philox4x32(1, 2, 3 ^ flip), base) << bit;
  }
}

TEST(PhiloxTest, IsAConstantFunction) { EXPECT_EQ(Philox4x32(7, 8, 9), Philox4x32(7, 8, 9)); }

}  // namespace
}  // namespace solstice::core
