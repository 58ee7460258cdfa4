#include "runtime/generate/generate.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "runtime/base/strings.h"
#include "runtime/core/dtype.h"
#include "runtime/core/float_formats.h"
#include "runtime/generate/element.h"
#include "runtime/generate/recipe.h"
#include "runtime/generate/values.h"
#include "runtime/generate/words.h"

namespace solstice::generate {
namespace {

template <typename Stored, typename T, typename Function>
void StoreAs(const T* values, int64_t count, uint8_t* out, Function convert) {
  Stored block[kBlock];
  for (int64_t done = 0; done < count; done += kBlock) {
    const int part = static_cast<int>(std::min<int64_t>(kBlock, count - done));
    for (int i = 0; i < part; ++i) block[i] = convert(values[done + i]);
    std::memcpy(out + done * sizeof(Stored), block, part * sizeof(Stored));
  }
}

// Stores `count` floats; doubles are stored as they are.
void Store(v1::DType dtype, const float* values, int64_t count, uint8_t* out) {
  switch (dtype) {
    case v1::FLOAT32:
      std::memcpy(out, values, count * sizeof(float));
      return;
    case v1::FLOAT16:
      return StoreAs<uint16_t>(values, count, out, core::FloatToHalf);
    case v1::BFLOAT16:
      return StoreAs<uint16_t>(values, count, out, core::FloatToBfloat16);
    case v1::FLOAT8_E4M3FN:
      return StoreAs<uint8_t>(values, count, out, core::FloatToE4m3);
    case v1::FLOAT8_E5M2:
      return StoreAs<uint8_t>(values, count, out, core::FloatToE5m2);
    default:  // FLOAT4_E2M1FN_X2: `count` values, an even number
      for (int64_t i = 0; i < count; i += 2) {
        out[i / 2] = static_cast<uint8_t>(core::FloatToE2m1(values[i]) | core::FloatToE2m1(values[i + 1]) << 4);
      }
  }
}
void Store(v1::DType, const double* values, int64_t count, uint8_t* out) {
  std::memcpy(out, values, count * sizeof(double));
}

template <typename T>
void FillFloating(const ValueRecipe& recipe, v1::DType dtype, int64_t elements, uint8_t* out) {
  const int64_t values = elements * core::ValuesPerElement(dtype);
  auto offset = [&](int64_t value) { return value / core::ValuesPerElement(dtype) * core::ElementBytes(dtype); };
  if (recipe.distribution == Distribution::kSoftmaxRow) {
    const int64_t length = recipe.last_dimension();
    std::vector<T> row(length);
    for (int64_t first = 0; first < values; first += length) {
      FillSoftmaxRow(recipe, first / length, row.data());
      Store(dtype, row.data(), length, out + offset(first));
    }
    return;
  }
  T block[kBlock];
  for (int64_t first = 0; first < values; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, values - first));
    FillValues(recipe, first, count, block);
    Store(dtype, block, count, out + offset(first));
  }
}

template <typename Integer>
void FillSmallIntegers(const Words& words, int64_t elements, uint8_t* out) {
  uint32_t drawn[kBlock];
  for (int64_t first = 0; first < elements; first += kBlock) {
    const int count = static_cast<int>(std::min<int64_t>(kBlock, elements - first));
    words.Fill(first, count, drawn);
    StoreAs<Integer>(drawn, count, out + first * sizeof(Integer),
                     [](uint32_t word) { return static_cast<Integer>(SmallIntegerFromWord(word)); });
  }
}

void FillBytes(const Words& words, int64_t bytes, uint8_t* out) {
  uint32_t drawn[kBlock];
  for (int64_t first = 0; first < bytes; first += 4 * kBlock) {
    const int64_t count = std::min<int64_t>(4 * kBlock, bytes - first);
    words.Fill(first / 4, static_cast<int>((count + 3) / 4), drawn);
    std::memcpy(out + first, drawn, count);
  }
}

