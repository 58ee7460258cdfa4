// Which lane holds which element: the layouts of mma in the PTX manual. Those of wmma are opaque there; here they are
// tilings of mma's, which do not depend on how the matrix lies in memory.
#include "runtime/device/emulator/matrix.h"
#include "runtime/device/emulator/warp.h"

namespace solstice::device {
namespace {

int PartsOf(Element element) {
  switch (element) {
    case Element::kF16:
    case Element::kBf16:
      return 2;
    case Element::kS4:
    case Element::kU4:
      return 8;
    case Element::kTf32:
    case Element::kF32:
    case Element::kF64:
    case Element::kS32:
    case Element::kB1:
      return 1;
    default:
      return 4;
  }
}

struct Spot {
  int row, column;
};

// Of one of the four products of m8n8k4; `i` counts the lane's elements.
Spot QuadPairSpot(const FragmentKey& key, int lane, int i) {
  const int upper = lane < 16 ? 0 : 4;
  switch (key.role) {
    case MatrixRole::kA:
      if (key.row_major) return {lane % 4 + upper, i};
      return {i + upper, lane % 4};
    case MatrixRole::kB:
      if (key.row_major) return {lane % 4, i + upper};
      return {i, lane % 4 + upper};
    case MatrixRole::kAccumulator:
      if (key.element == Element::kF16) return {lane % 4 + upper, i};
      return {(lane & 1) + (i & 2) + upper, (i & 4) + (lane & 2) + (i & 1)};
  }
  return {0, 0};
}

Fragment MakeQuadPairs(const FragmentKey& key) {
  Fragment f;
  f.element = key.element;
  f.parts = PartsOf(key.element);
  f.rows = key.role == MatrixRole::kB ? 4 : 8;
  f.columns = key.role == MatrixRole::kA ? 4 : 8;
  f.registers = f.distinct = (key.role == MatrixRole::kAccumulator ? 8 : 4) / f.parts;
  for (int i = 0; i < f.registers * f.parts; ++i) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const Spot spot = QuadPairSpot(key, lane, i);
      const int product = lane % 16 / 4;
      f.position.push_back(static_cast<uint16_t>((product * f.rows + spot.row) * f.columns + spot.column));
    }
  }
  return f;
}

}  // namespace

Fragment MakeFragment(const FragmentKey& key) {
  if (!key.wmma && key.m == 8 && key.n == 8 && key.k == 4 && key.element != Element::kF64) return MakeQuadPairs(key);
  Fragment f;
  f.element = key.element;
  f.parts = PartsOf(key.element);
  f.register_bytes = key.element == Element::kF64 ? 8 : 4;
  const int k = key.element == Element::kB1 ? key.k / 32 : key.k;
  const bool sum = key.role == MatrixRole::kAccumulator;
  f.rows = key.role == MatrixRole::kB ? k : key.m;
  f.columns = key.role == MatrixRole::kA ? k : key.n;
  f.distinct = f.rows * f.columns / kLanes / f.parts;
  // wmma names eight registers of float16 whatever the shape; some repeat others.
  f.registers = key.wmma && !sum && key.element == Element::kF16 ? 8 : f.distinct;
  const int tiles = (key.role == MatrixRole::kB ? key.n : key.m) / 8;  // along m, or n
  for (int r = 0; r < f.registers; ++r) {
    for (int part = 0; part < f.parts; ++part) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const int group = lane / 4, member = lane % 4;
        int row, column;
        if (sum) {
          const int i = r * f.parts + part, pair = i / 2;
          row = group + 8 * (pair % tiles);
          column = member * 2 + i % 2 + 8 * (pair / tiles);
        } else {
          const int q = r % f.distinct;
          const int outer = group + 8 * (q % tiles);
          const int inner = member * f.parts + part + 4 * f.parts * (q / tiles);
          row = key.role == MatrixRole::kA ? outer : inner;
          column = key.role == MatrixRole::kA ? inner : outer;
        }
        f.position.push_back(static_cast<uint16_t>(row * f.columns + column));
      }
    }
  }
  return f;
}

}  // namespace solstice::device
