#include "client/cli/render.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>

#include "client/lib/evaluation_json.h"
#include "runtime/base/strings.h"
#include "runtime/core/dtype.h"

namespace solstice::cli {
namespace {

using base::StrCat;

std::string Clean(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\n') {
      out += ' ';
    } else if (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F) {
      out += c;
    }
  }
  return out;
}

// Keeps line breaks and tabs, drops what could drive a terminal.
std::string CleanBlock(const std::string& text) {
  std::string out;
  for (char c : text) {
    if (c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7F)) out += c;
  }
  return out;
}

std::string Number(double value, const char* format) {
  if (!std::isfinite(value)) return std::isnan(value) ? "nan" : "inf";
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string Axes(const google::protobuf::RepeatedPtrField<v1::NamedInt>& axes) {
  std::vector<std::string> parts;
  for (const auto& axis : axes) parts.push_back(StrCat(axis.name(), "=", static_cast<int64_t>(axis.value())));
  return base::Join(parts, " ");
}

std::string Indent(const std::string& text) {
  std::string out = "    ";
  for (char c : text) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

// Columns a cell takes: UTF-8 continuation bytes take none.
size_t Width(const std::string& text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string Latency(int64_t nanoseconds) {
  return nanoseconds > 0 ? Number(static_cast<double>(nanoseconds) * 1e-3, "%.2f us") : "-";
}

// Half the interval of the median, as a share of it.
std::string Uncertainty(const v1::LatencyStatistics& statistics) {
  if (statistics.median_ns() <= 0) return "-";
  const auto width = static_cast<double>(statistics.high_ns() - statistics.low_ns());
  return Number(50 * width / static_cast<double>(statistics.median_ns()), "%.1f%%");
}

}  // namespace

std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], Width(Clean(row[i])));
  }
  std::string out;
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) {
      std::string cell = Clean(row[i]);
      out += cell;
      if (i + 1 < row.size()) out.append(widths[i] - Width(cell) + 2, ' ');
    }
    out += '\n';
  }
  return out;
}

std::string RenderCompile(const v1::CompileReport& report) {
  std::string out;
  std::vector<std::vector<std::string>> rows = {{"KERNEL", "REGISTERS", "SHARED", "LOCAL", "SPILLS", "PARAMETERS"}};
  for (const auto& kernel : report.kernels()) {
    std::vector<std::string> parameters;
    for (const auto& parameter : kernel.parameters()) parameters.push_back(parameter.type());
    rows.push_back({kernel.name_expression().empty() ? kernel.name() : kernel.name_expression(),
                    StrCat(kernel.registers()), StrCat(static_cast<int64_t>(kernel.static_shared_bytes()), " B"),
                    StrCat(static_cast<int64_t>(kernel.local_bytes()), " B"),
                    StrCat(static_cast<int64_t>(kernel.spill_store_bytes() + kernel.spill_load_bytes()), " B"),
                    base::Join(parameters, ", ")});
  }
  if (rows.size() > 1) out += Table(rows);
  for (const auto& kernel : report.kernels()) {
    if (kernel.needs_device().empty()) continue;
    out += StrCat("needs a GPU: ", Clean(kernel.name()), " uses ", Clean(kernel.needs_device(0)), "\n");
  }
  for (const auto& state : report.device_state()) {
    out += StrCat("device state: '", Clean(state.variable()), "' is written at ", Clean(state.file()), ":",
                  state.line(), "\n");
  }
  if (!report.log().empty()) {
    out += StrCat("compiler log (", static_cast<int64_t>(report.log_bytes()), " bytes):\n",
                  Indent(CleanBlock(report.log())), "\n");
  }
  return out;
}

std::string RenderFindings(const v1::Evaluation& evaluation) {
  std::string out;
  int findings = 0;
  for (const auto& result : evaluation.workloads()) {
    const bool stopped = result.verdict() != v1::PASSED && !result.reason().empty();
    if (!stopped && result.findings().empty()) continue;
    out += StrCat(Clean(result.uuid()), " ", Axes(result.axes()), ": ", client::VerdictName(result.verdict()), "\n");
    if (stopped) out += StrCat("  ", Clean(result.reason()), "\n");
    for (const auto& finding : result.findings()) {
      out += StrCat("  ", v1::Finding::Kind_Name(finding.kind()), ": ", Clean(finding.message()));
      if (finding.count() > 1) out += StrCat(" (", static_cast<int64_t>(finding.count()), " times)");
      out += "\n";
      ++findings;
    }
  }
  if (evaluation.verdict() == v1::COMPILE_ERROR && !evaluation.compile().log().empty()) {
    out += StrCat("compiler log:\n", Indent(CleanBlock(evaluation.compile().log())), "\n");
  }
  out += StrCat(findings, findings == 1 ? " finding in " : " findings in ", evaluation.workloads_size(), " workloads, ",
                evaluation.state() == v1::COMPLETED ? client::VerdictName(evaluation.verdict())
                                                    : client::StateName(evaluation.state()),
                "\n");
  return out;
}