void FillCoins(const Words& words, int64_t elements, uint8_t* out) {
  uint32_t drawn[kBlock];
  int64_t heads = 0;
  for (int64_t first = 0; first < elements; first += 32 * kBlock) {
    const int64_t count = std::min<int64_t>(32 * kBlock, elements - first);
    words.Fill(first / 32, static_cast<int>((count + 31) / 32), drawn);
    for (int64_t i = 0; i < count; ++i) {
      out[first + i] = (drawn[i / 32] >> (i % 32)) & 1;
      heads += out[first + i];
    }
  }
  // A tensor of one value only would hide a kernel that ignores it.
  if (elements > 1 && (heads == 0 || heads == elements)) out[0] ^= 1;
}

void FillRandomInput(const InputRecipe& recipe, uint8_t* out) {
  const Words words(recipe.values.seed, recipe.stream);
  switch (recipe.values.distribution) {
    case Distribution::kCoin:
      return FillCoins(words, recipe.elements, out);
    case Distribution::kByte:
      return FillBytes(words, recipe.elements, out);
    case Distribution::kSmallInteger:
      if (recipe.dtype == v1::INT16) return FillSmallIntegers<int16_t>(words, recipe.elements, out);
      if (recipe.dtype == v1::INT32) return FillSmallIntegers<int32_t>(words, recipe.elements, out);
      return FillSmallIntegers<int64_t>(words, recipe.elements, out);
    default:
      break;
  }
  if (recipe.dtype == v1::FLOAT64) {
    FillFloating<double>(recipe.values, recipe.dtype, recipe.elements, out);
  } else {
    FillFloating<float>(recipe.values, recipe.dtype, recipe.elements, out);
  }
}

std::string Where(const v1::Tensor& tensor) { return base::StrCat("input ", base::Quote(tensor.name())); }

}  // namespace

Status GenerateInputInto(const v1::Tensor& tensor, const v1::InputSource& source, const std::vector<int64_t>& shape,
                         int input_index, const Seeds& seeds, int variant, std::span<uint8_t> out) {
  SOLSTICE_ASSIGN_OR_RETURN(InputRecipe recipe, MakeRecipe(tensor, source, shape, input_index, seeds, variant));
  if (static_cast<uint64_t>(recipe.bytes) != out.size()) {
    return base::InvalidArgument(
        base::StrCat(Where(tensor), ": the buffer holds ", out.size(), " bytes, the tensor ", recipe.bytes));
  }
  if (recipe.bytes == 0) return absl::OkStatus();
  if (!recipe.scalar.empty()) {
    const std::string& element = recipe.scalar;
    for (size_t at = 0; at < out.size(); at += element.size()) std::memcpy(&out[at], element.data(), element.size());
    return absl::OkStatus();
  }
  try {
    FillRandomInput(recipe, out.data());
  } catch (const std::bad_alloc&) {  // a softmax row
    return base::ResourceExhausted(base::StrCat(Where(tensor), ": a row does not fit in memory"));
  }
  return absl::OkStatus();
}

StatusOr<std::string> GenerateInput(const v1::Tensor& tensor, const v1::InputSource& source,
                                    const std::vector<int64_t>& shape, int input_index, const Seeds& seeds,
                                    int variant) {
  SOLSTICE_ASSIGN_OR_RETURN(int64_t bytes, TensorBytes(tensor, shape));
  std::string content;
  try {
    content.resize(bytes);
  } catch (const std::exception&) {  // bad_alloc or length_error
    return base::ResourceExhausted(base::StrCat(Where(tensor), ": ", bytes, " bytes do not fit in memory"));
  }
  SOLSTICE_RETURN_IF_ERROR(
      GenerateInputInto(tensor, source, shape, input_index, seeds, variant,
                        std::span<uint8_t>(reinterpret_cast<uint8_t*>(content.data()), content.size())));
  return content;
}

void FillRandom(uint64_t seed, uint64_t stream, char* data, int64_t bytes) {
  if (bytes <= 0) return;
  FillBytes(Words(FillingSeed(seed), stream), bytes, reinterpret_cast<uint8_t*>(data));
}

}  // namespace solstice::generate
