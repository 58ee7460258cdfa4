#include <cmath>
#include <set>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/plan/plan.h"
#include "server/pipeline/identity.h"
#include "server/pipeline/pipeline.h"

namespace solstice::pipeline {
namespace {

constexpr size_t kMaxNameBytes = 128;
constexpr size_t kMaxTextBytes = 4096;
constexpr size_t kMaxRequestIdBytes = 128;
constexpr double kMaxTimeoutS = 3600;

Status CheckText(std::string_view what, std::string_view text, size_t limit) {
  if (text.size() > limit) {
    return base::InvalidArgument(base::StrCat(what, ": ", text.size(), " bytes, the limit is ", limit));
  }
  if (!base::IsValidUtf8(text)) return base::InvalidArgument(base::StrCat(what, ": not valid UTF-8"));
  for (unsigned char c : text) {
    if (c < 0x20 && c != '\n' && c != '\t') {
      return base::InvalidArgument(base::StrCat(what, ": holds a control character"), "remove it");
    }
  }
  return absl::OkStatus();
}

Status CheckWorkloadChoice(const v1::EvaluationOptions& options, const v1::DefinitionBundle& bundle) {
  std::vector<std::string> known;
  for (const auto& workload : bundle.workloads()) known.push_back(workload.uuid());
  for (const auto& workload : bundle.companion().smoke_workloads()) known.push_back(workload.uuid());
  const std::set<std::string> index(known.begin(), known.end());
  std::set<std::string> seen;
  for (const std::string& uuid : options.workloads()) {
    if (index.count(uuid) == 0) {
      std::string nearest = base::Nearest(uuid, known);
      return base::NotFound(
          base::StrCat("options.workloads: ", bundle.version(), " has no workload ", base::Quote(uuid)),
          nearest.empty() ? "`solstice definitions NAME` lists them" : base::StrCat("did you mean ", nearest, "?"));
    }
    if (!seen.insert(uuid).second) {
      return base::InvalidArgument(base::StrCat("options.workloads: ", base::Quote(uuid), " is named twice"));
    }
  }
  return absl::OkStatus();
}

Status CheckOptionValues(const v1::EvaluationOptions& options) {
  if (!std::isfinite(options.timeout_s()) || options.timeout_s() < 0 || options.timeout_s() > kMaxTimeoutS) {
    return base::InvalidArgument(base::StrCat("options.timeout_s: must lie between 0 and ", kMaxTimeoutS, " seconds"));
  }
  if (!v1::DeviceKind_IsValid(options.device_kind())) {
    return base::InvalidArgument("options.device_kind: unknown value", "use EMULATOR or CUDA");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<v1::DefinitionBundle> FindBundle(const v1::Solution& solution, bool has_files,
                                          const v1::DefinitionFiles& files, const catalog::Catalog& catalog,
                                          bool accept_inline_definitions) {
  if (has_files) {
    if (!accept_inline_definitions) {
      return base::MakeStatus(absl::StatusCode::kPermissionDenied, "this server takes no definitions with a request",
                              "name one of its own (`solstice definitions`), or run a private server");
    }
    return catalog::BundleFromFiles(files);
  }
  if (solution.definition().empty()) {
    return base::InvalidArgument("solution.definition: empty", "name a definition, e.g. -d fused_add_rmsnorm_h2048");
  }
  SOLSTICE_ASSIGN_OR_RETURN(auto bundle, catalog.Find(solution.definition()));
  return *bundle;
}

StatusOr<v1::Solution> CheckSolution(const v1::Solution& solution) {
  v1::Solution checked = solution;
  SOLSTICE_RETURN_IF_ERROR(CheckText("solution.name", solution.name(), kMaxNameBytes));
  SOLSTICE_RETURN_IF_ERROR(CheckText("solution.author", solution.author(), kMaxNameBytes));
  SOLSTICE_RETURN_IF_ERROR(CheckText("solution.description", solution.description(), kMaxTextBytes));
  SOLSTICE_RETURN_IF_ERROR(compile::CheckSources(solution.sources()));
  SOLSTICE_ASSIGN_OR_RETURN(auto options, compile::CheckOptions(std::vector<std::string>(solution.options().begin(),
                                                                                         solution.options().end())));
  checked.mutable_options()->Assign(options.begin(), options.end());
  return checked;
}

StatusOr<ValidSubmission> Validate(const v1::SubmitRequest& request, const catalog::Catalog& catalog,
                                   bool accept_inline_definitions) {
  if (!request.has_solution()) return base::InvalidArgument("solution: missing");
  if (request.client_request_id().size() > kMaxRequestIdBytes) {
    return base::InvalidArgument(base::StrCat("client_request_id: over ", kMaxRequestIdBytes, " bytes"));
  }
  SOLSTICE_RETURN_IF_ERROR(CheckText("client_request_id", request.client_request_id(), kMaxRequestIdBytes));
  SOLSTICE_RETURN_IF_ERROR(CheckOptionValues(request.options()));

  ValidSubmission valid;
  SOLSTICE_ASSIGN_OR_RETURN(*valid.submission.mutable_solution(), CheckSolution(request.solution()));
  SOLSTICE_ASSIGN_OR_RETURN(valid.bundle, FindBundle(request.solution(), request.has_definition_files(),
                                                     request.definition_files(), catalog, accept_inline_definitions));
  if (valid.bundle.companion().reference_source().empty()) {
    return base::InvalidArgument(
        base::StrCat("definition ", valid.bundle.version(), " has no reference that this server can run"),
        "add a CUDA reference in its solstice.json (docs/formats/solstice-json.md)");
  }
  if (valid.bundle.workloads().empty() && valid.bundle.companion().smoke_workloads().empty()) {
    return base::InvalidArgument(base::StrCat("definition ", valid.bundle.version(), " has no workloads"));
  }
  SOLSTICE_RETURN_IF_ERROR(CheckWorkloadChoice(request.options(), valid.bundle));

  const v1::Solution& solution = valid.submission.solution();
  SOLSTICE_ASSIGN_OR_RETURN(auto lines, plan::PlanLines(solution));
  SOLSTICE_RETURN_IF_ERROR(plan::Plan::Parse(lines, &valid.bundle.definition()).status());

  valid.submission.mutable_solution()->set_definition(valid.bundle.version());
  valid.submission.set_schema_version(state::kSchemaVersion);
  *valid.submission.mutable_options() = request.options();
  valid.submission.set_definition_digest(valid.bundle.digest());
  valid.fields.set_solution_digest(SolutionDigest(solution));
  valid.submission.set_request_digest(
      RequestDigest(valid.fields.solution_digest(), valid.bundle.digest(), request.options()));
  valid.fields.set_definition(valid.bundle.version());
  valid.fields.set_solution(solution.name().empty() ? solution.sources(0).path() : solution.name());
  valid.fields.set_protocol(kProtocol);
  return valid;
}

}  // namespace solstice::pipeline
