// Where an installation's data files lie. Pure look-ups, thread-safe.
#pragma once

#include <string>

namespace solstice::base {

// The folder called `name` ("definitions", "reference_kernels") of the installation whose programs are in
// `program_directory`: below $SOLSTICE_HOME, <program_directory>/../share/solstice (a bundle), or an ancestor of
// `program_directory` (a build tree inside the repository). Empty if there is none.
std::string FindShared(const std::string& program_directory, const std::string& name);

}  // namespace solstice::base
