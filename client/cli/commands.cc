#include "client/cli/commands.h"

#include <cstdio>
#include <functional>

#include "client/cli/interrupts.h"
#include "client/cli/render.h"
#include "client/lib/doctor.h"
#include "client/lib/evaluation_json.h"
#include "client/lib/submission.h"
#include "runtime/base/file.h"
#include "runtime/base/installation.h"
#include "runtime/base/strings.h"

namespace solstice::cli {
namespace {

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }
void PrintJson(const core::Json& json) { Print(json.Text(2) + "\n"); }

std::string ReferenceKernels() {
  auto programs = base::ProgramDirectory();
  return programs.ok() ? base::FindShared(*programs, "reference_kernels") : "";
}

int CodeOf(const Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kAlreadyExists:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
      return kExitUsage;
    case absl::StatusCode::kCancelled:
      return kExitInterrupted;
    default:
      return kExitService;
  }
}

StatusOr<v1::SubmitRequest> MakeRequest(const RunOptions& options) {
  v1::SubmitRequest request;
  SOLSTICE_ASSIGN_OR_RETURN(*request.mutable_solution(), client::ReadSolution(options.file));
  bool has_files = false;
  v1::DefinitionFiles files;
  SOLSTICE_RETURN_IF_ERROR(
      client::SetDefinition(options.definition, ReferenceKernels(), request.mutable_solution(), &files, &has_files));
  if (has_files) *request.mutable_definition_files() = std::move(files);
  auto* evaluation = request.mutable_options();
  SOLSTICE_RETURN_IF_ERROR(client::SetDevice(options.device, evaluation));
  for (const auto& uuid : options.workloads) evaluation->add_workloads(uuid);
  evaluation->set_quick(options.quick);
  evaluation->set_timeout_s(options.timeout_s);
  evaluation->set_allow_device_state(options.allow_device_state);
  evaluation->set_no_cache(options.no_cache);
  evaluation->set_strict(options.strict);
  evaluation->set_keep_samples(options.keep_samples);
  if (options.timer == "activity") evaluation->set_timer(v1::TIMER_ACTIVITY);
  if (options.timer == "events") evaluation->set_timer(v1::TIMER_EVENTS);
  if (options.timer == "none") evaluation->set_timer(v1::TIMER_NONE);
  request.set_client_request_id(options.request_id);
  return request;
}

// A precondition that Submit refuses for is a device that is not there.
int FailSubmit(const GlobalOptions& global, const Status& status) {
  int code = Fail(global, status);
  return absl::IsFailedPrecondition(status) ? kExitNoDevice : code;
}

int Finish(const GlobalOptions& global, const v1::Evaluation& evaluation) {
  if (global.json) {
    PrintJson(client::EvaluationJson(evaluation));
  } else {
    Print(RenderEvaluation(evaluation));
  }
  return ExitCodeOf(evaluation);
}

}  // namespace

int Fail(const GlobalOptions& global, const Status& status) {
  if (global.json) {
    PrintJson(client::ErrorJson(status));
  } else {
    std::fprintf(stderr, "solstice: %s\n", base::MessageOf(status).c_str());
    std::string mend = base::MendOf(status);
    if (!mend.empty()) std::fprintf(stderr, "  mend: %s\n", mend.c_str());
  }
  return CodeOf(status);
}

int ExitCodeOf(const v1::Evaluation& evaluation) {
  if (evaluation.state() == v1::CANCELLED) return kExitInterrupted;
  if (evaluation.state() != v1::COMPLETED) return kExitService;
  switch (evaluation.verdict()) {
    case v1::PASSED:
      return kExitPassed;
    case v1::INVALID_REFERENCE:
      return kExitService;
    case v1::NEEDS_DEVICE:
      return kExitNoDevice;
    default:
      return kExitVerdict;
  }
}

namespace {

// Submits, follows, and hands what came of it to `finish`.
int Follow(const GlobalOptions& global, const RunOptions& options,
           const std::function<int(const v1::Evaluation&)>& finish) {
  auto request = MakeRequest(options);
  if (!request.ok()) return Fail(global, request.status());
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  client::Client& server = **connection;
  auto submitted = server.Submit(*request);
  if (!submitted.ok()) return FailSubmit(global, submitted.status());
  const std::string id = submitted->evaluation_id();
  // Ctrl-C cancels: what a person runs in the foreground ends with them.
  Interrupts interrupts([&] {
    server.Cancel(id).status().IgnoreError();
    server.StopWatching();
  });
  Progress progress(!global.quiet && !global.json);
  auto evaluation = server.Watch(id, [&](const v1::Event& event) { progress.Show(event); });
  progress.Clear();
  if (interrupts.fired()) {
    std::fprintf(stderr, "solstice: cancelled %s\n", id.c_str());
    return kExitInterrupted;
  }
  if (!evaluation.ok()) return Fail(global, evaluation.status());
  return finish(*evaluation);
}

}  // namespace

int RunCommand(const GlobalOptions& global, const RunOptions& options) {
  return Follow(global, options, [&](const v1::Evaluation& evaluation) { return Finish(global, evaluation); });
}

int SanitizeCommand(const GlobalOptions& global, RunOptions options) {
  if (options.device.empty()) options.device = "emulator";
  return Follow(global, options, [&](const v1::Evaluation& evaluation) {
    if (global.json) {
      PrintJson(client::EvaluationJson(evaluation));
    } else {
      Print(RenderFindings(evaluation));
    }
    return ExitCodeOf(evaluation);
  });
}

