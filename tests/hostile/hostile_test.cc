// Faulty submissions through the real server, each with its own status and a reason that says what happened, and an
// honest kernel that passes right after each.
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include "tests/support/harness.h"

namespace solstice::test {
namespace {

const char kDefinition[] = "fused_add_rmsnorm_h2048";

struct Faulty {
  const char* name;
  const char* file;  // below examples/faulty
  int exit_code;
  const char* status;               // of the first workload
  std::vector<const char*> reason;  // parts of it
};

std::string Text(const core::Json& json, const std::string& key) {
  const core::Json* value = json.Find(key);
  return value != nullptr && value->is_string() ? value->string() : "";
}

class HostileTest : public testing::TestWithParam<Faulty> {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer(); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  static void ExpectHonestPasses() {
    int exit_code = -1;
    core::Json json = server_->CliJson(
        {"run", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition, "--no-cache"}, &exit_code);
    EXPECT_EQ(exit_code, 0) << json.Text(2);
    EXPECT_EQ(Text(json, "verdict"), "PASSED") << json.Text(2);
  }
  static TestServer* server_;
};
TestServer* HostileTest::server_ = nullptr;

TEST_P(HostileTest, GetsItsStatusAndAnHonestKernelPassesAfterIt) {
  const Faulty& faulty = GetParam();
  int exit_code = -1;
  core::Json json = server_->CliJson({"run", SourcePath(std::string("examples/faulty/") + faulty.file), "-d",
                                      "rmsnorm_h2048", "--timeout", "3", "--no-cache"},
                                     &exit_code, 180);
  EXPECT_EQ(exit_code, faulty.exit_code) << json.Text(2);
  EXPECT_EQ(Text(json, "verdict"), faulty.status) << json.Text(2);
  ASSERT_NE(json.Find("workloads"), nullptr) << json.Text(2);
  ASSERT_FALSE(json.Find("workloads")->array().empty());
  const core::Json& workload = json.Find("workloads")->array()[0];
  EXPECT_EQ(Text(workload, "status"), faulty.status);
  for (const char* part : faulty.reason) {
    EXPECT_NE(Text(workload, "reason").find(part), std::string::npos) << Text(workload, "reason") << " lacks " << part;
  }
  ExpectHonestPasses();
}

INSTANTIATE_TEST_SUITE_P(
    Faulty, HostileTest,
    testing::Values(
        Faulty{"WrongResult", "wrong_result.cu", 1, "INCORRECT_NUMERICAL", {"output", "differ"}},
        Faulty{"HalfUnwritten", "half_unwritten.cu", 1, "INCORRECT_NUMERICAL", {"output"}},
        Faulty{"IgnoredWeight", "ignored_weight.cu", 1, "INCORRECT_NUMERICAL", {"output", "differ"}},
        Faulty{"BadPlan", "bad_plan.cu", 1, "INVALID_SUBMISSION", {"5", "4"}},
        Faulty{"OutOfBoundsWrite", "out_of_bounds_write.cu", 1, "RUNTIME_ERROR", {"out_of_bounds_write.cu:", "output"}},
        Faulty{"WriteToInput", "write_to_input.cu", 1, "RUNTIME_ERROR", {"write_to_input.cu:", "read-only"}},
        Faulty{"Misaligned", "misaligned.cu", 1, "RUNTIME_ERROR", {"misaligned.cu:", "multiple of"}},
        Faulty{"EndlessLoop", "endless_loop.cu", 1, "TIMEOUT", {"endless_loop.cu:"}},
        Faulty{"CompileError", "compile_error.cu", 1, "COMPILE_ERROR", {"compile_error.cu"}},
        Faulty{"DeviceState", "device_state.cu", 1, "REWARD_HACK", {"device_state", "device_state.cu:"}},
        Faulty{"IncludePasswd", "include_passwd.cu", 1, "COMPILE_ERROR", {"/etc/passwd"}},
        Faulty{"TemplateBomb", "template_bomb.cu", 1, "COMPILE_ERROR", {"limit"}}),
    [](const testing::TestParamInfo<Faulty>& info) { return info.param.name; });

TEST_F(HostileTest, IncludedFileLeavesNoTrace) {
  core::Json json =
      server_->CliJson({"run", SourcePath("examples/faulty/include_passwd.cu"), "-d", "rmsnorm_h2048", "--no-cache"});
  const std::string everything = json.Text();
  for (const char* secret : {"root:x", "nologin", "/bin/bash"}) {
    EXPECT_EQ(everything.find(secret), std::string::npos) << secret;
  }
}

TEST_F(HostileTest, DeviceStateRunsUnrankedWhenAllowed) {
  core::Json json = server_->CliJson({"run", SourcePath("examples/faulty/device_state.cu"), "-d", "rmsnorm_h2048",
                                      "--allow-device-state", "--no-cache"});
  EXPECT_EQ(Text(json, "verdict"), "PASSED") << json.Text(2);
  EXPECT_FALSE(json.Find("ranked")->boolean());
  EXPECT_FALSE(json.Find("workloads")->array()[0].Find("warnings")->array().empty());
}

std::string ReadText(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST_F(HostileTest, AfterThreeFaultsTheRestIsSkipped) {
  TempFolder folder;
  std::string plan = "//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))\n";
  std::string kernel =
      folder.Write("trap.cu", plan + ReadText(SourcePath("tests/cases/03_fault_then_next_job/kernel_trap.cu")));
  core::Json json = server_->CliJson({"run", kernel, "-d", SourcePath("tests/cases/03_fault_then_next_job")});
  EXPECT_EQ(Text(json, "verdict"), "RUNTIME_ERROR");
  EXPECT_FALSE(json.Find("complete")->boolean());
  const auto& workloads = json.Find("workloads")->array();
  ASSERT_GE(workloads.size(), 5u);
  for (size_t i = 0; i < workloads.size(); ++i) {
    EXPECT_EQ(Text(workloads[i], "status"), i < 3 ? "RUNTIME_ERROR" : "SKIPPED");
  }
  ExpectHonestPasses();
}

TEST_F(HostileTest, ABrokenReferenceIsNeverTheSubmissionsFault) {
  const std::string source = SourcePath("tests/cases/03_fault_then_next_job/");
  const std::string plan = "//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))\n";
  for (const std::string& reference :
       {plan + "not C++", std::string("//@ launch k grid=(\n"), plan + ReadText(source + "kernel_trap.cu")}) {
    TempFolder folder;
    for (const char* name : {"definition.json", "workload.jsonl"}) folder.Write(name, ReadText(source + name));
    folder.Write("solstice.json", R"({"version": 1, "reference": {"source": "reference.cu"}})");
    folder.Write("reference.cu", reference);
    std::string kernel = folder.Write("kernel.cu", plan + ReadText(source + "kernel_ok.cu"));
    for (int round = 0; round < 2; ++round) {
      int exit_code = 0;
      core::Json json = server_->CliJson({"run", kernel, "-d", folder.path(), "--workload", "fault-n257"}, &exit_code);
      EXPECT_EQ(exit_code, 3) << json.Text(2);
      EXPECT_EQ(Text(json, "verdict"), "INVALID_REFERENCE") << json.Text(2);
      EXPECT_FALSE(json.Find("cached")->boolean());
      EXPECT_FALSE(Text(json.Find("workloads")->array()[0], "reason").empty());
    }
  }
  ExpectHonestPasses();
}

// A definition whose reference never ends, and a kernel for it.
struct EndlessReference {
  EndlessReference() {
    const std::string source = SourcePath("tests/cases/03_fault_then_next_job/");
    const std::string plan = "//@ launch k grid=(ceil_div(N, 256)) block=(256) args=(x, y, i64(N))\n";
    for (const char* name : {"definition.json", "workload.jsonl"}) folder.Write(name, ReadText(source + name));
    folder.Write("solstice.json", R"({"version": 1, "reference": {"source": "reference.cu"}})");
    folder.Write("reference.cu", plan + ReadText(SourcePath("tests/cases/04_infinite_loop/kernel.cu")));
    kernel = folder.Write("kernel.cu", plan + ReadText(source + "kernel_ok.cu"));
  }
  // Submits it and waits until it runs; its id.
  std::string Start(const TestServer& server) const {
    core::Json json = server.CliJson({"submit", kernel, "-d", folder.path(), "--workload", "fault-n257"});
    std::string id = Text(json, "evaluation_id");
    for (int i = 0; i < 400 && Text(server.CliJson({"show", id}), "state") != "RUNNING"; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(25));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return id;
  }
  TempFolder folder;
  std::string kernel;
};

TEST_F(HostileTest, CancelFreesTheDeviceFromAnEndlessReference) {
  EndlessReference endless;
  std::string id = endless.Start(*server_);
  EXPECT_EQ(server_->Cli({"cancel", id}).exit_code, 0);
  ExpectHonestPasses();  // fails by its own limit if the judge is still at it
  EXPECT_EQ(Text(server_->CliJson({"show", id}), "state"), "CANCELLED");
}

TEST(ShutdownTest, AnEndlessReferenceDoesNotHoldTheServer) {
  TestServer server;
  EndlessReference endless;
  endless.Start(server);
  EXPECT_EQ(server.Terminate(), 0);
}

TEST(BudgetTest, AWorkloadOverTheInstructionBudgetIsSkippedWithTheEstimate) {
  TestServer server({"--instruction-budget", "1000"});
  int exit_code = 0;
  core::Json json = server.CliJson({"run", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition}, &exit_code);
  EXPECT_EQ(exit_code, 1);
  EXPECT_EQ(Text(json, "verdict"), "SKIPPED") << json.Text(2);
  const core::Json& workload = json.Find("workloads")->array()[0];
  EXPECT_NE(Text(workload, "reason").find("budget"), std::string::npos) << Text(workload, "reason");
}

TEST_F(HostileTest, RequestErrorsAreNoVerdicts) {
  TempFolder folder;
  struct Request {
    std::vector<std::string> arguments;
    const char* code;
  };
  const std::string honest = SourcePath("examples/fused_add_rmsnorm.cu");
  for (const Request& request : std::vector<Request>{
           {{"run", folder.Write("plan.cu", "//@ launch k grid=(1 block=(32) args=()\n"), "-d", kDefinition},
            "INVALID_ARGUMENT"},
           {{"run", honest, "-d", "no_such_definition"}, "NOT_FOUND"},
           {{"run", folder.Write("big.cu", std::string((1 << 20) + 1, ' ')), "-d", kDefinition}, "INVALID_ARGUMENT"}}) {
    int exit_code = 0;
    core::Json json = server_->CliJson(request.arguments, &exit_code);
    EXPECT_EQ(exit_code, 2);
    ASSERT_NE(json.Find("error"), nullptr) << json.Text(2);
    EXPECT_EQ(Text(*json.Find("error"), "code"), request.code) << json.Text(2);
    EXPECT_FALSE(Text(*json.Find("error"), "mend").empty()) << json.Text(2);
    ExpectHonestPasses();
  }
}

}  // namespace
}  // namespace solstice::test
