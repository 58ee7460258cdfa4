// Compiler logs: split into diagnostics, put in order, cut to size, and turned into one sentence for a verdict.
// Pure functions, thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/compile/scan.h"

namespace solstice::compile {

struct Diagnostic {
  std::string_view file;  // "" where the tool names none
  int line = 0;           // of `file`; of the PTX where `in_ptx`
  bool error = false;
  bool in_ptx = false;
  std::string_view message;  // first line, without location and severity
  std::string_view block;    // the whole text
};
// Views into `log`.
std::vector<Diagnostic> ParseDiagnostics(std::string_view log);

// Takes the include folders off the front of paths and drops warnings that only concern two headers of ours.
std::string ScrubLog(std::string_view log, const std::vector<std::string>& include_paths);

struct CutText {
  std::string text;
  int64_t bytes = 0;  // before the cut
  int64_t dropped = 0;
};
// At most `limit` bytes, on UTF-8 boundaries. A log that fits is left as it is; else errors come first, then head and
// tail are kept around a marker that gives the number of bytes dropped.
CutText CutLog(std::string_view log, int64_t limit);

struct Explanation {
  std::string reason, mend;
};
// Of a front end failure. `kernels` are those the scan found, for messages about names that do not exist.
Explanation ExplainFrontend(std::string_view log, const std::vector<std::string>& name_expressions,
                            const std::vector<std::string>& entries);
// Of a link or assembly failure; `ptx` resolves lines of the PTX to lines of the source.
Explanation ExplainLink(std::string_view log, std::string_view ptx, std::string_view arch);
// Of "#include <vector>" and the like.
Explanation ExplainHostHeader(std::string_view where, std::string_view header);
Explanation ExplainLaunch(std::string_view file, int line);

// "kernel.cu:7" for line `line` of a PTX text, from its .loc and .file directives; "" if there is none.
std::string SourceOfPtxLine(std::string_view ptx, int line);
// Takes the folder of the sources off .file paths and writes /toolkit/include/ for the include folders, so that a program
// does not depend on where it was compiled, and tells its author's files from the toolkit's.
std::string NormalisePtxPaths(std::string_view ptx, const std::string& sources,
                              const std::vector<std::string>& includes);

// Each invalid byte as '?'.
std::string ReplaceInvalidUtf8(std::string_view text);

// "a, b, c and 4 more".
std::string ListNames(const std::vector<std::string>& names, size_t limit = 12);

}  // namespace solstice::compile
