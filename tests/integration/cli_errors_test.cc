// Every error that the command line and the API show, with its exit code, code, reason and mend.
#include <gtest/gtest.h>

#include "tests/support/harness.h"

namespace solstice::test {
namespace {

const char kDefinition[] = "rmsnorm_h2048";
const char kKernel[] =
    "//@ launch k grid=(batch_size) block=(32) args=(hidden_states, weight, output)\n"
    "extern \"C\" __global__ void k(const void* x, const void* w, void* y) {}\n";

std::string Field(const core::Json& json, const std::string& key) {
  const core::Json* error = json.Find("error");
  const core::Json* value = error != nullptr ? error->Find(key) : nullptr;
  return value != nullptr && value->is_string() ? value->string() : "";
}

class CliErrorsTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { server_ = new TestServer({"--trust-tenant-metadata"}); }
  static void TearDownTestSuite() {
    delete server_;
    server_ = nullptr;
  }
  // A request error: exit 2, the code, a reason that holds `part`; nothing is stored.
  void ExpectRefused(const std::vector<std::string>& arguments, const std::string& code, const std::string& part) {
    int exit_code = 0;
    size_t before = server_->CliJson({"list"}).Find("evaluations")->array().size();
    core::Json json = server_->CliJson(arguments, &exit_code);
    EXPECT_EQ(exit_code, 2) << json.Text(2);
    EXPECT_EQ(Field(json, "code"), code) << json.Text(2);
    EXPECT_NE(Field(json, "reason").find(part), std::string::npos) << Field(json, "reason") << " lacks " << part;
    EXPECT_EQ(server_->CliJson({"list"}).Find("evaluations")->array().size(), before);
  }
  std::vector<std::string> Run(const std::string& file, const std::string& definition = kDefinition) {
    return {"run", file, "-d", definition};
  }
  std::string Kernel(const std::string& text, const std::string& name = "kernel.cu") {
    return folder_.Write(name, text);
  }
  TempFolder folder_;
  static TestServer* server_;
};
TestServer* CliErrorsTest::server_ = nullptr;

TEST_F(CliErrorsTest, UnknownDefinitionNamesTheNearest) {
  int exit_code = 0;
  core::Json json = server_->CliJson(Run(Kernel(kKernel), "rmsnorm_h248"), &exit_code);
  EXPECT_EQ(exit_code, 2);
  EXPECT_EQ(Field(json, "code"), "NOT_FOUND");
  EXPECT_NE((Field(json, "reason") + Field(json, "mend")).find("rmsnorm_h2048"), std::string::npos) << json.Text(2);
}

TEST_F(CliErrorsTest, Files) {
  ExpectRefused(Run(folder_.path() + "/missing.cu"), "NOT_FOUND", "missing.cu");
  ExpectRefused(Run(Kernel(kKernel, "kernel.txt")), "INVALID_ARGUMENT", "kernel.txt");
  ExpectRefused(Run(Kernel(kKernel), folder_.path() + "/no/folder"), "NOT_FOUND", "no such folder");
  ExpectRefused(Run(Kernel("{\"name\": 3", "solution.json")), "INVALID_ARGUMENT", "solution.json");
}

TEST_F(CliErrorsTest, Sources) {
  ExpectRefused(Run(Kernel(std::string(kKernel) + "//" + std::string(1 << 20, 'x'))), "INVALID_ARGUMENT", "1048576");
  ExpectRefused(Run(Kernel(std::string(kKernel) + std::string(1, '\0'))), "INVALID_ARGUMENT", "NUL");
  ExpectRefused(Run(Kernel(std::string(kKernel) + "\xFF")), "INVALID_ARGUMENT", "0xFF");
}

TEST_F(CliErrorsTest, Plans) {
  ExpectRefused(Run(Kernel("extern \"C\" __global__ void k() {}\n")), "INVALID_ARGUMENT", "plan");
  ExpectRefused(Run(Kernel("//@ launch k grid=(1 block=(32) args=()\n__global__ void k() {}\n")), "INVALID_ARGUMENT",
                "kernel.cu:1");
  ExpectRefused(Run(Kernel("\n//@ launch k grid=(1) block=(32) args=(hidden_state)\n")), "INVALID_ARGUMENT",
                "kernel.cu:2");
}

TEST_F(CliErrorsTest, Options) {
  auto arguments = Run(Kernel(kKernel));
  auto with = [&](std::vector<std::string> more) {
    auto all = arguments;
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  ExpectRefused(with({"--workload", "no-such-uuid"}), "NOT_FOUND", "no-such-uuid");
  ExpectRefused(with({"--device", "tpu"}), "INVALID_ARGUMENT", "tpu");
  ExpectRefused(with({"--timeout", "100000"}), "INVALID_ARGUMENT", "timeout_s");
  ExpectRefused(with({"--request-id", std::string(200, 'a')}), "INVALID_ARGUMENT", "client_request_id");
  ExpectRefused(with({"--tenant", "Not A Tenant"}), "INVALID_ARGUMENT", "tenant");
  std::string solution = folder_.Write("solution.json", R"json({
    "name": "s", "definition": "rmsnorm_h2048",
    "spec": {"language": "cuda", "options": ["-I/"], "launch_plan": ["launch k grid=(1) block=(1) args=()"]},
    "sources": [{"path": "kernel.cu", "content": "extern \"C\" __global__ void k() {}"}]
  })json");
  ExpectRefused({"run", solution}, "INVALID_ARGUMENT", "-I/");
}

TEST_F(CliErrorsTest, NoSuchDeviceIsExitFour) {
  int exit_code = 0;
  auto arguments = Run(Kernel(kKernel));
  arguments.insert(arguments.end(), {"--device", "cuda:0"});
  core::Json json = server_->CliJson(arguments, &exit_code);
  EXPECT_EQ(exit_code, 4);
  EXPECT_NE(Field(json, "mend").find("emulator"), std::string::npos);
}

TEST_F(CliErrorsTest, Ids) {
  for (const char* command : {"show", "watch", "cancel"}) {
    ExpectRefused({command, "ev_01ARZ3NDEKTSV4RRFFQ69G5FAV"}, "NOT_FOUND", "ev_01ARZ3NDEKTSV4RRFFQ69G5FAV");
    int exit_code = 0;
    server_->CliJson({command, "../../etc"}, &exit_code);
    EXPECT_EQ(exit_code, 2);
  }
  ExpectRefused({"list", "--page", "nonsense"}, "INVALID_ARGUMENT", "page");
}

TEST_F(CliErrorsTest, UsageIsExitTwo) {
  for (const auto& arguments : std::vector<std::vector<std::string>>{{},
                                                                     {"run"},
                                                                     {"fly"},
                                                                     {"run", "x.cu", "--no-such-flag"},
                                                                     {"list", "-n", "0"},
                                                                     {"compile", "x.cu", "--emit", "exe"}}) {
    EXPECT_EQ(server_->Cli(arguments).exit_code, 2);
  }
  CommandResult help = server_->Cli({"run", "--help"});
  EXPECT_EQ(help.exit_code, 0);
  EXPECT_NE(help.out.find("Example:"), std::string::npos);
}

TEST_F(CliErrorsTest, NoServerIsExitThree) {
  CommandResult result =
      RunProgram({ProgramPath("solstice"), "--server", "unix:" + folder_.path() + "/none.sock", "--json", "list"}, 60);
  EXPECT_EQ(result.exit_code, 3);
  EXPECT_EQ(Field(result.Json(), "code"), "UNAVAILABLE");
}

TEST_F(CliErrorsTest, InlineDefinitionsAreRefusedWhereNotAccepted) {
  TempFolder folder;
  std::string log = folder.path() + "/log", address = "unix:" + folder.path() + "/s.sock";
  BackgroundProgram strict(
      {ProgramPath("solsticed"), "--listen", address, "--data-dir", folder.path() + "/data", "--definition-root",
       SourcePath("definitions"), "--reference-kernels", SourcePath("reference_kernels")},
      log);
  CommandResult result;
  for (int i = 0; i < 20; ++i) {
    result = RunProgram({ProgramPath("solstice"), "--server", address, "--json", "run", Kernel(kKernel), "-d",
                         SourcePath("definitions/flashinfer-bench/rmsnorm_h2048")},
                        60);
    if (Field(result.Json(), "code") != "UNAVAILABLE") break;
  }
  EXPECT_EQ(result.exit_code, 2) << result.out;
  EXPECT_EQ(Field(result.Json(), "code"), "PERMISSION_DENIED");
}

TEST_F(CliErrorsTest, JsonAloneOnStdout) {
  CommandResult result = server_->Cli({"--json", "run", Kernel(kKernel), "-d", kDefinition});
  EXPECT_TRUE(result.Json().is_object());
  EXPECT_EQ(result.exit_code, 1);  // writes nothing
}

TEST(ServerErrorsTest, StartFailuresAreClear) {
  TempFolder folder;
  auto run = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), ProgramPath("solsticed"));
    return RunProgram(arguments, 60);
  };
  EXPECT_EQ(run({"--no-such-flag"}).exit_code, 2);
  EXPECT_EQ(run({"--config", folder.path() + "/missing.textproto"}).exit_code, 2);
  EXPECT_EQ(run({"--config", folder.Write("bad.textproto", "listen: 3 nonsense")}).exit_code, 2);
  CommandResult long_path =
      run({"--listen", "unix:" + folder.path() + "/" + std::string(150, 'x'), "--data-dir", folder.path() + "/d"});
  EXPECT_NE(long_path.exit_code, 0);
  EXPECT_NE(long_path.err.find("107"), std::string::npos) << long_path.err;

  TestServer server;
  // A second one on the same data folder, and on the same socket.
  CommandResult same_data = run({"--listen", "unix:" + folder.path() + "/other.sock", "--data-dir", server.data_dir()});
  EXPECT_EQ(same_data.exit_code, 3) << same_data.err;
  EXPECT_NE(same_data.err.find("another"), std::string::npos) << same_data.err;
  CommandResult same_socket = run({"--listen", server.address(), "--data-dir", folder.path() + "/d2"});
  EXPECT_EQ(same_socket.exit_code, 3) << same_socket.err;
}

}  // namespace
}  // namespace solstice::test
