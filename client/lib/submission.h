// From files on disk to requests.
#pragma once

#include <string>

#include "runtime/base/status.h"
#include "solstice/v1/service.pb.h"

namespace solstice::client {

// FILE is a .cu (plan in its `//@` lines) or a solution.json. Local `#include "x"` files are not followed: a solution
// of several files is a solution.json. Errors name the file.
StatusOr<v1::Solution> ReadSolution(const std::string& path);

// `definition` is a name, "name@digest12", or a folder with a definition.json, whose files then travel with the
// request. Empty leaves what the solution names. `reference_kernels` resolves families of a folder; may be empty.
Status SetDefinition(const std::string& definition, const std::string& reference_kernels, v1::Solution* solution,
                     v1::DefinitionFiles* files, bool* has_files);

// "emulator", "cuda", "cuda:N". INVALID_ARGUMENT otherwise.
Status SetDevice(const std::string& device, v1::EvaluationOptions* options);

}  // namespace solstice::client
