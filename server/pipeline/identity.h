// Digests that decide what is the same: solutions, requests, results. Pure, thread-safe. docs/formats/digests.md lists
// what enters each.
#pragma once

#include <string>
#include <vector>

#include "solstice/v1/evaluation.pb.h"
#include "solstice/v1/service.pb.h"

namespace solstice::pipeline {

// Sources (paths and contents), options, plan; not name, author, description.
std::string SolutionDigest(const v1::Solution& solution);
// What client_request_id may not be reused for.
std::string RequestDigest(const std::string& solution_digest, const std::string& definition_digest,
                          const v1::EvaluationOptions& options);

struct ResultIdentity {
  std::string solution_digest;
  std::string definition_digest;
  std::vector<v1::Workload> workloads;  // in order
  v1::EvaluationOptions options;
  std::string protocol;  // with the timer: ProtocolName
  double timeout_s = 0;  // as it applies, defaults resolved
  double instruction_budget = 0;
  v1::DeviceProperties device;
  v1::Toolchain toolchain;
  std::string build_id;
  std::vector<std::string> environment;
};
// The result-cache key. Seed, priority and tenant stay out (the store scopes by tenant).
std::string ResultKey(const ResultIdentity& identity);

}  // namespace solstice::pipeline
