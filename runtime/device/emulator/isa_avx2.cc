#include <climits>
#include <cstdint>
#include <type_traits>

#include "runtime/device/emulator/alu.h"
#include "runtime/device/emulator/warp.h"

// After the headers, so that what they define inline is not built for AVX2.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC target("avx2,fma,f16c,bmi,bmi2,lzcnt,popcnt")
#endif

namespace solstice::device {
namespace {

#include "runtime/device/emulator/isa.inc"

}  // namespace

const IsaTable& Avx2Isa() {
  static constexpr IsaTable kTable{&FindAlu, &FindMemory, &FindMultiply};
  return kTable;
}

}  // namespace solstice::device
