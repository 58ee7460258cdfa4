#include "runtime/core/dtype.h"

#include <string>
#include <vector>

#include "runtime/base/strings.h"

namespace solstice::core {
namespace {

struct DTypeFacts {
  v1::DType dtype;
  std::string_view name;
  int bytes;
  int values;
  bool floating;
};

constexpr DTypeFacts kFacts[] = {
    {v1::FLOAT64, "float64", 8, 1, true},
    {v1::FLOAT32, "float32", 4, 1, true},
    {v1::FLOAT16, "float16", 2, 1, true},
    {v1::BFLOAT16, "bfloat16", 2, 1, true},
    {v1::FLOAT8_E4M3FN, "float8_e4m3fn", 1, 1, true},
    {v1::FLOAT8_E5M2, "float8_e5m2", 1, 1, true},
    {v1::FLOAT4_E2M1FN_X2, "float4_e2m1fn_x2", 1, 2, true},
    {v1::INT64, "int64", 8, 1, false},
    {v1::INT32, "int32", 4, 1, false},
    {v1::INT16, "int16", 2, 1, false},
    {v1::INT8, "int8", 1, 1, false},
    {v1::UINT8, "uint8", 1, 1, false},
    {v1::BOOL, "bool", 1, 1, false},
};

// For DTYPE_UNSPECIFIED and values of a newer protocol: no bytes, so nothing is ever read or written for them.
constexpr DTypeFacts kUnknown = {v1::DTYPE_UNSPECIFIED, "unspecified", 0, 0, false};

const DTypeFacts& FactsOf(v1::DType dtype) {
  for (const DTypeFacts& facts : kFacts) {
    if (facts.dtype == dtype) return facts;
  }
  return kUnknown;
}

}  // namespace

StatusOr<v1::DType> ParseDType(std::string_view name) {
  std::vector<std::string> names;
  for (const DTypeFacts& facts : kFacts) {
    if (facts.name == name) return facts.dtype;
    names.emplace_back(facts.name);
  }
  std::string nearest = base::Nearest(name, names);
  std::string mend = nearest.empty() ? base::StrCat("use one of ", base::Join(names, ", "))
                                     : base::StrCat("did you mean \"", nearest, "\"?");
  return base::InvalidArgument(base::StrCat("unknown dtype ", base::Quote(name)), mend);
}

std::string_view DTypeName(v1::DType dtype) { return FactsOf(dtype).name; }
int64_t ElementBytes(v1::DType dtype) { return FactsOf(dtype).bytes; }
int64_t ValuesPerElement(v1::DType dtype) { return FactsOf(dtype).values; }
bool IsFloating(v1::DType dtype) { return FactsOf(dtype).floating; }

}  // namespace solstice::core
