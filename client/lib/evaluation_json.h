// The hand-specified JSON of `--json` (docs/formats/result-json.md). Numbers are numbers; NaN and infinities are null
// and named in "non_finite"; every field is present. Pure, thread-safe.
#pragma once

#include "runtime/base/status.h"
#include "runtime/core/json.h"
#include "solstice/v1/evaluation.pb.h"
#include "solstice/v1/service.pb.h"

namespace solstice::client {

core::Json EvaluationJson(const v1::Evaluation& evaluation);
core::Json CompileJson(const v1::CompileResponse& response);
core::Json DefinitionsJson(const v1::ListDefinitionsResponse& response);
core::Json ListJson(const v1::ListResponse& response);
core::Json InfoJson(const v1::ServerInfo& info);
// {"error": {"code", "reason", "mend"}}
core::Json ErrorJson(const Status& status);

// "PASSED", "QUEUED", "emulator": names as JSON and tables show them.
std::string VerdictName(v1::Verdict verdict);
std::string StateName(v1::EvaluationState state);
std::string DeviceName(v1::DeviceKind kind);
std::string CodeName(absl::StatusCode code);

}  // namespace solstice::client
