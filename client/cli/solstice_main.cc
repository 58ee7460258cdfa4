// The solstice program: parses the command line, nothing else.
#include <CLI/CLI.hpp>

#include "client/cli/commands.h"
#include "client/cli/interrupts.h"

namespace {

using namespace solstice::cli;  // NOLINT: the commands are this program

void AddRunOptions(CLI::App* app, RunOptions* options) {
  app->add_option("file", options->file, "CUDA source (.cu with a plan in //@ lines) or solution.json")->required();
  app->add_option("-d,--definition", options->definition, "definition: a name, name@digest12, or a folder");
  app->add_option("--workload", options->workloads, "only this workload (uuid); repeat for more");
  app->add_flag("--quick", options->quick, "the definition's smoke workloads only");
  app->add_option("--device", options->device, "emulator, cuda or cuda:N");
  app->add_option("--timeout", options->timeout_s, "limit for one workload, seconds")->check(CLI::PositiveNumber);
  app->add_flag("--allow-device-state", options->allow_device_state,
                "run kernels that keep state between launches; the result is unranked");
  app->add_option("--timer", options->timer,
                  "how latencies are taken: activity (CUPTI), events, none (profilers can attach); default: the best")
      ->check(CLI::IsMember({"activity", "events", "none"}));
  app->add_flag("--samples", options->keep_samples, "keep every latency in the result (samples_us of --json)");
  app->add_flag("--no-cache", options->no_cache, "neither read nor write the result cache");
  app->add_option("--request-id", options->request_id, "idempotency key: a repeated call returns the same evaluation");
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"solstice: judges CUDA kernels"};
  app.footer(
      "Example: solstice run examples/fused_add_rmsnorm.cu -d fused_add_rmsnorm_h2048\n"
      "Exit codes: 0 passed, 1 another verdict, 2 usage or request error, 3 the service failed, 4 no suitable "
      "device, 130 interrupted");
  app.require_subcommand(1);
  app.fallthrough();
  GlobalOptions global;
  app.add_option("--server", global.connect.server,
                 "address, e.g. 127.0.0.1:7411 (default: $SOLSTICE_SERVER, else a private server)");
  app.add_option("--data-dir", global.connect.data_dir,
                 "data folder of the private server (default: $SOLSTICE_DATA_DIR)");
  app.add_option("--tenant", global.connect.tenant, "sent as metadata solstice-tenant");
  app.add_flag("--json", global.json, "one JSON object on stdout");
  app.add_flag("-q,--quiet", global.quiet, "no progress");

  int code = kExitPassed;
  RunOptions run, submit;
  auto* run_app = app.add_subcommand("run", "judge a kernel and wait for the verdict");
  AddRunOptions(run_app, &run);
  run_app->footer("Example: solstice run kernel.cu -d rmsnorm_h2048 --quick --json");
  // Only these answer Ctrl-C themselves; elsewhere it just ends the program.
  run_app->callback([&] {
    Interrupts::Block();
    code = RunCommand(global, run);
  });
  RunOptions sanitize;
  auto* sanitize_app =
      app.add_subcommand("sanitize", "run a kernel on the emulator and print what its sanitizer finds");
  AddRunOptions(sanitize_app, &sanitize);
  sanitize_app->add_flag("--strict", sanitize.strict, "findings fail: exit code 1");
  sanitize_app->footer("Example: solstice sanitize kernel.cu -d rmsnorm_h2048 --strict");
  sanitize_app->callback([&] {
    Interrupts::Block();
    code = SanitizeCommand(global, sanitize);
  });
  auto* submit_app = app.add_subcommand("submit", "hand a kernel in and print its evaluation id");
  AddRunOptions(submit_app, &submit);
  submit_app->callback([&] { code = SubmitCommand(global, submit); });

  std::string id;
  auto* watch = app.add_subcommand("watch", "follow an evaluation to its end; Ctrl-C detaches");
  watch->add_option("id", id, "evaluation id")->required();
  watch->callback([&] {
    Interrupts::Block();
    code = WatchCommand(global, id);
  });
  auto* show = app.add_subcommand("show", "print an evaluation as it stands");
  show->add_option("id", id, "evaluation id")->required();
  show->callback([&] { code = ShowCommand(global, id); });
  auto* cancel = app.add_subcommand("cancel", "cancel an evaluation");
  cancel->add_option("id", id, "evaluation id")->required();
  cancel->callback([&] { code = CancelCommand(global, id); });

  solstice::v1::ListRequest list_request;
  int page_size = 50;
  std::string page, list_definition;
  auto* list = app.add_subcommand("list", "list evaluations, newest first");
  list->add_option("-n,--limit", page_size, "how many")->check(CLI::Range(1, 1000));
  list->add_option("--page", page, "page token of the list before");
  list->add_option("-d,--definition", list_definition, "only this definition");
  list->callback([&] {
    list_request.set_page_size(page_size);
    list_request.set_page_token(page);
    list_request.set_definition(list_definition);
    code = ListCommand(global, list_request);
  });

  CompileOptions compile;
  auto* compile_app = app.add_subcommand("compile", "compile only; needs no GPU");
  compile_app->add_option("file", compile.file, "CUDA source or solution.json")->required();
  compile_app->add_option("-d,--definition", compile.definition, "specialises the plan for its first smoke workload");
  compile_app->add_option("--arch", compile.arch, "sm_90a, sm_100a, sm_100f, sm_103a, sm_103f");
  compile_app->add_option("--emit", compile.emit, "print the program: ptx or cubin")
      ->check(CLI::IsMember({"ptx", "cubin"}));
  compile_app->add_option("-o,--output", compile.output, "where --emit writes");
  compile_app->footer("Example: solstice compile kernel.cu --emit ptx -o kernel.ptx");
  compile_app->callback([&] { code = CompileCommand(global, compile); });

  std::string definition_name;
  auto* definitions = app.add_subcommand("definitions", "list the definitions, or show one");
  definitions->add_option("name", definition_name, "show this one");
  definitions->callback([&] { code = DefinitionsCommand(global, definition_name); });
  auto* doctor = app.add_subcommand("doctor", "say what this installation has and what it enforces");
  doctor->footer(
      "Exit codes: 0 evaluations can run here (on the emulator, where there is no GPU or it is hidden by "
      "CUDA_VISIBLE_DEVICES), 3 no server answers, 4 a GPU is here and none can be used");
  doctor->callback([&] { code = DoctorCommand(global); });

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help is no error; everything else about the command line is usage.
    return app.exit(error) == 0 ? 0 : kExitUsage;
  }
  return code;
}
