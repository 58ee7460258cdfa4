// Facts about tensor element types. Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

#include "runtime/base/status.h"
#include "solstice/v1/definition.pb.h"

namespace solstice::core {

// Published names ("bfloat16", "float8_e4m3fn", "bool"). INVALID_ARGUMENT with the nearest name otherwise.
StatusOr<v1::DType> ParseDType(std::string_view name);
// "unspecified" for a value that is no element type.
std::string_view DTypeName(v1::DType dtype);

// Size of one stored element in bytes; 0 for a value that is no element type. float4_e2m1fn_x2 stores two values in one
// byte, and shapes count bytes.
int64_t ElementBytes(v1::DType dtype);
// Values per stored element: 2 for float4_e2m1fn_x2, else 1.
int64_t ValuesPerElement(v1::DType dtype);
bool IsFloating(v1::DType dtype);

}  // namespace solstice::core
