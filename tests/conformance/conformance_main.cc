// Whether the emulator answers as the hardware does: runs every case on a device, writes its answers to a file or
// compares them with one. README.md says how answers are made. Exit code 0: no difference, 1: differences, 2: it did
// not run.
#include <fnmatch.h>
#include <CLI/CLI.hpp>
#include <cstdio>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "tests/conformance/answers.h"
#include "tests/conformance/fuzz.h"
#include "tests/conformance/runner.h"

namespace solstice::conformance {
namespace {

constexpr int64_t kMostFileBytes = 64 << 20;

struct Options {
  std::string device = "emulator", pattern = "*", record, check, json;
  bool list = false, print = false;
  double fuzz_seconds = 0;
  uint64_t seed = 1;
  size_t examples = 4;
};

StatusOr<int> OrdinalOf(const std::string& device) {
  if (device == "emulator") return -1;
  if (device == "cuda") return 0;
  if (device.rfind("cuda:", 0) == 0 && device.size() == 6 && device[5] >= '0' && device[5] <= '9')
    return device[5] - '0';
  return base::InvalidArgument(base::StrCat("--device ", base::Quote(device)), "write emulator, cuda or cuda:N");
}

StatusOr<int> Run(const Options& options) {
  SOLSTICE_ASSIGN_OR_RETURN(const int ordinal, OrdinalOf(options.device));
  if (options.fuzz_seconds > 0) return Fuzz(ordinal, options.fuzz_seconds, options.seed);
  std::vector<Case> cases;
  for (Case& c : AllCases()) {
    if (::fnmatch(options.pattern.c_str(), c.name.c_str(), 0) == 0) cases.push_back(std::move(c));
  }
  if (cases.empty()) return base::InvalidArgument(base::StrCat("no case is called ", base::Quote(options.pattern)));
  if (options.list || options.print) {
    for (const Case& c : cases) std::printf("%s\n%s", c.name.c_str(), options.print ? c.ptx.c_str() : "");
    return 0;
  }
  std::string name = "emulator";
  std::vector<Answer> answers;
  if (ordinal < 0) {
    SOLSTICE_ASSIGN_OR_RETURN(answers, RunOnEmulator(cases));
  } else {
    SOLSTICE_ASSIGN_OR_RETURN(answers, RunOnCuda(cases, ordinal, &name));
  }
  if (!options.record.empty()) {
    SOLSTICE_RETURN_IF_ERROR(base::WriteFileAtomically(options.record, Serialise(cases, answers, name)));
  }
  std::vector<Comparison> comparisons;
  if (!options.check.empty()) {
    SOLSTICE_ASSIGN_OR_RETURN(const std::string content, base::ReadFile(options.check, kMostFileBytes));
    SOLSTICE_ASSIGN_OR_RETURN(const Answers expected, Parse(content));
    comparisons = CompareAll(cases, answers, expected, options.examples);
    std::printf("%s against the answers of %s\n", name.c_str(), expected.device.c_str());
  } else {
    // Nothing to compare with but itself: says what was executed.
    for (size_t i = 0; i < cases.size(); ++i) comparisons.push_back(Compare(cases[i], answers[i], answers[i]));
    std::printf("%s\n", name.c_str());
  }
  for (size_t i = 0; i < cases.size(); ++i) {
    const Comparison& c = comparisons[i];
    if (c.verdict == Comparison::Verdict::kNotExecuted || c.verdict == Comparison::Verdict::kNoAnswer) {
      std::printf("%s: %s: %s\n", c.verdict == Comparison::Verdict::kNoAnswer ? "no answer" : "not executed",
                  cases[i].name.c_str(), c.note.c_str());
    }
    if (c.verdict != Comparison::Verdict::kDifferent) continue;
    std::printf("DIFFERENT: %s: %d of %d tuples%s%s\n", cases[i].name.c_str(), c.different, c.tuples,
                cases[i].bound.meaning.empty() ? "" : "; bound: ", cases[i].bound.meaning.c_str());
    for (const std::string& example : c.examples) std::printf("  %s\n", example.c_str());
  }
  std::printf("%s", Table(cases, comparisons).c_str());
  if (!options.json.empty()) {
    SOLSTICE_RETURN_IF_ERROR(base::WriteFileAtomically(options.json, Json(cases, comparisons, name)));
  }
  return AnyDifferent(comparisons) ? 1 : 0;
}

}  // namespace
}  // namespace solstice::conformance

int main(int argc, char** argv) {
  CLI::App app{"solstice-conformance: whether the emulator answers as the hardware does, instruction by instruction"};
  app.footer(
      "Example: solstice-conformance --device cuda:0 --record h200.bin\n"
      "         solstice-conformance --device emulator --check h200.bin\n"
      "         solstice-conformance --device cuda:0 --fuzz 60 --seed 7");
  solstice::conformance::Options options;
  app.add_option("--device", options.device, "emulator, cuda or cuda:N");
  app.add_option("--cases", options.pattern, "a pattern of names, \"integer/*\"");
  app.add_option("--record", options.record, "write the answers to this file");
  app.add_option("--check", options.check, "compare the answers with those of this file");
  app.add_option("--json", options.json, "write every case's result to this file");
  app.add_option("--examples", options.examples, "how many tuples of a case that differ to show");
  app.add_flag("--list", options.list, "print the names of the cases");
  app.add_flag("--print", options.print, "print the cases' PTX");
  app.add_option("--fuzz", options.fuzz_seconds,
                 "for so many seconds compare random kernels on the device and the emulator (--device emulator: with "
                 "what it is built of for older processors)")
      ->check(CLI::Range(0.0, 86400.0));
  app.add_option("--seed", options.seed, "of the random kernels");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  auto code = solstice::conformance::Run(options);
  if (!code.ok()) {
    std::fprintf(stderr, "solstice-conformance: %s\n", solstice::base::MessageOf(code.status()).c_str());
    std::fflush(stdout);
    std::_Exit(2);
  }
  std::fflush(stdout);
  // Not by main's end: a driver may not come down in an orderly way.
  std::_Exit(*code);
}