std::string RenderEvaluation(const v1::Evaluation& evaluation) {
  std::string out;
  std::vector<std::vector<std::string>> rows = {
      {"WORKLOAD", "AXES", "STATUS", "MAX ABS", "MAX REL", "MATCHED", "LATENCY", "+-", "REFERENCE", "SPEEDUP"}};
  for (const auto& result : evaluation.workloads()) {
    const bool numbers = result.compared();
    const bool both = result.latency_ns() > 0 && result.reference_latency_ns() > 0;
    rows.push_back(
        {result.uuid(), Axes(result.axes()), client::VerdictName(result.verdict()),
         numbers ? Number(result.max_absolute_error(), "%.3g") : "-",
         numbers ? Number(result.max_relative_error(), "%.3g") : "-",
         numbers ? Number(result.matched_ratio(), "%.4f") : "-", Latency(result.latency_ns()),
         Uncertainty(result.statistics()), Latency(result.reference_latency_ns()),
         both ? Number(static_cast<double>(result.reference_latency_ns()) / static_cast<double>(result.latency_ns()),
                       "%.2fx")
              : "-"});
  }
  if (rows.size() > 1) out += Table(rows) + "\n";
  std::string last_reason;
  for (const auto& result : evaluation.workloads()) {
    if (result.reason().empty() && result.warnings().empty()) continue;
    // What all workloads share (a compile error, say) is told once.
    if (!result.reason().empty() && result.reason() == last_reason) continue;
    last_reason = result.reason();
    out += StrCat(Clean(result.uuid()), ": ", Clean(result.reason()), "\n");
    if (!result.mend().empty()) out += StrCat("  mend: ", Clean(result.mend()), "\n");
    for (const auto& warning : result.warnings()) out += StrCat("  warning: ", Clean(warning), "\n");
    if (!result.device_output().empty()) {
      out += StrCat("  printed by the kernel:\n", Indent(CleanBlock(result.device_output())), "\n");
    }
  }
  if (evaluation.verdict() == v1::COMPILE_ERROR && !evaluation.compile().log().empty()) {
    out += StrCat("compiler log:\n", Indent(CleanBlock(evaluation.compile().log())), "\n");
  }
  if (evaluation.state() == v1::FAILED) {
    out += StrCat("FAILED (the service, not the submission): ", Clean(evaluation.error().reason()), "\n");
  } else if (evaluation.state() == v1::COMPLETED) {
    out += client::VerdictName(evaluation.verdict());
    if (!evaluation.complete()) out += " (not every workload of the definition ran)";
    out += evaluation.cached() ? "  cached" : "";
    out += "\n";
  } else {
    out += client::StateName(evaluation.state()) + "\n";
  }
  const auto& phases = evaluation.phases();
  out += StrCat(evaluation.id(), "  ", Clean(evaluation.definition()), "  ", Clean(evaluation.device().name()));
  if (phases.total_ms() > 0) {
    out += StrCat("  ", Number(phases.total_ms(), "%.0f ms"));
    if (!evaluation.cached()) {
      out +=
          StrCat(" (compile ", Number(phases.compile_ms(), "%.0f"), ", prepare ", Number(phases.prepare_ms(), "%.0f"),
                 ", run ", Number(phases.run_ms(), "%.0f"), ", verify ", Number(phases.verify_ms(), "%.0f"));
      if (phases.time_ms() > 0) {
        out += StrCat(", runner ", Number(phases.runner_ms(), "%.0f"), ", time ", Number(phases.time_ms(), "%.0f"));
      }
      out += ")";
    }
  }
  return out + "\n";
}

