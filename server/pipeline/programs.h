// Specialisation of an evaluation: which workloads run which program with which plan. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/plan/plan.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::pipeline {

inline constexpr int kMaxPrograms = 32;

struct WorkloadPlan {
  v1::Workload workload;
  plan::Rejection rejection;           // set: it never runs
  v1::internal::SpecialisedPlan plan;  // plan.program() indexes Specialisation::programs
};

struct Specialisation {
  std::vector<WorkloadPlan> workloads;
  std::vector<v1::internal::ProgramSource> programs;  // one for each distinct define set, all its names together
};

// The submission's plan for each workload. More than kMaxPrograms define sets: the workloads beyond are rejected.
StatusOr<Specialisation> SpecialiseSolution(const v1::Solution& solution, const v1::Definition& definition,
                                            const std::vector<v1::Workload>& workloads,
                                            const v1::DeviceProperties& device);
// The reference's, with its parameters.
StatusOr<Specialisation> SpecialiseReference(const v1::DefinitionBundle& bundle,
                                             const std::vector<v1::Workload>& workloads,
                                             const v1::DeviceProperties& device);

// Named workloads in the order asked for; else the smoke workloads when `smoke` (and there are any); else all.
// `complete` tells whether they cover every workload of the definition.
std::vector<v1::Workload> ChooseWorkloads(const v1::DefinitionBundle& bundle, const v1::EvaluationOptions& options,
                                          bool smoke, bool* complete);

}  // namespace solstice::pipeline
