// Scalar inputs in a tensor's dtype. Pure, thread-safe.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "solstice/v1/definition.pb.h"

namespace solstice::generate {

// Bytes of one element. Floating types round to nearest even and take integers and booleans too; integer types take
// whole numbers in range, bool takes booleans, 0 and 1; float4_e2m1fn_x2 gives both values of the byte.
// INVALID_ARGUMENT when the value is missing, not finite, or does not fit.
StatusOr<std::string> EncodeScalar(const v1::ScalarValue& value, v1::DType dtype);

}  // namespace solstice::generate
