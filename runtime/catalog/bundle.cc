#include <fcntl.h>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/base/unique_fd.h"
#include "runtime/catalog/catalog.h"
#include "runtime/catalog/digest.h"
#include "runtime/catalog/safetensors.h"

namespace solstice::catalog {

using base::Quote;
using base::StrCat;

namespace {

constexpr char kDefinitionFile[] = "definition.json";
constexpr char kWorkloadFile[] = "workload.jsonl";
constexpr char kCompanionFile[] = "solstice.json";

// All of a bundle but what lies in other files: workload blobs and the reference's text.
struct Parsed {
  v1::Definition definition;
  std::vector<v1::Workload> workloads;
  CompanionFile companion;
};

StatusOr<Parsed> Parse(const v1::DefinitionFiles& files, std::vector<std::string>* notes) {
  Parsed parsed;
  SOLSTICE_ASSIGN_OR_RETURN(parsed.definition, ParseDefinition(files.definition_json(), kDefinitionFile));
  SOLSTICE_ASSIGN_OR_RETURN(parsed.workloads,
                            ParseWorkloads(files.workload_jsonl(), kWorkloadFile, parsed.definition, notes));
  if (!files.solstice_json().empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(
        parsed.companion, ParseCompanion(files.solstice_json(), kCompanionFile, parsed.definition, parsed.workloads));
  }
  return parsed;
}

// The bundle of parsed files and the reference's text.
StatusOr<v1::DefinitionBundle> Assemble(Parsed parsed, const std::string& reference_source) {
  v1::DefinitionBundle bundle;
  v1::Companion& companion = parsed.companion.companion;
  const std::string& path = companion.reference_path();
  if (path.empty() != reference_source.empty()) {
    return base::InvalidArgument(path.empty() ? StrCat("a reference source came, but ", kCompanionFile, " names none")
                                              : StrCat(kCompanionFile, ": $.reference: ", path, " is missing or empty"),
                                 path.empty() ? "name it under \"reference\"" : "add the file");
  }
  if (reference_source.size() > static_cast<size_t>(kMaxSourceBytes)) {
    return base::InvalidArgument(StrCat(path, ": ", reference_source.size(), " bytes, the limit is ", kMaxSourceBytes));
  }
  if (!base::IsValidUtf8(reference_source) || reference_source.find('\0') != std::string::npos) {
    return base::InvalidArgument(StrCat(path, ": is not UTF-8 text"));
  }
  companion.set_reference_source(reference_source);
  *bundle.mutable_definition() = std::move(parsed.definition);
  for (v1::Workload& workload : parsed.workloads) *bundle.add_workloads() = std::move(workload);
  *bundle.mutable_companion() = std::move(companion);
  SetVersion(bundle);
  return bundle;
}

// The safetensors inputs of one workload: the file, its header, the tensor's type and shape.
Status CheckBlobs(int folder_fd, const v1::Definition& definition, const v1::Workload& workload) {
  for (int i = 0; i < workload.inputs_size(); ++i) {
    const v1::InputSource& source = workload.inputs(i);
    if (!source.has_safetensors()) continue;
    const v1::Tensor& tensor = definition.inputs(i);
    SOLSTICE_ASSIGN_OR_RETURN(std::vector<v1::NamedInt> axes, ResolveAxes(definition, workload));
    SOLSTICE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ResolveShape(tensor, axes));
    auto file = SafetensorsFile::Open(folder_fd, source.safetensors().path());
    Status status = file.status();
    if (file.ok()) status = file->Find(source.safetensors().tensor_key(), tensor.dtype(), shape).status();
    if (!status.ok()) {
      return base::InvalidArgument(StrCat(kWorkloadFile, ": workload ", Quote(workload.uuid()), ", input ",
                                          Quote(tensor.name()), ": ", base::MessageOf(status)),
                                   base::MendOf(status));
    }
  }
  return absl::OkStatus();
}

StatusOr<std::string> ReadOptionalBeneath(int folder_fd, const char* name, int64_t limit_bytes) {
  auto content = base::ReadFileBeneath(folder_fd, name, limit_bytes);
  if (content.status().code() == absl::StatusCode::kNotFound) return std::string();
  return content;
}

struct Folder {
  base::UniqueFd fd;
  v1::DefinitionFiles files;
  Parsed parsed;
};

StatusOr<Folder> ReadAndParse(const std::string& path, const std::string& reference_kernels,
                              std::vector<std::string>* notes) {
  Folder folder;
  base::UniqueFd& fd = folder.fd;
  fd = base::UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return base::FromErrno(errno, path);
  SOLSTICE_ASSIGN_OR_RETURN(*folder.files.mutable_definition_json(),
                            base::ReadFileBeneath(fd.get(), kDefinitionFile, kMaxDefinitionBytes));
  SOLSTICE_ASSIGN_OR_RETURN(*folder.files.mutable_workload_jsonl(),
                            ReadOptionalBeneath(fd.get(), kWorkloadFile, kMaxWorkloadBytes));
  SOLSTICE_ASSIGN_OR_RETURN(*folder.files.mutable_solstice_json(),
                            ReadOptionalBeneath(fd.get(), kCompanionFile, kMaxDefinitionBytes));
  SOLSTICE_ASSIGN_OR_RETURN(folder.parsed, Parse(folder.files, notes));
  const CompanionFile& companion = folder.parsed.companion;
  if (!companion.source.empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(*folder.files.mutable_reference_source(),
                              base::ReadFileBeneath(fd.get(), companion.source, kMaxSourceBytes));
  } else if (!companion.family.empty()) {
    std::string kernel = StrCat(companion.family, "/kernel.cu");
    base::UniqueFd root(
        reference_kernels.empty() ? -1 : ::open(reference_kernels.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    auto source = root.valid() ? base::ReadFileBeneath(root.get(), kernel, kMaxSourceBytes)
                               : StatusOr<std::string>(base::NotFound("no reference kernels here"));
    if (!source.ok()) {
      return base::InvalidArgument(StrCat(kCompanionFile, ": $.reference.family: no reference kernel ",
                                          Quote(companion.family), ": ", base::MessageOf(source.status())),
                                   "name a folder of reference_kernels/, or give \"source\"");
    }
    folder.files.set_reference_source(std::move(*source));
  }
  return folder;
}

}  // namespace

StatusOr<v1::DefinitionBundle> BundleFromFiles(const v1::DefinitionFiles& files) {
  SOLSTICE_ASSIGN_OR_RETURN(Parsed parsed, Parse(files, nullptr));
  for (const v1::Workload& workload : parsed.workloads) {
    for (const v1::InputSource& source : workload.inputs()) {
      if (!source.has_safetensors()) continue;
      return base::InvalidArgument(
          StrCat(kWorkloadFile, ": workload ", Quote(workload.uuid()), ", input ", Quote(source.name()), ": ",
                 Quote(source.safetensors().path()), " did not come with the request: safetensors files are not sent"),
          "put the folder below one of the server's definition_roots, or leave such workloads out");
    }
  }
  return Assemble(std::move(parsed), files.reference_source());
}

StatusOr<v1::DefinitionFiles> ReadFolder(const std::string& folder, const std::string& reference_kernels) {
  SOLSTICE_ASSIGN_OR_RETURN(Folder read, ReadAndParse(folder, reference_kernels, nullptr));
  for (const v1::Workload& workload : read.parsed.workloads) {
    SOLSTICE_RETURN_IF_ERROR(CheckBlobs(read.fd.get(), read.parsed.definition, workload));
  }
  return std::move(read.files);
}

StatusOr<v1::DefinitionBundle> BundleFromFolder(const std::string& folder, const std::string& reference_kernels,
                                                FolderReport& report) {
  SOLSTICE_ASSIGN_OR_RETURN(Folder read, ReadAndParse(folder, reference_kernels, &report.notes));
  std::vector<v1::Workload> sound;
  for (v1::Workload& workload : read.parsed.workloads) {
    Status status = CheckBlobs(read.fd.get(), read.parsed.definition, workload);
    if (status.ok()) {
      sound.push_back(std::move(workload));
    } else {
      report.left_out.push_back(base::MessageOf(status));
    }
  }
  read.parsed.workloads = std::move(sound);
  return Assemble(std::move(read.parsed), read.files.reference_source());
}

}  // namespace solstice::catalog
