#include "server/pipeline/programs.h"

#include <algorithm>
#include <map>
#include <set>

#include "runtime/base/strings.h"

namespace solstice::pipeline {
namespace {

StatusOr<Specialisation> SpecialiseAll(const plan::Plan& plan, const v1::internal::ProgramSource& base_source,
                                       const v1::Definition& definition, const std::vector<v1::Workload>& workloads,
                                       const std::vector<v1::NamedNumber>& parameters,
                                       const v1::DeviceProperties& device) {
  Specialisation result;
  std::map<std::vector<std::string>, int> index_by_defines;
  for (const v1::Workload& workload : workloads) {
    WorkloadPlan entry;
    entry.workload = workload;
    SOLSTICE_ASSIGN_OR_RETURN(auto specialised, plan::Specialise(plan, definition, workload, parameters, device));
    entry.rejection = std::move(specialised.rejection);
    entry.plan = std::move(specialised.plan);
    if (!entry.rejection.rejected()) {
      std::vector<std::string> defines(entry.plan.defines().begin(), entry.plan.defines().end());
      auto found = index_by_defines.find(defines);
      if (found == index_by_defines.end() && result.programs.size() >= kMaxPrograms) {
        entry.rejection.verdict = v1::INVALID_SUBMISSION;
        entry.rejection.reason =
            base::StrCat("the plan's defines make more than ", kMaxPrograms, " different programs");
        entry.rejection.mend = "use fewer distinct values in `define`, or template arguments instead";
      } else {
        if (found == index_by_defines.end()) {
          found = index_by_defines.emplace(defines, static_cast<int>(result.programs.size())).first;
          result.programs.push_back(base_source);
          result.programs.back().mutable_defines()->Assign(defines.begin(), defines.end());
        }
        entry.plan.set_program(found->second);
        auto* names = result.programs[static_cast<size_t>(found->second)].mutable_name_expressions();
        for (const std::string& name : entry.plan.name_expressions()) {
          if (std::find(names->begin(), names->end(), name) == names->end()) names->Add(std::string(name));
        }
      }
    }
    result.workloads.push_back(std::move(entry));
  }
  // The order of workloads must not decide the compile key.
  for (auto& program : result.programs) {
    std::sort(program.mutable_name_expressions()->begin(), program.mutable_name_expressions()->end());
  }
  return result;
}

}  // namespace

StatusOr<Specialisation> SpecialiseSolution(const v1::Solution& solution, const v1::Definition& definition,
                                            const std::vector<v1::Workload>& workloads,
                                            const v1::DeviceProperties& device) {
  SOLSTICE_ASSIGN_OR_RETURN(auto lines, plan::PlanLines(solution));
  SOLSTICE_ASSIGN_OR_RETURN(auto plan, plan::Plan::Parse(lines, &definition));
  v1::internal::ProgramSource source;
  *source.mutable_sources() = solution.sources();
  *source.mutable_options() = solution.options();
  source.set_arch(device.arch());
  return SpecialiseAll(plan, source, definition, workloads, {}, device);
}

StatusOr<Specialisation> SpecialiseReference(const v1::DefinitionBundle& bundle,
                                             const std::vector<v1::Workload>& workloads,
                                             const v1::DeviceProperties& device) {
  const v1::Companion& companion = bundle.companion();
  auto lines = plan::ExtractPlanLines(companion.reference_path(), companion.reference_source());
  SOLSTICE_ASSIGN_OR_RETURN(auto plan, plan::Plan::Parse(lines, &bundle.definition()));
  v1::internal::ProgramSource source;
  auto* file = source.add_sources();
  file->set_path("reference.cu");
  file->set_content(companion.reference_source());
  source.set_arch(device.arch());
  return SpecialiseAll(plan, source, bundle.definition(), workloads,
                       {companion.reference_parameters().begin(), companion.reference_parameters().end()}, device);
}

std::vector<v1::Workload> ChooseWorkloads(const v1::DefinitionBundle& bundle, const v1::EvaluationOptions& options,
                                          bool smoke, bool* complete) {
  std::vector<v1::Workload> chosen;
  const auto& all = bundle.workloads();
  const auto& smokes = bundle.companion().smoke_workloads();
  if (!options.workloads().empty()) {
    for (const std::string& uuid : options.workloads()) {
      auto find = [&](const auto& list) {
        return std::find_if(list.begin(), list.end(), [&](const auto& w) { return w.uuid() == uuid; });
      };
      if (auto it = find(all); it != all.end()) {
        chosen.push_back(*it);
      } else if (auto other = find(smokes); other != smokes.end()) {
        chosen.push_back(*other);
      }
    }
  } else if ((smoke || options.quick()) && !smokes.empty()) {
    chosen.assign(smokes.begin(), smokes.end());
  } else {
    chosen.assign(all.begin(), all.end());
  }
  std::set<std::string> uuids;
  for (const auto& workload : chosen) uuids.insert(workload.uuid());
  *complete = std::all_of(all.begin(), all.end(), [&](const auto& w) { return uuids.count(w.uuid()) > 0; });
  return chosen;
}

}  // namespace solstice::pipeline
