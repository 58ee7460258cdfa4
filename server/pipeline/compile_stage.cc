#include "server/pipeline/compile_stage.h"

#include <algorithm>
#include <future>

#include "runtime/base/clock.h"
#include "runtime/base/strings.h"

namespace solstice::pipeline {
namespace {

StatusOr<std::vector<v1::internal::Program>> CompileAll(CompilerPool& pool, const std::string& tenant,
                                                        const std::string& owner,
                                                        const std::vector<v1::internal::ProgramSource>& sources,
                                                        bool* all_cached) {
  std::vector<v1::internal::Program> programs;
  *all_cached = !sources.empty();
  for (const auto& source : sources) {
    SOLSTICE_ASSIGN_OR_RETURN(auto compiled, pool.Compile(tenant, owner, source));
    *all_cached = *all_cached && compiled.cached;
    programs.push_back(std::move(compiled.program));
  }
  return programs;
}

// Whether every program came from the cache.
StatusOr<bool> CompileSolution(CompilerPool& pool, const CompileStageInput& input, Runnable* runnable) {
  SOLSTICE_ASSIGN_OR_RETURN(
      runnable->solution,
      SpecialiseSolution(input.submission.solution(), input.bundle.definition(), input.workloads, input.device));
  bool cached = false;
  SOLSTICE_ASSIGN_OR_RETURN(runnable->programs,
                            CompileAll(pool, input.tenant, input.id, runnable->solution.programs, &cached));
  return cached;
}

struct Reference {
  Specialisation specialisation;
  std::vector<v1::internal::Program> programs;
};

StatusOr<Reference> CompileReference(CompilerPool& pool, const CompileStageInput& input) {
  Reference reference;
  auto specialised = SpecialiseReference(input.bundle, input.workloads, input.device);
  if (!specialised.ok()) {
    // The reference's plan itself is wrong: every workload says so.
    for (const auto& workload : input.workloads) {
      WorkloadPlan broken;
      broken.workload = workload;
      broken.rejection.verdict = v1::INVALID_REFERENCE;
      broken.rejection.reason = base::MessageOf(specialised.status());
      broken.rejection.mend = base::MendOf(specialised.status());
      reference.specialisation.workloads.push_back(std::move(broken));
    }
    return reference;
  }
  reference.specialisation = *std::move(specialised);
  bool cached = false;
  SOLSTICE_ASSIGN_OR_RETURN(reference.programs,
                            CompileAll(pool, input.tenant, input.id, reference.specialisation.programs, &cached));
  return reference;
}

}  // namespace

v1::CompileReport MakeReport(const std::vector<v1::internal::Program>& programs, bool cached, double milliseconds) {
  v1::CompileReport report;
  report.set_cached(cached);
  report.set_milliseconds(milliseconds);
  report.set_programs(static_cast<int>(programs.size()));
  for (const auto& program : programs) {
    auto add_once = [](auto* list, const auto& item, auto same) {
      if (std::none_of(list->begin(), list->end(), [&](const auto& other) { return same(other, item); })) {
        *list->Add() = item;
      }
    };
    for (const auto& kernel : program.kernels()) {
      add_once(report.mutable_kernels(), kernel, [](const auto& a, const auto& b) {
        return a.name() == b.name() && a.registers() == b.registers() && a.local_bytes() == b.local_bytes();
      });
    }
    for (const auto& state : program.device_state()) {
      add_once(report.mutable_device_state(), state,
               [](const auto& a, const auto& b) { return a.variable() == b.variable(); });
    }
    for (const auto& mode : program.math_modes()) {
      add_once(report.mutable_math_modes(), mode, [](const auto& a, const auto& b) { return a == b; });
    }
    // Programs of one source mostly say the same; the first that says something, and failures, are kept.
    if (report.log().empty() || program.verdict() != v1::PASSED) {
      report.set_log(program.log());
      report.set_log_bytes(program.log_bytes());
      report.set_log_dropped_bytes(program.log_dropped_bytes());
    }
    report.set_arch(program.arch());
    *report.mutable_toolchain() = program.toolchain();
  }
  return report;
}

StatusOr<CompileStageOutput> RunCompileStage(CompilerPool& pool, const CompileStageInput& input) {
  CompileStageOutput output;
  Runnable& runnable = output.runnable;
  runnable.tenant = input.tenant;
  runnable.id = input.id;
  runnable.attempt = input.attempt;
  runnable.definition = input.bundle.definition();
  runnable.allow_device_state = input.submission.options().allow_device_state();
  runnable.strict = input.submission.options().strict();
  runnable.keep_samples = input.submission.options().keep_samples();

  // The reference compiles beside the submission: mostly it is cached, and the first time nobody waits for two
  // compiles.
  auto reference = std::async(std::launch::async, [&] { return CompileReference(pool, input); });
  base::Stopwatch watch;
  auto own = CompileSolution(pool, input, &runnable);
  output.report = MakeReport(runnable.programs, own.ok() && *own, watch.milliseconds());
  StatusOr<Reference> compiled_reference = reference.get();
  SOLSTICE_RETURN_IF_ERROR(own.status());
  SOLSTICE_RETURN_IF_ERROR(compiled_reference.status());
  runnable.reference = std::move(compiled_reference->specialisation);
  runnable.reference_programs = std::move(compiled_reference->programs);
  return output;
}

}  // namespace solstice::pipeline
