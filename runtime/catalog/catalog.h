// Definitions: the public JSON files, what stands beside them, and folders of them.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "solstice/v1/definition.pb.h"
#include "solstice/v1/solution.pb.h"

namespace solstice::catalog {

// Limits on files from outside.
inline constexpr int64_t kMaxDefinitionBytes = 4 << 20;
inline constexpr int64_t kMaxWorkloadBytes = 16 << 20;
inline constexpr int64_t kMaxSourceBytes = 1 << 20;
inline constexpr int kMaxWorkloads = 4096;
inline constexpr int kMaxTensors = 64;
inline constexpr int kMaxRank = 8;
// Most bytes of one tensor.
inline constexpr int64_t kMaxTensorBytes = int64_t{1} << 40;

// Each error: "<file>:<line>:<column>: <JSON path>: <reason>", with a mend.
StatusOr<v1::Definition> ParseDefinition(std::string_view text, std::string_view file);
// One JSON object a line; blank lines and CRLF allowed. Checked against `definition` (axes, inputs, sizes). uuids are
// unique. Axes and inputs that the definition lacks are ignored; `notes`, if given, gets a line for each such name.
StatusOr<std::vector<v1::Workload>> ParseWorkloads(std::string_view text, std::string_view file,
                                                   const v1::Definition& definition,
                                                   std::vector<std::string>* notes = nullptr);
// solstice.json. Its reference names a file, which the caller reads; smoke workloads are whole, those named by uuid
// taken from `workloads`.
struct CompanionFile {
  v1::Companion companion;  // reference_source still empty
  std::string source;       // "reference": {"source": "reference.cu"}: a file beside; or
  std::string family;       // "reference": {"family": "rmsnorm"}: reference_kernels/<family>/kernel.cu
};
StatusOr<CompanionFile> ParseCompanion(std::string_view text, std::string_view file, const v1::Definition& definition,
                                       const std::vector<v1::Workload>& workloads);
// solution.json in the SOL-ExecBench schema plus spec.launch_plan and spec.options.
StatusOr<v1::Solution> ParseSolution(std::string_view text, std::string_view file);

// From the files of a folder as bytes. Fills digest and version. Workload blobs are not available then: a workload that
// names one is refused.
StatusOr<v1::DefinitionBundle> BundleFromFiles(const v1::DefinitionFiles& files);
// The same files read from a folder (definition.json needed, the rest optional) and checked; a workload whose
// safetensors file is bad refuses the folder. `reference_kernels` is the root of the families, "" if none. For clients
// that send a folder.
StatusOr<v1::DefinitionFiles> ReadFolder(const std::string& folder, const std::string& reference_kernels);

// A definition folder for a catalogue. Safetensors files that workloads name are opened below the folder and checked
// (header, offsets, type, shape); a workload whose file is missing or bad is left out, and `left_out` says which, with
// file, tensor and reason. `notes` as above.
struct FolderReport {
  std::vector<std::string> notes, left_out;
};
StatusOr<v1::DefinitionBundle> BundleFromFolder(const std::string& folder, const std::string& reference_kernels,
                                                FolderReport& report);

// The value of every axis for a workload, variable, constant and expression axes, in definition order.
// INVALID_ARGUMENT: missing or cyclic or overflowing.
StatusOr<std::vector<v1::NamedInt>> ResolveAxes(const v1::Definition& definition, const v1::Workload& workload);
// Sizes of a tensor's dimensions. INVALID_ARGUMENT for a negative size or more than kMaxTensorBytes.
StatusOr<std::vector<int64_t>> ResolveShape(const v1::Tensor& tensor, const std::vector<v1::NamedInt>& axes);
StatusOr<int64_t> TensorBytes(const v1::Tensor& tensor, const std::vector<v1::NamedInt>& axes);

// "name", "name@digest12": name grammar [A-Za-z0-9_][A-Za-z0-9_.-]{0,127}.
bool IsValidName(std::string_view name);

// Every definition below a set of roots. Immutable after Load; thread-safe.
class Catalog {
 public:
  // Reads <root>/**/definition.json (at most 3 folders deep). A broken folder does not stop the others: see problems().
  static StatusOr<std::unique_ptr<Catalog>> Load(const std::vector<std::string>& roots,
                                                 const std::string& reference_kernels);

  // By name or version. NOT_FOUND names the nearest.
  StatusOr<std::shared_ptr<const v1::DefinitionBundle>> Find(std::string_view name) const;
  std::vector<std::shared_ptr<const v1::DefinitionBundle>> All() const;
  // Folders and workloads that were left out, and why.
  const std::vector<std::string>& problems() const { return problems_; }
  // What was ignored in folders that were taken.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  std::map<std::string, std::shared_ptr<const v1::DefinitionBundle>, std::less<>> by_name_;
  std::vector<std::string> problems_, notes_;
};

}  // namespace solstice::catalog
