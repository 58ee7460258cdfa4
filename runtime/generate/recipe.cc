#include "runtime/generate/recipe.h"

#include <limits>

#include "runtime/base/strings.h"
#include "runtime/core/dtype.h"
#include "runtime/core/float_formats.h"
#include "runtime/generate/heuristics.h"
#include "runtime/generate/scalar.h"
#include "runtime/generate/words.h"

namespace solstice::generate {
namespace {

constexpr uint64_t kFillingKey = 0x5f1d36f1a0c7e94bull;  // keeps fillings apart from inputs of the same seed

double LowestOf(v1::DType dtype) {
  switch (dtype) {
    case v1::FLOAT16:
      return -65504.0;
    case v1::BFLOAT16:
      return -static_cast<double>(core::Bfloat16ToFloat(0x7f7f));
    case v1::FLOAT32:
      return -static_cast<double>(std::numeric_limits<float>::max());
    default:
      return -std::numeric_limits<double>::max();
  }
}

std::string Where(const v1::Tensor& tensor) { return base::StrCat("input ", base::Quote(tensor.name())); }

void DescribeRandom(const v1::Tensor& tensor, const std::vector<int64_t>& shape, int input_index, const Seeds& seeds,
                    int variant, InputRecipe* recipe) {
  const bool structural = IsStructural(tensor.name(), tensor.dtype());
  recipe->stream = StreamOf(Purpose::kValues, structural ? 0 : variant, input_index);
  ValueRecipe& values = recipe->values;
  values.distribution = Classify(tensor.name(), tensor.dtype(), shape);
  values.seed = structural ? seeds.structure : seeds.payload;
  values.input_index = input_index;
  values.variant = variant;
  values.shape = shape;
  values.lowest = LowestOf(tensor.dtype());
}

}  // namespace

StatusOr<int64_t> TensorBytes(const v1::Tensor& tensor, const std::vector<int64_t>& shape) {
  constexpr int64_t kMost = int64_t{1} << 62;
  int64_t bytes = core::ElementBytes(tensor.dtype());
  if (bytes == 0) return base::InvalidArgument(base::StrCat(Where(tensor), ": it has no dtype"));
  bool empty = false;
  for (int64_t dimension : shape) {
    if (dimension < 0) {
      return base::InvalidArgument(base::StrCat(Where(tensor), ": dimension ", dimension, " is negative"));
    }
    empty = empty || dimension == 0;
  }
  if (empty) return 0;
  for (int64_t dimension : shape) {
    if (bytes > kMost / dimension) {
      return base::InvalidArgument(base::StrCat(Where(tensor), ": its shape has more bytes than any memory"));
    }
    bytes *= dimension;
  }
  return bytes;
}

StatusOr<InputRecipe> MakeRecipe(const v1::Tensor& tensor, const v1::InputSource& source,
                                 const std::vector<int64_t>& shape, int input_index, const Seeds& seeds, int variant) {
  InputRecipe recipe;
  recipe.dtype = tensor.dtype();
  SOLSTICE_ASSIGN_OR_RETURN(recipe.bytes, TensorBytes(tensor, shape));
  recipe.elements = recipe.bytes / core::ElementBytes(tensor.dtype());
  if (input_index < 0 || variant < 0 || variant >= 1 << 24) {
    return base::InvalidArgument(
        base::StrCat(Where(tensor), ": no input has index ", input_index, " and variant ", variant));
  }
  switch (source.source_case()) {
    case v1::InputSource::kRandom:
      DescribeRandom(tensor, shape, input_index, seeds, variant, &recipe);
      return recipe;
    case v1::InputSource::kScalar: {
      auto element = EncodeScalar(source.scalar(), tensor.dtype());
      if (!element.ok()) return base::Annotate(element.status(), Where(tensor));
      recipe.scalar = *std::move(element);
      return recipe;
    }
    case v1::InputSource::kSafetensors:
      return base::InvalidArgument(
          base::StrCat(Where(tensor), ": it comes from a safetensors file, not from a generator"),
          "read the file, or use a workload whose inputs are random or scalar");
    case v1::InputSource::kCustom:
      return base::InvalidArgument(
          base::StrCat(Where(tensor), ": its generator is Python code of the definition, which is not executed here"),
          "use a workload whose inputs are random or scalar");
    default:
      return base::InvalidArgument(base::StrCat(Where(tensor), ": the workload gives it no source"),
                                   "give it {\"type\": \"random\"} or a scalar value");
  }
}

uint64_t FillingSeed(uint64_t seed) { return seed ^ kFillingKey; }

}  // namespace solstice::generate