std::string RenderList(const v1::ListResponse& response) {
  std::vector<std::vector<std::string>> rows = {
      {"EVALUATION", "STATE", "VERDICT", "DEFINITION", "SOLUTION", "ATTEMPT"}};
  for (const auto& evaluation : response.evaluations()) {
    rows.push_back({evaluation.id(), client::StateName(evaluation.state()),
                    evaluation.state() == v1::COMPLETED ? client::VerdictName(evaluation.verdict()) : "-",
                    evaluation.definition(), evaluation.solution(), StrCat(evaluation.attempt())});
  }
  std::string out = Table(rows);
  if (!response.next_page_token().empty()) out += StrCat("more: --page ", response.next_page_token(), "\n");
  return out;
}

std::string RenderDefinitions(const v1::ListDefinitionsResponse& response) {
  std::vector<std::vector<std::string>> rows = {{"DEFINITION", "WORKLOADS", "SMOKE", "DESCRIPTION"}};
  for (const auto& summary : response.definitions()) {
    rows.push_back({summary.version(), StrCat(summary.workloads()), StrCat(summary.smoke_workloads()),
                    std::string(base::Utf8Prefix(summary.description(), 80))});
  }
  std::string out = Table(rows);
  for (const auto& problem : response.problems()) out += StrCat("problem: ", Clean(problem), "\n");
  return out;
}

std::string RenderDefinition(const v1::DefinitionBundle& bundle) {
  const v1::Definition& definition = bundle.definition();
  std::string out = StrCat(Clean(bundle.version()), "\n", Clean(definition.description()), "\n\n");
  std::vector<std::vector<std::string>> rows = {{"NAME", "KIND", "SHAPE", "DTYPE"}};
  auto add = [&](const v1::Tensor& tensor, const char* kind) {
    std::vector<std::string> shape(tensor.shape().begin(), tensor.shape().end());
    rows.push_back({tensor.name(), kind, tensor.scalar() ? "scalar" : StrCat("[", base::Join(shape, ", "), "]"),
                    std::string(core::DTypeName(tensor.dtype()))});
  };
  for (const auto& tensor : definition.inputs()) add(tensor, "input");
  for (const auto& tensor : definition.outputs()) add(tensor, "output");
  out += Table(rows) + "\n";
  std::vector<std::vector<std::string>> workloads = {{"WORKLOAD", "AXES", ""}};
  for (const auto& workload : bundle.workloads()) workloads.push_back({workload.uuid(), Axes(workload.axes()), ""});
  for (const auto& workload : bundle.companion().smoke_workloads()) {
    workloads.push_back({workload.uuid(), Axes(workload.axes()), "smoke"});
  }
  return out + Table(workloads);
}

Progress::Progress(bool enabled) : enabled_(enabled), terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() { Clear(); }

void Progress::Line(const std::string& text, bool transient) {
  if (!enabled_) return;
  if (terminal_) {
    std::fprintf(stderr, "\r\033[K%s", Clean(text).c_str());
    shown_ = true;
  } else if (!transient) {
    std::fprintf(stderr, "%s\n", Clean(text).c_str());
  }
  std::fflush(stderr);
}

void Progress::Clear() {
  if (enabled_ && terminal_ && shown_) std::fprintf(stderr, "\r\033[K");
  shown_ = false;
}

void Progress::Show(const v1::Event& event) {
  switch (event.body_case()) {
    case v1::Event::kState:
      Line(base::Lower(client::StateName(event.state())), false);
      break;
    case v1::Event::kCompile:
      Line(StrCat("compiled in ", Number(event.compile().milliseconds(), "%.0f ms"),
                  event.compile().cached() ? " (cached)" : ""),
           false);
      break;
    case v1::Event::kWorkload:
      Line(StrCat(event.workload().uuid(), " ", client::VerdictName(event.workload().verdict())), false);
      break;
    case v1::Event::kProgress: {
      const auto& progress = event.progress();
      std::string bar;
      const int width = 24;
      const int filled = progress.total() > 0 ? width * progress.done() / progress.total() : 0;
      for (int i = 0; i < width; ++i) bar += i < filled ? '#' : '.';
      Line(StrCat("[", bar, "] ", progress.done(), "/", progress.total(), " ", progress.stage(), " ",
                  progress.workload()),
           true);
      break;
    }
    case v1::Event::kRetry:
      Line(StrCat("retrying: ", event.retry().reason()), false);
      break;
    default:
      break;
  }
}

}  // namespace solstice::cli