int SubmitCommand(const GlobalOptions& global, const RunOptions& options) {
  auto request = MakeRequest(options);
  if (!request.ok()) return Fail(global, request.status());
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  auto submitted = (*connection)->Submit(*request);
  if (!submitted.ok()) return FailSubmit(global, submitted.status());
  if (global.json) {
    core::Json json;
    json.Set("evaluation_id", core::Json(submitted->evaluation_id()));
    json.Set("duplicate", core::Json(submitted->duplicate()));
    PrintJson(json);
  } else {
    Print(submitted->evaluation_id() + "\n");
  }
  return kExitPassed;
}

int WatchCommand(const GlobalOptions& global, const std::string& id) {
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  client::Client& server = **connection;
  // Ctrl-C only detaches: whoever submitted it still wants the answer.
  Interrupts interrupts([&] { server.StopWatching(); });
  Progress progress(!global.quiet && !global.json);
  auto evaluation = server.Watch(id, [&](const v1::Event& event) { progress.Show(event); });
  progress.Clear();
  if (interrupts.fired()) {
    std::fprintf(stderr, "solstice: detached; %s goes on\n", id.c_str());
    return kExitInterrupted;
  }
  if (!evaluation.ok()) return Fail(global, evaluation.status());
  return Finish(global, *evaluation);
}

int ShowCommand(const GlobalOptions& global, const std::string& id) {
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  auto evaluation = (*connection)->Get(id);
  if (!evaluation.ok()) return Fail(global, evaluation.status());
  if (global.json) {
    PrintJson(client::EvaluationJson(*evaluation));
  } else {
    Print(RenderEvaluation(*evaluation));
  }
  return kExitPassed;
}

int ListCommand(const GlobalOptions& global, const v1::ListRequest& request) {
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  auto list = (*connection)->List(request);
  if (!list.ok()) return Fail(global, list.status());
  if (global.json) {
    PrintJson(client::ListJson(*list));
  } else {
    Print(RenderList(*list));
  }
  return kExitPassed;
}

int CancelCommand(const GlobalOptions& global, const std::string& id) {
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  auto evaluation = (*connection)->Cancel(id);
  if (absl::IsFailedPrecondition(evaluation.status())) {
    Fail(global, evaluation.status());
    return kExitUsage;
  }
  if (!evaluation.ok()) return Fail(global, evaluation.status());
  if (global.json) {
    PrintJson(client::EvaluationJson(*evaluation));
  } else {
    Print(base::StrCat(id, " cancelled\n"));
  }
  return kExitPassed;
}

int CompileCommand(const GlobalOptions& global, const CompileOptions& options) {
  v1::CompileRequest request;
  auto solution = client::ReadSolution(options.file);
  if (!solution.ok()) return Fail(global, solution.status());
  *request.mutable_solution() = *std::move(solution);
  bool has_files = false;
  v1::DefinitionFiles files;
  Status status =
      client::SetDefinition(options.definition, ReferenceKernels(), request.mutable_solution(), &files, &has_files);
  if (!status.ok()) return Fail(global, status);
  if (has_files) *request.mutable_definition_files() = std::move(files);
  request.set_arch(options.arch);
  request.set_emit_ptx(options.emit == "ptx");
  request.set_emit_cubin(options.emit == "cubin");
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  auto response = (*connection)->Compile(request);
  if (!response.ok()) return Fail(global, response.status());
  const bool passed = response->verdict() == v1::PASSED;
  const std::string& image = options.emit == "cubin" ? response->cubin() : response->ptx();
  if (passed && !options.emit.empty() && !options.output.empty()) {
    Status written = base::WriteFileAtomically(options.output, image);
    if (!written.ok()) return Fail(global, written);
  }
  if (global.json) {
    PrintJson(client::CompileJson(*response));
  } else if (passed && !options.emit.empty() && options.output.empty()) {
    Print(image);
  } else {
    Print(RenderCompile(response->report()));
    Print(base::StrCat(client::VerdictName(response->verdict()), " for ", response->report().arch(),
                       response->report().cached() ? "  cached" : "", "\n"));
    if (!response->reason().empty()) Print(response->reason() + "\n");
    if (!response->mend().empty()) Print("  mend: " + response->mend() + "\n");
  }
  return passed ? kExitPassed : kExitVerdict;
}

int DefinitionsCommand(const GlobalOptions& global, const std::string& name) {
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  if (!name.empty() && !global.json) {
    auto bundle = (*connection)->GetDefinition(name);
    if (!bundle.ok()) return Fail(global, bundle.status());
    Print(RenderDefinition(*bundle));
    return kExitPassed;
  }
  auto list = (*connection)->ListDefinitions();
  if (!list.ok()) return Fail(global, list.status());
  if (global.json) {
    PrintJson(client::DefinitionsJson(*list));
  } else {
    Print(RenderDefinitions(*list));
  }
  return kExitPassed;
}

int DoctorCommand(const GlobalOptions& global) {
  auto connection = client::Client::Connect(global.connect);
  if (!connection.ok()) return Fail(global, connection.status());
  auto info = (*connection)->GetInfo(/*probe=*/true);
  if (!info.ok()) return Fail(global, info.status());
  if (global.json) {
    PrintJson(client::InfoJson(*info));
  } else {
    Print(RenderInfo(*info, (*connection)->address()));
  }
  return client::GpuUnusable(*info) ? kExitNoDevice : kExitPassed;
}

}  // namespace solstice::cli
