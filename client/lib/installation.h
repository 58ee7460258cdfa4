// Where this installation's files lie: a build tree (build/<preset>/bin) or a bundle (bin/ and share/solstice/).
#pragma once

#include <string>

namespace solstice::client {

// The folder that holds `name` ("definitions", "reference_kernels"): $SOLSTICE_HOME, <bin>/../share/solstice, or an
// ancestor of the program's folder. Empty if there is none.
std::string FindShared(const std::string& name);
std::string ReferenceKernels();

}  // namespace solstice::client
