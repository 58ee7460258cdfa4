// The compile stage of one evaluation: specialise, compile every program and the reference's, report. Thread-safe over
// its arguments.
#pragma once

#include <string>

#include "server/pipeline/compiler_pool.h"
#include "server/pipeline/device_slot.h"

namespace solstice::pipeline {

struct CompileStageInput {
  std::string tenant, id;
  int attempt = 1;
  v1::StoredSubmission submission;
  v1::DefinitionBundle bundle;
  std::vector<v1::Workload> workloads;
  v1::DeviceProperties device;
};

struct CompileStageOutput {
  Runnable runnable;         // timeout, budget, seed are the caller's to fill
  v1::CompileReport report;  // of the submission's programs
};

// A Status is our failure.
StatusOr<CompileStageOutput> RunCompileStage(CompilerPool& pool, const CompileStageInput& input);

// The report over all programs of a submission: kernels and states merged, logs joined.
v1::CompileReport MakeReport(const std::vector<v1::internal::Program>& programs, bool cached, double milliseconds);

}  // namespace solstice::pipeline
