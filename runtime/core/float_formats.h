// Narrow floating point to and from float32 and float64, bit-exact on every host (no hardware conversion instructions),
// rounding to nearest even. Subnormals are kept. NaN payloads are not.
//   float16 (IEEE binary16), bfloat16, float8_e4m3fn (no infinity; NaN 0x7f/0xff; largest 448),
//   float8_e5m2 (infinity 0x7c; largest 57344), float4_e2m1fn (0 0.5 1 1.5 2 3 4 6; no NaN).
#pragma once

#include <cstdint>

namespace solstice::core {

float HalfToFloat(uint16_t bits);
uint16_t FloatToHalf(float value);       // overflow gives infinity
uint16_t DoubleToHalf(double value);     // one rounding
float Bfloat16ToFloat(uint16_t bits);
uint16_t FloatToBfloat16(float value);   // overflow gives infinity
uint16_t DoubleToBfloat16(double value);
float E4m3ToFloat(uint8_t bits);
uint8_t FloatToE4m3(float value);        // saturates finite values and infinities to +-448 (CUDA's satfinite)
float E5m2ToFloat(uint8_t bits);
uint8_t FloatToE5m2(float value);        // saturates to +-57344 (satfinite)
float E2m1ToFloat(uint8_t nibble);       // low 4 bits
uint8_t FloatToE2m1(float value);        // saturates to +-6; NaN gives +6

}  // namespace solstice::core
