// SIGKILL of the server, the judge, the runner and the compiler at many moments: no acknowledged submission is lost,
// none is judged twice, and at most one retry shows.
#include <gtest/gtest.h>
#include <signal.h>

#include <chrono>
#include <map>
#include <thread>

#include "tests/support/harness.h"

namespace solstice::test {
namespace {

const char kDefinition[] = "fused_add_rmsnorm_h2048";

std::string Text(const core::Json& json, const std::string& key) {
  const core::Json* value = json.Find(key);
  return value != nullptr && value->is_string() ? value->string() : "";
}

std::string Submit(const TestServer& server, const std::string& request_id) {
  core::Json json = server.CliJson({"submit", SourcePath("examples/fused_add_rmsnorm.cu"), "-d", kDefinition,
                                    "--no-cache", "--request-id", request_id});
  return Text(json, "evaluation_id");
}

// Waits for the end, checks that it passed with at most one retry.
void ExpectPassedOnce(const TestServer& server, const std::string& id) {
  core::Json json = server.CliJson({"watch", id});
  EXPECT_EQ(Text(json, "state"), "COMPLETED") << json.Text(2);
  EXPECT_EQ(Text(json, "verdict"), "PASSED") << json.Text(2);
  EXPECT_LE(json.Find("attempt")->integer(), 2) << json.Text(2);
  std::map<std::string, int> seen;
  for (const auto& workload : json.Find("workloads")->array()) {
    EXPECT_EQ(++seen[Text(workload, "uuid")], 1) << "judged twice: " << Text(workload, "uuid");
  }
}

void Sleep(int milliseconds) { std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds)); }

TEST(CrashTest, ServerKilledAtManyMoments) {
  TestServer server;
  std::vector<std::string> ids;
  for (int round = 0; round < 6; ++round) {
    std::string id = Submit(server, "round-" + std::to_string(round));
    ASSERT_FALSE(id.empty());
    ids.push_back(id);
    Sleep(round * 60);
    server.Kill();
    server.Start();
    // The same request again is the same evaluation.
    EXPECT_EQ(Submit(server, "round-" + std::to_string(round)), id);
    ExpectPassedOnce(server, id);
  }
  core::Json list = server.CliJson({"list"});
  EXPECT_EQ(list.Find("evaluations")->array().size(), ids.size());
}

TEST(CrashTest, KilledServerLeavesNoWorkers) {
  TestServer server;
  core::Json json = server.CliJson(
      {"submit", SourcePath("examples/faulty/endless_loop.cu"), "-d", "rmsnorm_h2048", "--timeout", "100"});
  for (int i = 0; i < 200 && server.Workers("run").empty(); ++i) Sleep(50);
  std::vector<pid_t> workers;
  for (const char* role : {"compile", "judge", "run"}) {
    auto found = server.Workers(role);
    EXPECT_FALSE(found.empty()) << role;
    workers.insert(workers.end(), found.begin(), found.end());
  }
  server.Kill();
  for (pid_t pid : workers) {
    bool gone = false;
    for (int i = 0; i < 100 && !gone; ++i) {
      gone = ::kill(pid, 0) != 0;
      if (!gone) Sleep(50);
    }
    EXPECT_TRUE(gone) << "worker " << pid << " outlived its server";
  }
}

class WorkerKillTest : public testing::TestWithParam<const char*> {};

TEST_P(WorkerKillTest, TheEvaluationStillPasses) {
  const std::string role = GetParam();
  TestServer server;
  for (int round = 0; round < 4; ++round) {
    std::string id = Submit(server, "kill-" + std::to_string(round));
    ASSERT_FALSE(id.empty());
    if (role == "run") {
      for (int i = 0; i < 400 && server.Workers("run").empty(); ++i) Sleep(5);
    } else {
      Sleep(round * 25);
    }
    for (pid_t pid : server.Workers(role)) ::kill(pid, SIGKILL);
    ExpectPassedOnce(server, id);
  }
  ExpectPassedOnce(server, Submit(server, "after"));
}

INSTANTIATE_TEST_SUITE_P(Roles, WorkerKillTest, testing::Values("judge", "run", "compile"),
                         [](const testing::TestParamInfo<const char*>& info) { return std::string(info.param); });

}  // namespace
}  // namespace solstice::test
