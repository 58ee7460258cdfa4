#include <climits>
#include <cstdint>
#include <type_traits>

#include "runtime/device/emulator/alu.h"
#include "runtime/device/emulator/float_bits.h"
#include "runtime/device/emulator/warp.h"

namespace solstice::device {
namespace {

#include "runtime/device/emulator/isa.inc"

}  // namespace

const IsaTable& BaselineIsa() {
  static constexpr IsaTable kTable{&FindAlu, &FindMemory, &FindMultiply};
  return kTable;
}

float HalfToFloat(uint16_t bits) { return Half::ToFloat(bits); }
float BrainToFloat(uint16_t bits) { return Brain::ToFloat(bits); }
uint16_t DoubleToHalf(double value) { return FromDouble<Half>(value); }
uint16_t DoubleToBrain(double value) { return FromDouble<Brain>(value); }

const IsaTable& BestIsa() {
#if defined(__GNUC__) && !defined(__clang__)
  static const bool avx2 =
      __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  return avx2 ? Avx2Isa() : BaselineIsa();
#else
  return BaselineIsa();
#endif
}

}  // namespace solstice::device
