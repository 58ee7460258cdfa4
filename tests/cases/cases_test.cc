// Walks through cases.json against a real server on the emulator and prints the table of outcomes (also written to
// cases_table.txt beside the test programs).
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/support/harness.h"

namespace solstice::test {
namespace {

namespace fs = std::filesystem;

std::string ReadText(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string Text(const core::Json& json, const std::string& key) {
  const core::Json* value = json.Find(key);
  return value != nullptr && value->is_string() ? value->string() : "";
}

std::vector<std::string> Strings(const core::Json& json, const std::string& key) {
  std::vector<std::string> out;
  const core::Json* value = json.Find(key);
  if (value == nullptr || !value->is_array()) return out;
  for (const auto& item : value->array()) out.push_back(item.string());
  return out;
}

std::string CasePath(const std::string& relative) { return SourcePath("tests/cases/" + relative); }

// The row's solution as a solution.json; its plan travels as launch_plan lines.
std::string WriteSolution(const TempFolder& folder, const core::Json& row) {
  const std::string kernel = Text(row, "kernel");
  std::string source;
  if (auto generator = Strings(row, "generator"); !generator.empty()) {
    std::vector<std::string> argv = {"/usr/bin/env", "python3", CasePath(kernel)};
    argv.insert(argv.end(), generator.begin() + 1, generator.end());
    source = RunProgram(argv).out;
  } else {
    source = ReadText(CasePath(kernel));
  }
  core::Json::Array plan, options;
  std::stringstream lines(ReadText(CasePath(Text(row, "plan"))));
  for (std::string line; std::getline(lines, line);) plan.push_back(core::Json(line));
  for (const auto& option : Strings(row, "options")) options.push_back(core::Json(option));
  core::Json file, spec, solution;
  file.Set("path", core::Json("kernel.cu"));
  file.Set("content", core::Json(source));
  spec.Set("language", core::Json("cuda"));
  spec.Set("options", core::Json(std::move(options)));
  spec.Set("launch_plan", core::Json(std::move(plan)));
  solution.Set("name", core::Json(Text(row, "case")));
  solution.Set("definition", core::Json(Text(row, "case")));
  solution.Set("spec", std::move(spec));
  solution.Set("sources", core::Json(core::Json::Array{std::move(file)}));
  return folder.Write("solution.json", solution.Text());
}

// The row's definition folder; a copy with another workload.jsonl where the row names one.
std::string DefinitionFolder(const TempFolder& folder, const core::Json& row) {
  const std::string original = CasePath(Text(row, "definition"));
  const std::string workload_file = Text(row, "workload_file");
  if (workload_file.empty()) return original;
  const fs::path copy = folder.path() + "/definition";
  fs::copy(original, copy, fs::copy_options::recursive);
  fs::permissions(copy, fs::perms::owner_all, fs::perm_options::add);
  fs::remove(copy / "workload.jsonl");
  fs::copy_file(CasePath(workload_file), copy / "workload.jsonl");
  // Smoke workloads refer to the original's uuids.
  if (std::string companion = ReadText((copy / "solstice.json").string()); true) {
    auto json = core::ParseJson(companion, "solstice.json");
    EXPECT_TRUE(json.ok());
    json->Set("smoke_workloads", core::Json(core::Json::Array{}));
    fs::remove(copy / "solstice.json");
    std::ofstream(copy / "solstice.json") << json->Text();
  }
  if (fs::exists(copy / "blob")) fs::create_symlink("/etc/hostname", copy / "blob/link_outside.safetensors");
  return copy.string();
}

struct Outcome {
  std::string status;  // verdict or error code
  std::string reason;
  std::string everything;
};

Outcome Evaluate(const TestServer& server, const core::Json& row) {
  TempFolder folder;
  std::vector<std::string> arguments = {"run", WriteSolution(folder, row), "-d", DefinitionFolder(folder, row)};
  if (const core::Json* timeout = row.Find("timeout_s"); timeout != nullptr && timeout->is_number()) {
    arguments.insert(arguments.end(), {"--timeout", std::to_string(timeout->number())});
  }
  if (const core::Json* allow = row.Find("allow_device_state"); allow != nullptr && allow->boolean()) {
    arguments.push_back("--allow-device-state");
  }
  for (const auto& uuid : Strings(row, "workloads")) arguments.insert(arguments.end(), {"--workload", uuid});
  core::Json json = server.CliJson(arguments, nullptr, 300);
  Outcome outcome;
  outcome.everything = json.Text();
  if (const core::Json* error = json.Find("error"); error != nullptr && error->is_object()) {
    outcome.status = Text(*error, "code");
    outcome.reason = Text(*error, "reason");
    return outcome;
  }
  outcome.status = Text(json, "verdict");
  for (const auto& workload : json.Find("workloads")->array()) {
    if (Text(workload, "status") == outcome.status && outcome.reason.empty()) outcome.reason = Text(workload, "reason");
  }
  return outcome;
}

std::string Label(const core::Json& row) {
  std::string label = Text(row, "kernel") + " " + fs::path(Text(row, "plan")).filename().string();
  for (const auto& option : Strings(row, "options")) label += " [" + option + "]";
  if (!Text(row, "workload_file").empty()) label += " " + fs::path(Text(row, "workload_file")).filename().string();
  for (char& c : label) c = c == '\n' ? ' ' : c;
  return label;
}

TEST(CasesTest, EveryCaseEndsAsItShould) {
  auto table = core::ParseJson(ReadText(CasePath("cases.json")), "cases.json");
  ASSERT_TRUE(table.ok()) << table.status();
  TestServer server;
  std::stringstream report;
  int evaluated = 0;
  for (const auto& row : table->array()) {
    SCOPED_TRACE(Label(row));
    const std::string expect = Text(row, "expect");
    const core::Json* device = row.Find("needs_device");
    if (row.Find("pointer_shift_bytes") != nullptr) continue;  // ShiftedPointers
    if ((device != nullptr && device->is_bool() && device->boolean()) || !Text(row, "later_issue").empty()) {
      report << "waits     " << Label(row) << ": "
             << (Text(row, "later_issue").empty() ? "needs a GPU" : Text(row, "later_issue")) << "\n";
      continue;
    }
    Outcome outcome = Evaluate(server, row);
    ++evaluated;
    const std::string part = Text(row, "expect_reason_contains");
    bool right = outcome.status == expect && outcome.reason.find(part) != std::string::npos;
    for (const auto& excluded : Strings(row, "log_excludes")) {
      right = right && outcome.everything.find(excluded) == std::string::npos;
    }
    report << (right ? "right     " : "WRONG     ") << Label(row) << ": " << outcome.status
           << (outcome.reason.empty() ? "" : " (" + outcome.reason.substr(0, 110) + ")") << "\n";
    EXPECT_TRUE(right) << "expected " << expect << " with \"" << part << "\", got " << outcome.status << ": "
                       << outcome.reason;
  }
  EXPECT_GT(evaluated, 100);
  std::printf("%s", report.str().c_str());
  std::ofstream(std::string(SOLSTICE_BINARY_DIR) + "/tests/cases_table.txt") << report.str();
}

TEST(CasesTest, ShiftedPointers) {
  auto table = core::ParseJson(ReadText(CasePath("cases.json")), "cases.json");
  ASSERT_TRUE(table.ok()) << table.status();
  int evaluated = 0;
  for (const auto& row : table->array()) {
    const core::Json* shifts = row.Find("pointer_shift_bytes");
    if (shifts == nullptr) continue;
    for (const auto& shift : shifts->array()) {
      SCOPED_TRACE(Label(row) + " shifted by " + std::to_string(shift.integer()));
      TestServer server({"--debug-pointer-shift-bytes", std::to_string(shift.integer())});
      Outcome outcome = Evaluate(server, row);
      EXPECT_EQ(outcome.status, Text(row, "expect")) << outcome.everything;
      EXPECT_NE(outcome.reason.find(Text(row, "expect_reason_contains")), std::string::npos) << outcome.reason;
      // The next evaluation on that device is not harmed: scalar accesses are aligned even so.
      core::Json honest = row;
      honest.Set("kernel", core::Json("03_fault_then_next_job/kernel_ok.cu"));
      honest.Set("plan", core::Json("03_fault_then_next_job/launch.plan"));
      EXPECT_EQ(Evaluate(server, honest).status, "PASSED");
      ++evaluated;
    }
  }
  EXPECT_GT(evaluated, 0);
}

TEST(CasesTest, TemplatedKernelIsFoundAgainOnAWarmCache) {
  auto table = core::ParseJson(ReadText(CasePath("cases.json")), "cases.json");
  ASSERT_TRUE(table.ok());
  TestServer server;
  for (const auto& row : table->array()) {
    if (Text(row, "kernel") != "02_template_name_expression/kernel.cu" || Text(row, "expect") != "PASSED") continue;
    TempFolder folder;
    std::vector<std::string> arguments = {
        "run",      WriteSolution(folder, row), "-d", DefinitionFolder(folder, row), "--no-cache", "--workload",
        "tmpl-n257"};
    EXPECT_FALSE(server.CliJson(arguments).Find("compile")->Find("cached")->boolean());
    core::Json warm = server.CliJson(arguments);
    EXPECT_TRUE(warm.Find("compile")->Find("cached")->boolean());
    EXPECT_EQ(Text(warm, "verdict"), "PASSED");
  }
}

}  // namespace
}  // namespace solstice::test
