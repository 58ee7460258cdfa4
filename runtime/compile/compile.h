// From CUDA source to one canonical program: check the request, NVRTC -> LTO-IR -> PTX -> cubin, describe it.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::compile {

inline constexpr int64_t kMaxSourceBytes = 1 << 20;
inline constexpr int kMaxSources = 64;
inline constexpr int kMaxOptions = 32;
// 2: the cubin comes from the LTO-IR. 3: the PTX tells toolkit headers by their folder.
inline constexpr int kProgramFormat = 3;
inline constexpr int64_t kDefaultLogBytes = 64 << 10;
inline constexpr int64_t kDefaultCubinBytes = int64_t{64} << 20;

// ---- Checks that the request alone decides (server side, no compiler) --------------------------------------------

// INVALID_ARGUMENT naming the option and what to write instead. Returns the normalised options in order
// ("-std=c++17" and "--std=c++17" are one).
StatusOr<std::vector<std::string>> CheckOptions(const std::vector<std::string>& options);
// Sizes, paths (relative, no "..", unique), encodings (NUL, 0xFF, UTF-16 marks, invalid UTF-8; a UTF-8 BOM is allowed
// and stripped by the compiler stage).
Status CheckSources(const google::protobuf::RepeatedPtrField<v1::SourceFile>& sources);
// "sm_90a", "sm_100a", "sm_100f", "sm_103a", "sm_103f": INVALID_ARGUMENT lists them otherwise.
Status CheckArch(std::string_view arch);
// "NAME=value" from a plan: identifier, and a value of digits, identifiers and simple numbers only.
Status CheckDefine(std::string_view define);
// Over everything that changes the program: "sha256:...".
std::string ProgramKey(const v1::internal::ProgramSource& source, const v1::Toolchain& toolchain);
// What `source` could share with others as a precompiled header: its target, its options but -D, and as only text the
// #include lines it begins with, when one of these headers takes long to compile. No sources: nothing worth sharing.
v1::internal::ProgramSource SharedHeaders(const v1::internal::ProgramSource& source);

// ---- The compiler (in the jail) ----------------------------------------------------------------------------------

// Front end: CUDA C++ to LTO-IR. Implemented by runtime/compile/nvrtc. One thread at a time.
class Frontend {
 public:
  struct Input {
    std::string name;  // of the translation unit, "kernel.cu"
    std::string text;
    std::vector<std::string> options;
    std::vector<std::string> name_expressions;
    std::vector<std::pair<std::string, std::string>> headers;  // include name, content: the submission's other files
  };
  struct Output {
    bool ok = false;
    std::string lto_ir;
    std::string log;
    std::vector<std::string> lowered_names;  // as name_expressions; empty where it failed
    bool exhausted = false;                  // not ok because the compiler ran out of memory or broke inside
    bool precompiled = false;                // an option asked for a precompiled header, and it was written
  };
  virtual ~Frontend() = default;
  virtual std::string version() const = 0;  // "13.0.88" or as much as the library tells
  // Status: the library itself failed.
  virtual StatusOr<Output> Compile(const Input& input) = 0;
};

// Linker: LTO-IR to PTX, PTX to cubin. Implemented by runtime/compile/nvjitlink.
class Linker {
 public:
  struct Output {
    bool ok = false;
    std::string image;
    std::string log;         // errors and information, `-Xptxas=-v` lines included
    bool exhausted = false;  // not ok, and the linker names no error of the input
  };
  virtual ~Linker() = default;
  virtual std::string version() const = 0;
  virtual StatusOr<Output> Link(const std::string& input, bool input_is_ptx, const std::string& name,
                                const std::vector<std::string>& options) = 0;
};

struct CompilerConfig {
  std::vector<std::string> include_paths;  // toolkit include, include/cccl, header pack (as seen inside the jail)
  std::string headers_digest;
};

class PrecompiledHeaders;

// Runs the whole stage. One thread at a time. Frontend and Linker options are put together here: fast-math switches
// reach both, for each loses them silently if only the other has them. A wrong submission is a Program with verdict
// COMPILE_ERROR, INVALID_SUBMISSION or RESOURCE_EXCEEDED; Status is our failure (library missing, versions that do not
// match).
class Compiler {
 public:
  Compiler(std::unique_ptr<Frontend> frontend, std::unique_ptr<Linker> linker, CompilerConfig config);
  ~Compiler();
  // FAILED_PRECONDITION naming all three versions unless NVRTC, nvJitLink and the headers are of one release. Compile
  // returns it too.
  const Status& status() const { return status_; }
  v1::Toolchain toolchain() const;
  StatusOr<v1::internal::Program> Compile(const v1::internal::ProgramSource& source,
                                          const v1::internal::CompileLimits& limits);
  // Precompiles `headers` (see SharedHeaders) into the new file `path`. Later compiles, also in forks of this process
  // and nowhere else, use it where the result is the same without. Once. INVALID_ARGUMENT: they are something else than
  // shared headers; FAILED_PRECONDITION: they do not compile, or the library cannot (CUDA before 12.8).
  Status Precompile(const v1::internal::ProgramSource& headers, const std::string& path);

 private:
  std::unique_ptr<Frontend> frontend_;
  std::unique_ptr<Linker> linker_;
  CompilerConfig config_;
  std::unique_ptr<PrecompiledHeaders> precompiled_;
  Status status_;
};

// What the parent stores when it had to kill a compiler process. Time: COMPILE_ERROR "compile time limit"; memory:
// COMPILE_ERROR "compile memory limit". Toolchain and key are the caller's.
v1::internal::Program TimeLimitProgram(const v1::internal::ProgramSource& source,
                                       const v1::internal::CompileLimits& limits);
v1::internal::Program MemoryLimitProgram(const v1::internal::ProgramSource& source,
                                         const v1::internal::CompileLimits& limits);

// Where a CUDA toolkit lies: $SOLSTICE_CUDA_HOME and nowhere else, if it is set; otherwise the first complete one of a
// build tree's own (<source>/.toolkit), $CUDA_HOME, $CUDA_PATH, /usr/local/cuda. NOT_FOUND says what each lacks.
struct Toolkit {
  std::string root;   // has include/ and lib64/ or lib/
  std::string nvrtc;  // path of libnvrtc.so.<major>
  std::string nvrtc_builtins;
  std::string nvjitlink;
  std::string include;
};
StatusOr<Toolkit> FindToolkit();
// SHA-256 over names, sizes and contents of header trees, in the order given (a folder below an earlier one counts
// once). Reads everything: 28 MB and 2,000 files of a toolkit take about 60 ms once cached; call it once a process.
StatusOr<std::string> HeaderTreeDigest(const std::vector<std::string>& folders);

}  // namespace solstice::compile
