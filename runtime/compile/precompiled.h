// One precompiled header and the sources it may serve. It works only in the process that made it and in its forks.
// A source is compiled with it only where that cannot change the result: it begins with the very same #include lines,
// and nothing that follows them could have meant something to those headers.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_set>

#include "runtime/base/status.h"
#include "runtime/compile/compile.h"
#include "runtime/compile/options.h"

namespace solstice::compile {

// Immutable after Make.
class PrecompiledHeaders {
 public:
  // As Compiler::Precompile. `path` holds neither blanks nor quotes.
  static StatusOr<std::unique_ptr<PrecompiledHeaders>> Make(Frontend& frontend, const CompilerConfig& config,
                                                            const v1::internal::ProgramSource& headers,
                                                            const std::string& path);

  // Rewrites `input`, made for `source` and `options`, so that it uses the header. False, and `input` untouched, where
  // the source asks for other headers, target or options, defines a macro whose name the headers hold, or brings a file
  // of a name that they hold.
  bool Apply(const v1::internal::ProgramSource& source, const OptionSet& options, Frontend::Input* input) const;
  // Whether the compiler's log says something about precompiled headers, which nobody asked for.
  bool IsBlamed(std::string_view log) const;

 private:
  PrecompiledHeaders() = default;
  Status ReadHeaders(const CompilerConfig& config);
  bool MayFollow(std::string_view define, const v1::internal::ProgramSource& source) const;

  std::string path_;
  std::string text_;                       // the #include lines
  std::string shared_;                     // serialised headers: what a source must share
  std::vector<std::string> options_;       // of the front end, -use-pch and the like included
  std::unordered_set<std::string> words_;  // what the headers, and those they include, could take for a macro
  std::string contents_;                   // of all of them
  bool computed_include_ = false;          // one includes a file that a macro names
};

}  // namespace solstice::compile
