#include "runtime/generate/values.h"

#include <algorithm>

#include "runtime/generate/element.h"

namespace solstice::generate {
namespace {

// All elements by the central formula, in a loop that vectorises; then the few in the tails again.
void NormalsFromWords(const uint32_t* words, int count, float* out) {
  for (int i = 0; i < count; ++i) out[i] = CentralNormal(words[i]);
  for (int i = 0; i < count; ++i) {
    if (InTail(words[i])) out[i] = OuterNormal(words[i]);
  }
}

// The distribution is a constant of the loop, which so vectorises.
template <Distribution kDistribution, typename T>
void Transform(int count, T scale, T* values) {
  for (int i = 0; i < count; ++i) values[i] = FromNormal(kDistribution, scale, values[i]);
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
    out[i] = IsMasked(column, row, recipe.perturbed() && IsHole(holes[i])) ? lowest : T(0);
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
  switch (recipe.distribution) {
    case Distribution::kNormWeight:
    case Distribution::kNormBias:
      if (recipe.perturbed()) break;
      std::fill(out, out + count, recipe.distribution == Distribution::kNormWeight ? T(1) : T(0));
      return;
    case Distribution::kCausalMask:
      return FillCausalMask(recipe, first, count, out);
    case Distribution::kBinaryMask: {
      uint32_t drawn[kBlock];
      words.Fill(static_cast<uint64_t>(first), count, drawn);
      for (int i = 0; i < count; ++i) out[i] = static_cast<T>(BinaryFromWord(drawn[i]));
      return;
    }
    default:
      break;
  }

  FillNormals(words, first, count, out);
  const T scale = WeightScale<T>(recipe.last_dimension());
  switch (recipe.distribution) {
    case Distribution::kNormWeight:
      return Transform<Distribution::kNormWeight>(count, scale, out);
    case Distribution::kNormBias:
      return Transform<Distribution::kNormBias>(count, scale, out);
    case Distribution::kCosine:
      return Transform<Distribution::kCosine>(count, scale, out);
    case Distribution::kSine:
      return Transform<Distribution::kSine>(count, scale, out);
    case Distribution::kSpread:
      return Transform<Distribution::kSpread>(count, scale, out);
    case Distribution::kDecay:
      return Transform<Distribution::kDecay>(count, scale, out);
    case Distribution::kWeightMatrix:
      return Transform<Distribution::kWeightMatrix>(count, scale, out);
    case Distribution::kClampedNormal:
      return Transform<Distribution::kClampedNormal>(count, scale, out);
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
