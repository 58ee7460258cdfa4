// Blocks of generated numbers, before they are stored in a tensor's dtype. Internal to runtime/generate.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/generate/heuristics.h"
#include "runtime/generate/words.h"

namespace solstice::generate {

// Elements made at a time; a multiple of 4, small enough for the first-level cache.
inline constexpr int kBlock = 1024;

// What the values of one floating-point input are made from.
struct ValueRecipe {
  Distribution distribution = Distribution::kNormal;
  uint64_t seed = 0;
  int input_index = 0;
  int variant = 0;
  std::vector<int64_t> shape;
  double lowest = 0;  // of the dtype, for masks

  bool perturbed() const { return variant == 1; }
  int64_t last_dimension() const { return shape.empty() ? 1 : shape.back(); }
};

// Independent standard normals, elements `first` .. `first` + count of a stream; count at most kBlock. T is float (one
// word an element) or double (two).
template <typename T>
void FillNormals(const Words& words, int64_t first, int count, T* out);

// Values of the recipe; softmax rows have a call of their own.
template <typename T>
void FillValues(const ValueRecipe& recipe, int64_t first, int count, T* out);

// One whole row of softmax values, `recipe.last_dimension()` of them.
template <typename T>
void FillSoftmaxRow(const ValueRecipe& recipe, int64_t row, T* out);

}  // namespace solstice::generate
