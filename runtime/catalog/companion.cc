#include <set>

#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"
#include "runtime/catalog/workload_reader.h"

namespace solstice::catalog {

using base::Quote;
using base::StrCat;
using core::Json;

namespace {

constexpr int64_t kVersion = 1;
constexpr size_t kMaxSmokeWorkloads = 64;
constexpr size_t kMaxParameters = 64;

Status ReadReference(const Field& reference, CompanionFile& result) {
  SOLSTICE_RETURN_IF_ERROR(reference.NeedObject());
  Field source = reference.Optional("source"), family = reference.Optional("family");
  if (source.present() == family.present()) {
    return reference.Error(
        "needs either \"source\" or \"family\"",
        "\"source\" names a .cu file beside solstice.json, \"family\" a folder of reference_kernels/");
  }
  if (source.present()) {
    SOLSTICE_ASSIGN_OR_RETURN(std::string path, source.String());
    std::string why_not = WhyNotRelativePath(path);
    if (!why_not.empty())
      return source.Error(StrCat("the path ", why_not), "name a file below the definition's folder");
    result.source = NormalPath(path);
    result.companion.set_reference_path(result.source);
    return absl::OkStatus();
  }
  SOLSTICE_ASSIGN_OR_RETURN(std::string name, family.String());
  if (!IsIdentifier(name)) return family.Error(StrCat(Quote(name), " is no name of a family"));
  result.family = name;
  result.companion.set_reference_path(StrCat("reference_kernels/", name, "/kernel.cu"));
  return absl::OkStatus();
}

Status ReadParameters(const Field& parameters, const v1::Definition& definition, v1::Companion& companion) {
  SOLSTICE_RETURN_IF_ERROR(parameters.NeedObject());
  std::set<std::string> taken;
  for (const v1::Axis& axis : definition.axes()) taken.insert(axis.name());
  for (const v1::Tensor& tensor : definition.inputs()) taken.insert(tensor.name());
  for (const v1::Tensor& tensor : definition.outputs()) taken.insert(tensor.name());
  if (parameters.json().object().size() > kMaxParameters) {
    return parameters.Error(StrCat("more than ", kMaxParameters, " parameters"));
  }
  for (const auto& member : parameters.json().object()) {
    Field field = parameters.Value(member);
    if (!IsIdentifier(member.first)) return field.Error("is no usable name", "use letters, digits and underscores");
    if (taken.count(member.first) > 0)
      return field.Error("the name is that of an axis or tensor", "rename the parameter");
    v1::NamedNumber& parameter = *companion.add_reference_parameters();
    parameter.set_name(member.first);
    if (field.json().is_integer()) {
      parameter.set_integer(field.json().integer());
    } else {
      SOLSTICE_ASSIGN_OR_RETURN(double number, field.Number());
      parameter.set_number(number);
    }
  }
  return absl::OkStatus();
}

Status ReadSmoke(const Field& smoke, const v1::Definition& definition, const std::vector<v1::Workload>& workloads,
                 v1::Companion& companion) {
  SOLSTICE_RETURN_IF_ERROR(smoke.NeedArray());
  size_t count = smoke.json().array().size();
  if (count > kMaxSmokeWorkloads) return smoke.Error(StrCat("more than ", kMaxSmokeWorkloads, " smoke workloads"));
  std::set<std::string> seen;
  for (size_t i = 0; i < count; ++i) {
    Field field = smoke.Element(i);
    v1::Workload workload;
    if (field.json().is_string()) {
      std::vector<std::string> uuids;
      for (const v1::Workload& known : workloads) {
        if (known.uuid() == field.json().string()) workload = known;
        uuids.push_back(known.uuid());
      }
      if (workload.uuid().empty()) {
        std::string near = base::Nearest(field.json().string(), uuids);
        return field.Error(StrCat("workload.jsonl has no workload ", Quote(field.json().string())),
                           near.empty() ? "" : StrCat("did you mean ", near, "?"));
      }
    } else if (field.json().is_object()) {
      SOLSTICE_ASSIGN_OR_RETURN(workload, ReadWorkload(field, definition, nullptr));
      for (const v1::Workload& known : workloads) {
        if (known.uuid() != workload.uuid()) continue;
        return field.Error(StrCat("workload.jsonl has a workload ", Quote(workload.uuid()), " too"),
                           "refer to it by its uuid, or give this one another");
      }
    } else {
      return field.WrongType("a uuid or a workload object");
    }
    if (!seen.insert(workload.uuid()).second) return field.Error(StrCat(Quote(workload.uuid()), " stands here twice"));
    for (const v1::InputSource& source : workload.inputs()) {
      // Smoke workloads must run anywhere, from the definition alone.
      if (source.has_safetensors()) return field.Error("a smoke workload cannot take inputs from safetensors files");
    }
    *companion.add_smoke_workloads() = std::move(workload);
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<CompanionFile> ParseCompanion(std::string_view text, std::string_view file, const v1::Definition& definition,
                                       const std::vector<v1::Workload>& workloads) {
  if (text.size() > static_cast<size_t>(kMaxDefinitionBytes)) {
    return base::InvalidArgument(StrCat(file, ": ", text.size(), " bytes, the limit is ", kMaxDefinitionBytes));
  }
  SOLSTICE_ASSIGN_OR_RETURN(Json json, core::ParseJson(text, file));
  Field root(json, file);
  SOLSTICE_ASSIGN_OR_RETURN(Field version_field, root.Member("version"));
  SOLSTICE_ASSIGN_OR_RETURN(int64_t version, version_field.Integer());
  if (version != kVersion) {
    return version_field.Error(StrCat("version ", version, " is not known here; this build reads version ", kVersion),
                               "write \"version\": 1, or use a newer build");
  }
  CompanionFile result;
  if (Field reference = root.Optional("reference"); reference.present()) {
    SOLSTICE_RETURN_IF_ERROR(ReadReference(reference, result));
  }
  if (Field parameters = root.Optional("parameters"); parameters.present()) {
    SOLSTICE_RETURN_IF_ERROR(ReadParameters(parameters, definition, result.companion));
  }
  if (Field smoke = root.Optional("smoke_workloads"); smoke.present()) {
    SOLSTICE_RETURN_IF_ERROR(ReadSmoke(smoke, definition, workloads, result.companion));
  }
  return result;
}

}  // namespace solstice::catalog
