// The part of a source that a precompiled header may stand for: the #include lines it begins with. Pure functions,
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace solstice::compile {

struct Preamble {
  std::string text;  // "#include <mma.h>\n" for each, as written; "" if no costly header is among them
  size_t end = 0;    // where the rest of the source begins, at the start of a line
  int line = 1;      // of that place
};

// Reads comments, blanks and #include lines from the start of `text`, which has no byte order mark, and stops at
// anything else, so that nothing but headers comes before a header. The preamble ends after the last header that takes
// long to compile (cooperative groups, cuda/..., CUB, cuRAND); the light ones that follow stay in the rest. A header
// that a file among `paths` (the submission's, `from` apart) would be found for ends it too.
Preamble FindPreamble(std::string_view text, std::string_view from, const std::vector<std::string>& paths);

}  // namespace solstice::compile
