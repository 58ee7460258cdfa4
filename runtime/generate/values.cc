#include "runtime/generate/values.h"

#include <algorithm>
#include <bit>

#include "runtime/generate/arithmetic.h"

namespace solstice::generate {
namespace {

constexpr float kTailProbability = 0.075f;  // 0.5 - 0.425, where NormalCentre ends

// Bit 0 of the word is the sign, the other 31 bits k place the magnitude: tail probability p = (k + 1/2) / 2^32. The
// distance to the middle, 1/2 - p, is computed from 2^31 - 1 - k, so that neither end loses digits.
void NormalsFromWords(const uint32_t* words, int count, float* out) {
  // All elements by the central formula, in a loop that vectorises; then the few in the tails again.
  for (int i = 0; i < count; ++i) {
    const int32_t from_middle = static_cast<int32_t>(0x7fffffffu - (words[i] >> 1));
    const float q = (static_cast<float>(from_middle) + 0.5f) * 0x1p-32f;
    const float magnitude = NormalCentre(q);
    out[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(magnitude) ^ (words[i] << 31));
  }
  for (int i = 0; i < count; ++i) {
    const float p = (static_cast<float>(static_cast<int32_t>(words[i] >> 1)) + 0.5f) * 0x1p-32f;
    if (p >= kTailProbability) continue;
    out[i] = std::bit_cast<float>(std::bit_cast<uint32_t>(NormalTail(p)) ^ (words[i] << 31));
  }
}

// The same with 62 bits: bit 0 of the first word is the sign.
double NormalFromWords(uint32_t low, uint32_t high) {
  const int64_t k = static_cast<int64_t>((static_cast<uint64_t>(high) << 32 | low) >> 2);
  const double p = (static_cast<double>(k) + 0.5) * 0x1p-63;
  const double magnitude =
      p < 0.075 ? NormalTail(p) : NormalCentre((static_cast<double>((int64_t{1} << 62) - 1 - k) + 0.5) * 0x1p-63);
  return (low & 1) != 0 ? -magnitude : magnitude;
}

template <typename T, typename Function>
void Transform(int count, T* values, Function function) {
  for (int i = 0; i < count; ++i) values[i] = function(values[i]);
}

// Position i of a stack of square matrices.
template <typename T>
void FillCausalMask(const ValueRecipe& recipe, int64_t first, int count, T* out) {
  const int64_t side = recipe.last_dimension();
  const T lowest = static_cast<T>(recipe.lowest);
  uint32_t holes[kBlock];
  if (recipe.perturbed()) {
    Words(recipe.seed, StreamOf(Purpose::kHoles, recipe.variant, recipe.input_index)).Fill(first, count, holes);
  }
  for (int i = 0; i < count; ++i) {
    const int64_t column = (first + i) % side, row = (first + i) / side % side;
    const bool hole = recipe.perturbed() && column != row && holes[i] < 0x40000000u;  // a quarter
    out[i] = column > row || hole ? lowest : T(0);
  }
}

}  // namespace

template <>
void FillNormals<float>(const Words& words, int64_t first, int count, float* out) {
  uint32_t drawn[kBlock];
  words.Fill(static_cast<uint64_t>(first), count, drawn);
  NormalsFromWords(drawn, count, out);
}

template <>
void FillNormals<double>(const Words& words, int64_t first, int count, double* out) {
  uint32_t drawn[2 * kBlock];
  words.Fill(static_cast<uint64_t>(first) * 2, 2 * count, drawn);
  for (int i = 0; i < count; ++i) out[i] = NormalFromWords(drawn[2 * i], drawn[2 * i + 1]);
}

template <typename T>
void FillValues(const ValueRecipe& recipe, int64_t first, int count, T* out) {
  const Words words(recipe.seed, StreamOf(Purpose::kValues, recipe.variant, recipe.input_index));
  auto clamp = [](T n, T limit) { return n < -limit ? -limit : n > limit ? limit : n; };
  switch (recipe.distribution) {
    case Distribution::kNormWeight:
    case Distribution::kNormBias: {
      const T centre = recipe.distribution == Distribution::kNormWeight ? T(1) : T(0);
      if (!recipe.perturbed()) {
        std::fill(out, out + count, centre);
        return;
      }
      FillNormals(words, first, count, out);
      return Transform(count, out, [centre](T n) { return centre + T(0.1) * n; });
    }
    case Distribution::kCausalMask:
      return FillCausalMask(recipe, first, count, out);
    case Distribution::kBinaryMask: {
      uint32_t drawn[kBlock];
      words.Fill(static_cast<uint64_t>(first), count, drawn);
      for (int i = 0; i < count; ++i) out[i] = static_cast<T>(static_cast<int32_t>(drawn[i] >> 31));
      return;
    }
    default:
      break;
  }

  FillNormals(words, first, count, out);
  switch (recipe.distribution) {
    case Distribution::kCosine:
      return Transform(count, out, [&](T n) { return static_cast<T>(Cos(clamp(n, T(3)))); });
    case Distribution::kSine:
      return Transform(count, out, [&](T n) { return static_cast<T>(Sin(clamp(n, T(3)))); });
    case Distribution::kSpread:
      return Transform(count, out, [](T n) { return (n < T(0) ? -n : n) + T(0.1); });
    case Distribution::kDecay:
      return Transform(count, out, [](T n) { return n < T(0) ? n : -n; });
    case Distribution::kWeightMatrix: {
      const T scale = T(1) / std::sqrt(static_cast<T>(recipe.last_dimension()));
      return Transform(count, out, [scale](T n) { return n * scale; });
    }
    case Distribution::kClampedNormal:
      return Transform(count, out, [&](T n) { return clamp(n, T(2)); });
    default:
      return;
  }
}

template <typename T>
void FillSoftmaxRow(const ValueRecipe& recipe, int64_t row, T* out) {
  const Words words(recipe.seed, StreamOf(Purpose::kValues, recipe.variant, recipe.input_index));
  const int64_t length = recipe.last_dimension();
  double sum = 0;  // in order, so that every implementation adds alike
  for (int64_t done = 0; done < length; done += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, length - done));
    FillNormals(words, row * length + done, count, out + done);
    for (int i = 0; i < count; ++i) {
      out[done + i] = static_cast<T>(Exp(out[done + i]));
      sum += out[done + i];
    }
  }
  for (int64_t i = 0; i < length; ++i) out[i] = static_cast<T>(out[i] / sum);
}

template void FillValues<float>(const ValueRecipe&, int64_t, int, float*);
template void FillValues<double>(const ValueRecipe&, int64_t, int, double*);
template void FillSoftmaxRow<float>(const ValueRecipe&, int64_t, float*);
template void FillSoftmaxRow<double>(const ValueRecipe&, int64_t, double*);

}  // namespace solstice::generate
