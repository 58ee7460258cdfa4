// The main flow through real programs: submit, watch, answer from the store, tenants, cancel, compile, private server.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/support/harness.h"

namespace solstice::test {
namespace {

const char kDefinition[] = "fused_add_rmsnorm_h2048";

class ServiceFlowTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer({"--trust-tenant-metadata"}); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  static core::Json Run(const std::string& file, std::vector<std::string> more = {}, int* exit_code = nullptr) {
    std::vector<std::string> arguments = {"run", SourcePath(file), "-d", kDefinition};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return server_->CliJson(arguments, exit_code);
  }
  static TestServer* server_;
};
TestServer* ServiceFlowTest::server_ = nullptr;

std::string Text(const core::Json& json, const std::string& key) {
  const core::Json* value = json.Find(key);
  return value != nullptr && value->is_string() ? value->string() : "";
}
bool Flag(const core::Json& json, const std::string& key) {
  const core::Json* value = json.Find(key);
  return value != nullptr && value->is_bool() && value->boolean();
}

TEST_F(ServiceFlowTest, HonestKernelPassesWithEveryField) {
  int exit_code = -1;
  core::Json json = Run("examples/fused_add_rmsnorm.cu", {"--no-cache"}, &exit_code);
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(Text(json, "verdict"), "PASSED") << json.Text(2);
  EXPECT_EQ(Text(json, "state"), "COMPLETED");
  EXPECT_FALSE(Flag(json, "complete"));  // smoke workloads only
  EXPECT_FALSE(Flag(json, "cached"));
  EXPECT_EQ(Text(json, "definition").rfind("fused_add_rmsnorm_h2048@", 0), 0u);
  ASSERT_NE(json.Find("device"), nullptr);
  EXPECT_EQ(Text(*json.Find("device"), "kind"), "emulator");
  ASSERT_NE(json.Find("compile"), nullptr);
  ASSERT_FALSE(json.Find("compile")->Find("kernels")->array().empty());
  EXPECT_GT(json.Find("compile")->Find("kernels")->array()[0].Find("registers")->integer(), 0);
  const auto& workloads = json.Find("workloads")->array();
  ASSERT_GE(workloads.size(), 2u);
  for (const auto& workload : workloads) {
    EXPECT_EQ(Text(workload, "status"), "PASSED");
    EXPECT_GT(workload.Find("axes")->Find("batch_size")->integer(), 0);
    EXPECT_EQ(workload.Find("matched_ratio")->number(), 1.0);
    for (const char* key : {"reason", "mend", "max_absolute_error", "max_relative_error", "latency_us",
                            "reference_latency_us", "speedup"}) {
      EXPECT_NE(workload.Find(key), nullptr) << key;
    }
  }
}

TEST_F(ServiceFlowTest, SecondIdenticalRunComesFromTheStoreAndNotForAnotherTenant) {
  core::Json first = Run("examples/fused_add_rmsnorm.cu", {"--tenant", "alice"});
  EXPECT_EQ(Text(first, "verdict"), "PASSED");
  EXPECT_FALSE(Flag(first, "cached"));
  core::Json second = Run("examples/fused_add_rmsnorm.cu", {"--tenant", "alice"});
  EXPECT_EQ(Text(second, "verdict"), "PASSED");
  EXPECT_TRUE(Flag(second, "cached"));
  EXPECT_NE(Text(first, "evaluation_id"), Text(second, "evaluation_id"));
  core::Json other = Run("examples/fused_add_rmsnorm.cu", {"--tenant", "bob"});
  EXPECT_EQ(Text(other, "verdict"), "PASSED");
  EXPECT_FALSE(Flag(other, "cached"));
  EXPECT_FALSE(Flag(*other.Find("compile"), "cached"));
  // Nor can bob see alice's evaluation.
  EXPECT_EQ(server_->Cli({"--tenant", "bob", "show", Text(first, "evaluation_id")}).exit_code, 2);
  EXPECT_EQ(server_->Cli({"--tenant", "alice", "show", Text(first, "evaluation_id")}).exit_code, 0);
  core::Json list = server_->CliJson({"--tenant", "bob", "list"});
  EXPECT_EQ(list.Find("evaluations")->array().size(), 1u);
}

TEST_F(ServiceFlowTest, SubmitWatchShowAndIdempotency) {
  std::vector<std::string> submit = {
      "submit", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition, "--request-id", "once"};
  core::Json first = server_->CliJson(submit);
  core::Json again = server_->CliJson(submit);
  EXPECT_EQ(Text(first, "evaluation_id"), Text(again, "evaluation_id"));
  EXPECT_TRUE(Flag(again, "duplicate"));
  core::Json watched = server_->CliJson({"watch", Text(first, "evaluation_id")});
  EXPECT_EQ(Text(watched, "verdict"), "PASSED");
  core::Json shown = server_->CliJson({"show", Text(first, "evaluation_id")});
  EXPECT_EQ(shown.Canonical(), watched.Canonical());
  // The same key for other content is a conflict.
  submit.push_back("--quick");
  int exit_code = 0;
  core::Json conflict = server_->CliJson(submit, &exit_code);
  EXPECT_EQ(exit_code, 2);
  EXPECT_EQ(Text(*conflict.Find("error"), "code"), "ALREADY_EXISTS");
}

TEST_F(ServiceFlowTest, CancelEndsAnEndlessKernelAndTheNextPasses) {
  core::Json submitted = server_->CliJson(
      {"submit", SourcePath("examples/faulty/endless_loop.cu"), "-d", "rmsnorm_h2048", "--timeout", "100"});
  const std::string id = Text(submitted, "evaluation_id");
  for (int i = 0; i < 300; ++i) {
    if (Text(server_->CliJson({"show", id}), "state") == "RUNNING") break;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  EXPECT_EQ(server_->Cli({"cancel", id}).exit_code, 0);
  EXPECT_EQ(Text(server_->CliJson({"show", id}), "state"), "CANCELLED");
  EXPECT_EQ(server_->Cli({"cancel", id}).exit_code, 0);  // idempotent
  core::Json honest = Run("examples/fused_add_rmsnorm.cu", {"--no-cache"});
  EXPECT_EQ(Text(honest, "verdict"), "PASSED");
  // What has ended otherwise cannot be cancelled.
  EXPECT_EQ(server_->Cli({"cancel", Text(honest, "evaluation_id")}).exit_code, 2);
}

TEST_F(ServiceFlowTest, NamedWorkloadRunsThatOneOnly) {
  core::Json smoke = Run("examples/fused_add_rmsnorm.cu");
  const std::string uuid = Text(smoke.Find("workloads")->array()[0], "uuid");
  core::Json one = Run("examples/fused_add_rmsnorm.cu", {"--workload", uuid});
  ASSERT_EQ(one.Find("workloads")->array().size(), 1u);
  EXPECT_EQ(Text(one.Find("workloads")->array()[0], "uuid"), uuid);
}

TEST_F(ServiceFlowTest, ExamplesPass) {
  for (const auto& [file, definition] : {std::pair<const char*, const char*>{"gemm_tiled.cu", "gemm_n128_k2048"},
                                         {"gemm_mma.cu", "gemm_n128_k2048"},
                                         {"rmsnorm_two_kernels.cu", "rmsnorm_h2048"}}) {
    core::Json json = server_->CliJson({"run", SourcePath(std::string("examples/") + file), "-d", definition});
    EXPECT_EQ(Text(json, "verdict"), "PASSED") << json.Text(2);
    for (const core::Json& workload : json.Find("workloads")->array()) {
      EXPECT_TRUE(workload.Find("findings")->array().empty()) << file << workload.Text(2);
    }
  }
}

TEST_F(ServiceFlowTest, CompilePrintsKernelsAndEmits) {
  int exit_code = -1;
  core::Json json =
      server_->CliJson({"compile", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition}, &exit_code);
  EXPECT_EQ(exit_code, 0);
  EXPECT_EQ(Text(json, "status"), "PASSED");
  EXPECT_FALSE(json.Find("compile")->Find("kernels")->array().empty());
  CommandResult ptx =
      server_->Cli({"compile", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition, "--emit", "ptx"});
  EXPECT_NE(ptx.out.find(".target sm_90a"), std::string::npos);
  CommandResult cubin = server_->Cli({"compile", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition,
                                      "--emit", "cubin", "--arch", "sm_100a"});
  EXPECT_EQ(cubin.out.substr(0, 4),
            "\x7f"
            "ELF");
}

TEST_F(ServiceFlowTest, DefinitionsAndDoctor) {
  core::Json list = server_->CliJson({"definitions"});
  EXPECT_EQ(list.Find("definitions")->array().size(), 17u);
  EXPECT_TRUE(list.Find("problems")->array().empty());
  EXPECT_NE(server_->Cli({"definitions", kDefinition}).out.find("hidden_states"), std::string::npos);
  core::Json info = server_->CliJson({"doctor"});
  EXPECT_EQ(Text(*info.Find("toolchain"), "nvrtc").rfind("13.", 0), 0u);
  bool jailed = false;
  for (const auto& item : info.Find("environment")->array()) jailed = jailed || item.string() == "jail=bubblewrap";
  EXPECT_TRUE(jailed);
}

TEST(InterruptTest, CtrlCCancelsRunAndDetachesWatch) {
  TestServer server;
  TempFolder folder;
  auto start = [&](std::vector<std::string> arguments) {
    std::vector<std::string> argv = {ProgramPath("solstice"), "--server", server.address()};
    argv.insert(argv.end(), arguments.begin(), arguments.end());
    return argv;
  };
  auto newest_state = [&] {
    core::Json list = server.CliJson({"list"});
    const auto& evaluations = list.Find("evaluations")->array();
    return evaluations.empty() ? std::string() : Text(evaluations[0], "state");
  };
  auto wait_for = [&](const std::string& state) {
    for (int i = 0; i < 300 && newest_state() != state; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(50));
    return newest_state();
  };
  BackgroundProgram run(
      start({"run", SourcePath("examples/faulty/endless_loop.cu"), "-d", "rmsnorm_h2048", "--timeout", "100"}),
      folder.path() + "/run.log");
  ASSERT_EQ(wait_for("RUNNING"), "RUNNING");
  run.Signal(SIGINT);
  EXPECT_EQ(run.Wait(20).value_or(-1), 130);
  EXPECT_EQ(newest_state(), "CANCELLED");

  core::Json submitted = server.CliJson({"submit", SourcePath("examples/faulty/endless_loop.cu"), "-d", "rmsnorm_h2048",
                                         "--timeout", "100", "--no-cache"});
  ASSERT_EQ(wait_for("RUNNING"), "RUNNING");
  BackgroundProgram watch(start({"watch", Text(submitted, "evaluation_id")}), folder.path() + "/watch.log");
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  watch.Signal(SIGINT);
  EXPECT_EQ(watch.Wait(20).value_or(-1), 130);
  EXPECT_EQ(newest_state(), "RUNNING");
  EXPECT_EQ(server.Cli({"cancel", Text(submitted, "evaluation_id")}).exit_code, 0);
}

TEST(PrivateServerTest, RunWithoutAServerStartsOneAndTheNextUsesIt) {
  TempFolder folder;
  std::vector<std::string> environment = {"XDG_RUNTIME_DIR=" + folder.path(),
                                          "SOLSTICE_DATA_DIR=" + folder.path() + "/data"};
  std::vector<std::string> argv = {
      ProgramPath("solstice"), "--json", "run", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition};
  CommandResult first = RunProgram(argv, 120, environment);
  EXPECT_EQ(first.exit_code, 0) << first.out << first.err;
  EXPECT_EQ(Text(first.Json(), "verdict"), "PASSED");
  CommandResult second = RunProgram(argv, 120, environment);
  EXPECT_TRUE(Flag(second.Json(), "cached")) << second.out << second.err;
  // It ends when its lock file goes.
  EXPECT_EQ(::unlink((folder.path() + "/data/server.lock").c_str()), 0);
}

TEST(ShutdownTest, TerminateIsCleanAndARestartKeepsEverything) {
  TestServer server;
  core::Json done = server.CliJson({"run", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition});
  EXPECT_EQ(server.Terminate(), 0);
  server.Start();
  core::Json shown = server.CliJson({"show", Text(done, "evaluation_id")});
  EXPECT_EQ(shown.Canonical(), done.Canonical());
  core::Json again = server.CliJson({"run", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition});
  EXPECT_TRUE(Flag(again, "cached"));
}

}  // namespace
}  // namespace solstice::test
