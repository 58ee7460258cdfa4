#include "server/pipeline/identity.h"

#include "runtime/base/crypto.h"
#include "runtime/core/json.h"
#include "server/pipeline/pipeline.h"

namespace solstice::pipeline {
namespace {

using core::Json;

template <typename Strings>
Json List(const Strings& strings) {
  Json::Array array;
  for (const auto& text : strings) array.push_back(Json(std::string(text)));
  return Json(std::move(array));
}

// Protobuf's deterministic bytes are stable within a build, and the build is part of every key that holds them.
template <typename Message>
std::string Fingerprint(const Message& message) {
  return base::Hex(base::Sha256(message.SerializeAsString()));
}

}  // namespace

std::string SolutionDigest(const v1::Solution& solution) {
  Json::Array sources;
  for (const auto& file : solution.sources()) {
    Json entry;
    entry.Set("path", Json(file.path()));
    entry.Set("sha256", Json(base::Hex(base::Sha256(file.content()))));
    sources.push_back(std::move(entry));
  }
  Json json;
  json.Set("sources", Json(std::move(sources)));
  json.Set("options", List(solution.options()));
  json.Set("launch_plan", List(solution.launch_plan()));
  return base::Digest("solstice/solution/v1", json.Canonical());
}

std::string RequestDigest(const std::string& solution_digest, const std::string& definition_digest,
                          const v1::EvaluationOptions& options) {
  Json json;
  json.Set("solution", Json(solution_digest));
  json.Set("definition", Json(definition_digest));
  json.Set("workloads", List(options.workloads()));
  json.Set("quick", Json(options.quick()));
  json.Set("timeout_s", Json(options.timeout_s()));
  json.Set("allow_device_state", Json(options.allow_device_state()));
  json.Set("device_kind", Json(static_cast<int64_t>(options.device_kind())));
  json.Set("device_ordinal",
           options.has_device_ordinal() ? Json(static_cast<int64_t>(options.device_ordinal())) : Json(nullptr));
  json.Set("no_cache", Json(options.no_cache()));
  json.Set("timer", Json(static_cast<int64_t>(options.timer())));
  json.Set("strict", Json(options.strict()));
  if (options.keep_samples()) json.Set("keep_samples", Json(true));
  return base::Digest("solstice/request/v1", json.Canonical());
}

std::string ResultKey(const ResultIdentity& identity) {
  Json::Array workloads;
  for (const auto& workload : identity.workloads) workloads.push_back(Json(Fingerprint(workload)));
  v1::DeviceProperties device = identity.device;
  device.clear_ordinal();
  Json json;
  json.Set("solution", Json(identity.solution_digest));
  json.Set("definition", Json(identity.definition_digest));
  json.Set("workloads", Json(std::move(workloads)));
  json.Set("protocol", Json(identity.protocol));
  json.Set("allow_device_state", Json(identity.options.allow_device_state()));
  json.Set("strict", Json(identity.options.strict()));
  if (identity.options.keep_samples()) json.Set("keep_samples", Json(true));
  json.Set("timeout_s", Json(identity.timeout_s));
  json.Set("instruction_budget", Json(identity.instruction_budget));
  json.Set("device", Json(Fingerprint(device)));
  json.Set("toolchain", Json(Fingerprint(identity.toolchain)));
  json.Set("build", Json(identity.build_id));
  json.Set("environment", List(identity.environment));
  return base::Digest("solstice/result/v1", json.Canonical());
}

}  // namespace solstice::pipeline
