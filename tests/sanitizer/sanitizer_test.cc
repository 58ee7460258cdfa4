// `solstice sanitize` on kernels whose faults are marked in their sources: "// FINDS KIND" on the line that is found,
// or "// FAULTS part of the reason" on the one that stops the workload.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>

#include "runtime/base/strings.h"
#include "tests/support/harness.h"

namespace solstice::test {
namespace {

using base::StrCat;
using testing::HasSubstr;

struct Marked {
  std::string file;  // path
  std::string kind;  // of a finding
  std::string fault;
  int line = 0;
};

std::vector<Marked> Kernels() {
  std::vector<Marked> kernels;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("tests/sanitizer/kernels"))) {
    Marked marked;
    marked.file = entry.path().string();
    std::ifstream file(entry.path());
    std::string text;
    for (int line = 1; std::getline(file, text); ++line) {
      if (auto at = text.find("// FINDS "); at != std::string::npos) {
        marked.kind = text.substr(at + 9);
        marked.line = line;
      }
      if (auto at = text.find("// FAULTS "); at != std::string::npos) {
        marked.fault = text.substr(at + 10);
        marked.line = line;
      }
    }
    kernels.push_back(marked);
  }
  std::sort(kernels.begin(), kernels.end(), [](const Marked& a, const Marked& b) { return a.file < b.file; });
  return kernels;
}

std::string Text(const core::Json& json, const std::string& key) {
  const core::Json* value = json.Find(key);
  return value != nullptr && value->is_string() ? value->string() : "";
}

class SanitizerTest : public testing::TestWithParam<Marked> {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer({"--device", "emulator"}); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  static core::Json Sanitize(const std::string& file, int* exit_code, std::vector<std::string> flags = {}) {
    std::vector<std::string> arguments = {"sanitize", file, "-d", SourcePath("tests/sanitizer/definition"),
                                          "--no-cache"};
    arguments.insert(arguments.end(), flags.begin(), flags.end());
    return server_->CliJson(arguments, exit_code);
  }
  static TestServer* server_;
};
TestServer* SanitizerTest::server_ = nullptr;

TEST_P(SanitizerTest, FindsWhatIsMarkedAtItsLine) {
  const Marked& marked = GetParam();
  int exit_code = -1;
  const core::Json json = Sanitize(marked.file, &exit_code);
  ASSERT_NE(json.Find("workloads"), nullptr) << json.Text(2);
  ASSERT_EQ(json.Find("workloads")->array().size(), 1u) << json.Text(2);
  const core::Json& workload = json.Find("workloads")->array()[0];
  const core::Json::Array& findings = workload.Find("findings")->array();
  const std::string name = std::filesystem::path(marked.file).filename().string();
  if (!marked.fault.empty()) {
    EXPECT_EQ(exit_code, 1);
    EXPECT_EQ(Text(workload, "status"), "RUNTIME_ERROR") << json.Text(2);
    EXPECT_THAT(Text(workload, "reason"), HasSubstr(marked.fault));
    EXPECT_THAT(Text(workload, "reason"), HasSubstr(StrCat(name, ":", marked.line)));
    return;
  }
  if (marked.kind.empty()) {
    EXPECT_TRUE(findings.empty()) << json.Text(2);
    EXPECT_EQ(Text(workload, "status"), "PASSED") << json.Text(2);
    return;
  }
  bool found = false;
  for (const core::Json& finding : findings) {
    found |= Text(finding, "kind") == marked.kind && Text(finding, "file") == name &&
             finding.Find("line")->is_number() && finding.Find("line")->number() == marked.line;
  }
  EXPECT_TRUE(found) << marked.kind << " at line " << marked.line << ": " << workload.Text(2);
  EXPECT_FALSE(workload.Find("warnings")->array().empty());
}

INSTANTIATE_TEST_SUITE_P(Kernels, SanitizerTest, testing::ValuesIn(Kernels()),
                         [](const testing::TestParamInfo<Marked>& info) {
                           return std::filesystem::path(info.param.file).stem().string();
                         });

TEST_F(SanitizerTest, FindingsFailWhenStrict) {
  const std::string kernel = SourcePath("tests/sanitizer/kernels/race_in_reduction.cu");
  int exit_code = -1;
  core::Json json = Sanitize(kernel, &exit_code);
  EXPECT_EQ(exit_code, 0) << json.Text(2);
  json = Sanitize(kernel, &exit_code, {"--strict"});
  EXPECT_EQ(exit_code, 1) << json.Text(2);
  const core::Json& workload = json.Find("workloads")->array()[0];
  EXPECT_EQ(Text(workload, "status"), "RUNTIME_ERROR");
  EXPECT_THAT(Text(workload, "reason"), HasSubstr("race_in_reduction.cu:"));
}

TEST_F(SanitizerTest, PrintsFindingsForPeople) {
  const CommandResult result = server_->Cli({"sanitize", SourcePath("tests/sanitizer/kernels/race_in_reduction.cu"),
                                             "-d", SourcePath("tests/sanitizer/definition"), "--no-cache"});
  EXPECT_THAT(result.out, HasSubstr("SHARED_RACE: k at race_in_reduction.cu:"));
  EXPECT_THAT(result.out, HasSubstr("1 workloads, PASSED"));
}

}  // namespace
}  // namespace solstice::test
