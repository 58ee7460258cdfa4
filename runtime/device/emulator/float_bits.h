// 16-bit floats to and from wider ones, rounding to nearest even, for code that is not lane-wise.
#pragma once

#include <cstdint>

namespace solstice::device {

float HalfToFloat(uint16_t bits);
float BrainToFloat(uint16_t bits);
uint16_t DoubleToHalf(double value);
uint16_t DoubleToBrain(double value);

}  // namespace solstice::device
