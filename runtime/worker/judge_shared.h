// Small things that the judge's source files share. Internal to runtime/worker.
#pragma once

#include <string>

#include "solstice/v1/definition.pb.h"

namespace solstice::worker {

inline constexpr const char* kReferenceMend =
    "this is a fault of the definition, not of the submission: tell who publishes it";

// Null if there is no such tensor.
const v1::Tensor* FindTensor(const google::protobuf::RepeatedPtrField<v1::Tensor>& tensors, const std::string& name);

}  // namespace solstice::worker
