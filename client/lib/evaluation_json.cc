#include "client/lib/evaluation_json.h"

#include <cmath>

#include "client/lib/doctor.h"
#include "runtime/base/strings.h"

namespace solstice::client {
namespace {

using core::Json;

Json TextOrNull(const std::string& text) { return text.empty() ? Json(nullptr) : Json(text); }

// Sets `name`, or null and its name in `non_finite`.
void SetNumber(Json* object, const char* name, double value, Json::Array* non_finite) {
  if (std::isfinite(value)) {
    object->Set(name, Json(value));
  } else {
    object->Set(name, Json(nullptr));
    non_finite->push_back(Json(name));
  }
}

Json Microseconds(int64_t nanoseconds) {
  return nanoseconds > 0 ? Json(static_cast<double>(nanoseconds) * 1e-3) : Json(nullptr);
}

template <typename Strings>
Json StringList(const Strings& strings) {
  Json::Array array;
  for (const auto& text : strings) array.push_back(Json(std::string(text)));
  return Json(std::move(array));
}

Json KernelJson(const v1::Kernel& kernel) {
  Json json;
  json.Set("name", Json(kernel.name()));
  json.Set("name_expression", TextOrNull(kernel.name_expression()));
  json.Set("registers", Json(static_cast<int64_t>(kernel.registers())));
  json.Set("static_shared_bytes", Json(static_cast<int64_t>(kernel.static_shared_bytes())));
  json.Set("local_bytes", Json(static_cast<int64_t>(kernel.local_bytes())));
  json.Set("spill_store_bytes", Json(static_cast<int64_t>(kernel.spill_store_bytes())));
  json.Set("spill_load_bytes", Json(static_cast<int64_t>(kernel.spill_load_bytes())));
  json.Set("max_threads", Json(static_cast<int64_t>(kernel.max_threads())));
  Json::Array parameters;
  for (const auto& parameter : kernel.parameters()) {
    Json entry;
    entry.Set("type", Json(parameter.type()));
    entry.Set("bytes", Json(static_cast<int64_t>(parameter.bytes())));
    parameters.push_back(std::move(entry));
  }
  json.Set("parameters", Json(std::move(parameters)));
  json.Set("needs_device", StringList(kernel.needs_device()));
  return json;
}

Json ReportJson(const v1::CompileReport& report) {
  Json json;
  json.Set("cached", Json(report.cached()));
  json.Set("milliseconds", Json(report.milliseconds()));
  json.Set("arch", TextOrNull(report.arch()));
  json.Set("programs", Json(static_cast<int64_t>(report.programs())));
  Json::Array kernels;
  for (const auto& kernel : report.kernels()) kernels.push_back(KernelJson(kernel));
  json.Set("kernels", Json(std::move(kernels)));
  Json::Array states;
  for (const auto& state : report.device_state()) {
    Json entry;
    entry.Set("variable", Json(state.variable()));
    entry.Set("file", TextOrNull(state.file()));
    entry.Set("line", Json(static_cast<int64_t>(state.line())));
    entry.Set("bytes", Json(static_cast<int64_t>(state.bytes())));
    states.push_back(std::move(entry));
  }
  json.Set("device_state", Json(std::move(states)));
  json.Set("math_modes", StringList(report.math_modes()));
  Json toolchain;
  toolchain.Set("nvrtc", TextOrNull(report.toolchain().nvrtc()));
  toolchain.Set("nvjitlink", TextOrNull(report.toolchain().nvjitlink()));
  toolchain.Set("headers_digest", TextOrNull(report.toolchain().headers_digest()));
  json.Set("toolchain", std::move(toolchain));
  json.Set("log", Json(report.log()));
  json.Set("log_bytes", Json(static_cast<int64_t>(report.log_bytes())));
  json.Set("log_dropped_bytes", Json(static_cast<int64_t>(report.log_dropped_bytes())));
  return json;
}

Json OutputJson(const v1::OutputComparison& output) {
  Json json;
  Json::Array non_finite;
  json.Set("name", Json(output.name()));
  json.Set("elements", Json(static_cast<int64_t>(output.elements())));
  SetNumber(&json, "max_absolute_error", output.max_absolute_error(), &non_finite);
  SetNumber(&json, "max_relative_error", output.max_relative_error(), &non_finite);
  SetNumber(&json, "matched_ratio", output.matched_ratio(), &non_finite);
  Json::Array failures;
  for (const auto& failure : output.first_failures()) {
    Json entry;
    Json::Array flags, index;
    for (int64_t position : failure.index()) index.push_back(Json(position));
    entry.Set("index", Json(std::move(index)));
    SetNumber(&entry, "actual", failure.actual(), &flags);
    SetNumber(&entry, "expected", failure.expected(), &flags);
    entry.Set("non_finite", Json(std::move(flags)));
    failures.push_back(std::move(entry));
  }
  json.Set("first_failures", Json(std::move(failures)));
  json.Set("non_finite", Json(std::move(non_finite)));
  return json;
}

Json FindingJson(const v1::Finding& finding) {
  Json json;
  json.Set("kind", Json(v1::Finding::Kind_Name(finding.kind())));
  json.Set("message", Json(finding.message()));
  json.Set("kernel", Json(finding.kernel()));
  json.Set("file", TextOrNull(finding.file()));
  json.Set("line", finding.line() > 0 ? Json(static_cast<int64_t>(finding.line())) : Json(nullptr));
  Json::Array block, thread;
  for (int64_t index : finding.block()) block.push_back(Json(index));
  for (int64_t index : finding.thread()) thread.push_back(Json(index));
  json.Set("block", Json(std::move(block)));
  json.Set("thread", Json(std::move(thread)));
  json.Set("address", Json(base::StrCat(finding.address())));
  json.Set("buffer", TextOrNull(finding.buffer()));
  json.Set("other_file", TextOrNull(finding.other_file()));
  json.Set("other_line", finding.other_line() > 0 ? Json(static_cast<int64_t>(finding.other_line())) : Json(nullptr));
  json.Set("count", Json(static_cast<int64_t>(finding.count())));
  return json;
}

std::string FreshnessName(v1::Freshness freshness) {
  return freshness == v1::FULL ? "full" : freshness == v1::PARTIAL ? "partial" : "none";
}

Json StatisticsJson(const v1::LatencyStatistics& statistics) {
  Json json;
  json.Set("samples", Json(static_cast<int64_t>(statistics.samples())));
  json.Set("minimum_us", Microseconds(statistics.minimum_ns()));
  json.Set("p5_us", Microseconds(statistics.p5_ns()));
  json.Set("median_us", Microseconds(statistics.median_ns()));
  json.Set("p95_us", Microseconds(statistics.p95_ns()));
  json.Set("mean_us", Json(statistics.mean_ns() * 1e-3));
  json.Set("deviation_us", Json(static_cast<double>(statistics.deviation_ns()) * 1e-3));
  json.Set("interval_us", Json(Json::Array{Microseconds(statistics.low_ns()), Microseconds(statistics.high_ns())}));
  json.Set("stopped", TextOrNull(statistics.stopped()));
  return json;
}

Json WorkloadJson(const v1::WorkloadResult& result) {
  Json json;
  Json::Array non_finite;
  json.Set("uuid", Json(result.uuid()));
  Json axes{Json::Object{}};
  for (const auto& axis : result.axes()) axes.Set(axis.name(), Json(static_cast<int64_t>(axis.value())));
  json.Set("axes", std::move(axes));
  json.Set("status", Json(VerdictName(result.verdict())));
  json.Set("reason", TextOrNull(result.reason()));
  json.Set("mend", TextOrNull(result.mend()));
  if (result.compared()) {
    SetNumber(&json, "max_absolute_error", result.max_absolute_error(), &non_finite);
    SetNumber(&json, "max_relative_error", result.max_relative_error(), &non_finite);
    SetNumber(&json, "matched_ratio", result.matched_ratio(), &non_finite);
  } else {
    for (const char* name : {"max_absolute_error", "max_relative_error", "matched_ratio"})
      json.Set(name, Json(nullptr));
  }
  json.Set("latency_us", Microseconds(result.latency_ns()));
  json.Set("latency_samples", Json(static_cast<int64_t>(result.latency_samples())));
  json.Set("clock_excess_us",
           result.latency_samples() > 0 ? Json(static_cast<double>(result.clock_excess_ns()) * 1e-3) : Json(nullptr));
  json.Set("statistics", result.has_statistics() ? StatisticsJson(result.statistics()) : Json(nullptr));
  if (result.samples_ns_size() > 0) {
    Json::Array samples;
    for (const int64_t sample : result.samples_ns()) samples.push_back(Microseconds(sample));
    json.Set("samples_us", Json(std::move(samples)));
  }
  json.Set("freshness",
           result.freshness() == v1::FRESHNESS_UNSPECIFIED ? Json(nullptr) : Json(FreshnessName(result.freshness())));
  json.Set("timed_compared", Json(static_cast<int64_t>(result.timed_compared())));
  json.Set("timed_total", Json(static_cast<int64_t>(result.timed_total())));
  json.Set("reference_latency_us", Microseconds(result.reference_latency_ns()));
  json.Set("speedup",
           result.latency_ns() > 0 && result.reference_latency_ns() > 0
               ? Json(static_cast<double>(result.reference_latency_ns()) / static_cast<double>(result.latency_ns()))
               : Json(nullptr));
  Json::Array outputs;
  for (const auto& output : result.outputs()) outputs.push_back(OutputJson(output));
  json.Set("outputs", Json(std::move(outputs)));
  json.Set("instructions", Json(static_cast<int64_t>(result.instructions())));
  json.Set("run_milliseconds", Json(result.run_milliseconds()));
  json.Set("device_output", TextOrNull(result.device_output()));
  json.Set("warnings", StringList(result.warnings()));
  Json::Array findings;
  for (const v1::Finding& finding : result.findings()) findings.push_back(FindingJson(finding));
  json.Set("findings", Json(std::move(findings)));
  json.Set("non_finite", Json(std::move(non_finite)));
  return json;
}

Json DeviceJson(const v1::DeviceProperties& device) {
  Json json;
  json.Set("kind", TextOrNull(DeviceName(device.kind())));
  json.Set("name", TextOrNull(device.name()));
  json.Set("arch", TextOrNull(device.arch()));
  json.Set("ordinal", Json(static_cast<int64_t>(device.ordinal())));
  return json;
}

std::string Rfc3339(const google::protobuf::Timestamp& time) {
  time_t seconds = time.seconds();
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[40];
  size_t n = strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  char fraction[8];
  std::snprintf(fraction, sizeof fraction, ".%03dZ", time.nanos() / 1000000 % 1000);
  return std::string(text, n) + fraction;
}

Json ErrorBody(const std::string& code, const std::string& reason, const std::string& mend) {
  Json body;
  body.Set("code", Json(code));
  body.Set("reason", Json(reason));
  body.Set("mend", TextOrNull(mend));
  return body;
}

Json SummaryJson(const v1::Evaluation& evaluation) {
  Json json;
  json.Set("evaluation_id", Json(evaluation.id()));
  json.Set("definition", Json(evaluation.definition()));
  json.Set("solution", Json(evaluation.solution()));
  json.Set("state", Json(StateName(evaluation.state())));
  json.Set("verdict", evaluation.state() == v1::COMPLETED ? Json(VerdictName(evaluation.verdict())) : Json(nullptr));
  json.Set("complete", Json(evaluation.complete()));
  json.Set("cached", Json(evaluation.cached()));
  json.Set("reason", TextOrNull(evaluation.reason()));
  json.Set("mend", TextOrNull(evaluation.mend()));
  json.Set("attempt", Json(static_cast<int64_t>(evaluation.attempt())));
  json.Set("created", evaluation.has_created() ? Json(Rfc3339(evaluation.created())) : Json(nullptr));
  json.Set("finished", evaluation.has_finished() ? Json(Rfc3339(evaluation.finished())) : Json(nullptr));
  return json;
}

}  // namespace

std::string VerdictName(v1::Verdict verdict) {
  return verdict == v1::VERDICT_UNSPECIFIED ? "" : v1::Verdict_Name(verdict);
}
std::string StateName(v1::EvaluationState state) {
  return state == v1::EVALUATION_STATE_UNSPECIFIED ? "" : v1::EvaluationState_Name(state);
}
std::string DeviceName(v1::DeviceKind kind) {
  return kind == v1::EMULATOR ? "emulator" : kind == v1::CUDA ? "cuda" : "";
}
std::string CodeName(absl::StatusCode code) { return absl::StatusCodeToString(code); }

core::Json EvaluationJson(const v1::Evaluation& evaluation) {
  Json json = SummaryJson(evaluation);
  json.Set("device", DeviceJson(evaluation.device()));
  json.Set("compile", ReportJson(evaluation.compile()));
  Json::Array workloads;
  for (const auto& result : evaluation.workloads()) workloads.push_back(WorkloadJson(result));
  json.Set("workloads", Json(std::move(workloads)));
  json.Set("error", evaluation.state() == v1::FAILED
                        ? ErrorBody(CodeName(static_cast<absl::StatusCode>(evaluation.error().code())),
                                    evaluation.error().reason(), evaluation.error().mend())
                        : Json(nullptr));
  json.Set("protocol", TextOrNull(evaluation.protocol()));
  json.Set("ranked", Json(evaluation.ranked()));
  json.Set("seed", TextOrNull(evaluation.seed()));
  json.Set("solution_digest", TextOrNull(evaluation.solution_digest()));
  json.Set("environment", StringList(evaluation.environment()));
  Json phases;
  phases.Set("queued_ms", Json(evaluation.phases().queued_ms()));
  phases.Set("compile_ms", Json(evaluation.phases().compile_ms()));
  phases.Set("prepare_ms", Json(evaluation.phases().prepare_ms()));
  phases.Set("run_ms", Json(evaluation.phases().run_ms()));
  phases.Set("verify_ms", Json(evaluation.phases().verify_ms()));
  phases.Set("time_ms", Json(evaluation.phases().time_ms()));
  phases.Set("runner_ms", Json(evaluation.phases().runner_ms()));
  phases.Set("reference_ms", Json(evaluation.phases().reference_ms()));
  phases.Set("total_ms", Json(evaluation.phases().total_ms()));
  json.Set("phases", std::move(phases));
  return json;
}

core::Json CompileJson(const v1::CompileResponse& response) {
  Json json;
  json.Set("status", Json(VerdictName(response.verdict())));
  json.Set("reason", TextOrNull(response.reason()));
  json.Set("mend", TextOrNull(response.mend()));
  json.Set("compile", ReportJson(response.report()));
  return json;
}

core::Json DefinitionsJson(const v1::ListDefinitionsResponse& response) {
  Json json;
  Json::Array definitions;
  for (const auto& summary : response.definitions()) {
    Json entry;
    entry.Set("version", Json(summary.version()));
    entry.Set("op_type", TextOrNull(summary.op_type()));
    entry.Set("description", TextOrNull(summary.description()));
    entry.Set("workloads", Json(static_cast<int64_t>(summary.workloads())));
    entry.Set("smoke_workloads", Json(static_cast<int64_t>(summary.smoke_workloads())));
    entry.Set("has_reference", Json(summary.has_reference()));
    definitions.push_back(std::move(entry));
  }
  json.Set("definitions", Json(std::move(definitions)));
  json.Set("problems", StringList(response.problems()));
  return json;
}

core::Json ListJson(const v1::ListResponse& response) {
  Json json;
  Json::Array evaluations;
  for (const auto& evaluation : response.evaluations()) evaluations.push_back(SummaryJson(evaluation));
  json.Set("evaluations", Json(std::move(evaluations)));
  json.Set("next_page_token", TextOrNull(response.next_page_token()));
  return json;
}

core::Json InfoJson(const v1::ServerInfo& info) {
  Json json;
  json.Set("version", TextOrNull(info.version()));
  json.Set("build_id", TextOrNull(info.build_id()));
  json.Set("protocol", TextOrNull(info.protocol()));
  Json toolchain;
  toolchain.Set("nvrtc", TextOrNull(info.toolchain().nvrtc()));
  toolchain.Set("nvjitlink", TextOrNull(info.toolchain().nvjitlink()));
  toolchain.Set("headers_digest", TextOrNull(info.toolchain().headers_digest()));
  json.Set("toolchain", std::move(toolchain));
  Json::Array devices;
  for (const auto& device : info.devices()) devices.push_back(DeviceJson(device));
  json.Set("devices", Json(std::move(devices)));
  json.Set("environment", StringList(info.environment()));
  json.Set("queued", Json(static_cast<int64_t>(info.queued())));
  json.Set("running", Json(static_cast<int64_t>(info.running())));
  json.Set("definitions", Json(static_cast<int64_t>(info.definitions())));
  json.Set("data_dir", TextOrNull(info.data_dir()));
  json.Set("toolkit_root", TextOrNull(info.toolkit_root()));
  json.Set("header_pack", TextOrNull(info.header_pack()));
  json.Set("host", HostJson(info));
  json.Set("probed", info.has_probed() ? Json(Rfc3339(info.probed())) : Json(nullptr));
  json.Set("findings", FindingsJson(Findings(info)));
  return json;
}

core::Json ErrorJson(const Status& status) {
  Json json;
  json.Set("error", ErrorBody(CodeName(status.code()), base::MessageOf(status), base::MendOf(status)));
  return json;
}

}  // namespace solstice::client
