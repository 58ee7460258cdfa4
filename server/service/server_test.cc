#include "server/service/server.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <fstream>
#include <thread>

#include "runtime/base/unique_fd.h"
#include "runtime/rpc/private_server.h"
#include "server/service/executor.h"
#include "server/service/listen.h"
#include "server/service/service_fixture.h"
#include "server/store/rocksdb/rocksdb_store.h"

namespace solstice::service {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

using ServerTest = ServiceTest;

TEST_F(ServerTest, RestartEnqueuesWhatHadNotEnded) {
  Start();
  std::string queued = MustSubmit(), running = MustSubmit("t"), ended = MustSubmit();
  ASSERT_TRUE(script_.evaluations->Advance("t", running, 1, v1::COMPILING).ok());
  ASSERT_TRUE(script_.evaluations->Cancel("local", ended).ok());
  server_.reset();
  {
    base::MutexLock lock(script_.mutex);
    script_.enqueued.clear();
  }
  Start();
  EXPECT_THAT(script_.Enqueued(), ElementsAre(queued, running));
  EXPECT_EQ(script_.evaluations->Get("t", running)->attempt(), 2);
}

TEST_F(ServerTest, AddressesInUseAreNamed) {
  Start();
  ServerOptions same_socket = Options();
  same_socket.config.set_data_dir(folder_ + "/data2");
  auto second = Server::Start(std::move(same_socket));
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(second.status()), HasSubstr("another server listens there"));
  MustSubmit();  // the first one was not disturbed

  ServerOptions port = Options();
  port.config.set_data_dir(folder_ + "/data3");
  port.config.set_listen(0, "127.0.0.1:0");
  auto third = Server::Start(std::move(port));
  ASSERT_TRUE(third.ok()) << third.status();
  EXPECT_THAT((*third)->addresses()[0], StartsWith("127.0.0.1:"));
  ServerOptions same_port = Options();
  same_port.config.set_data_dir(folder_ + "/data4");
  same_port.config.set_listen(0, (*third)->addresses()[0]);
  auto fourth = Server::Start(std::move(same_port));
  EXPECT_EQ(fourth.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(fourth.status()), HasSubstr((*third)->addresses()[0]));
  EXPECT_THAT(base::MessageOf(fourth.status()), HasSubstr("in use"));
}

TEST_F(ServerTest, ASecondServerOnOneFolderIsRefused) {
  Start();
  ServerOptions options = Options();
  options.config.set_listen(0, base::StrCat("unix:", folder_, "/other.sock"));
  auto second = Server::Start(std::move(options));
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(second.status()), HasSubstr("another instance"));
}

TEST_F(ServerTest, ConfigurationErrors) {
  ServerOptions options = Options();
  options.config.add_devices("tpu:0");
  EXPECT_EQ(Server::Start(std::move(options)).status().code(), StatusCode::kInvalidArgument);
  options = Options();
  options.config.add_definition_roots(folder_ + "/missing");
  EXPECT_EQ(Server::Start(std::move(options)).status().code(), StatusCode::kInvalidArgument);
  options = Options();
  options.config.set_listen(0, "unix:" + folder_ + "/" + std::string(120, 'x'));
  auto long_path = Server::Start(std::move(options));
  EXPECT_EQ(long_path.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(base::MessageOf(long_path.status()), HasSubstr("107"));
}

TEST_F(ServerTest, ThePipelinesErrorsArePassedOn) {
  script_.start = base::NotFound("there is no cuda:63 to drive");
  auto server = Server::Start(Options());
  EXPECT_EQ(server.status().code(), StatusCode::kNotFound);
  EXPECT_THAT(base::MessageOf(server.status()), HasSubstr("cuda:63"));
  script_.start = base::FailedPrecondition("bubblewrap is missing");
  EXPECT_EQ(Server::Start(Options()).status().code(), StatusCode::kFailedPrecondition);
  script_.start = absl::OkStatus();
  Start();  // what failed left nothing behind
  MustSubmit();
}

TEST_F(ServerTest, ALostStoreIsRefusedUntilAccepted) {
  Start();
  MustSubmit();
  server_.reset();
  std::filesystem::remove_all(folder_ + "/data/store/db");
  EXPECT_EQ(Server::Start(Options()).status().code(), StatusCode::kDataLoss);
  ServerOptions options = Options();
  options.accept_loss = true;
  Start(std::move(options));
  MustSubmit();
}

TEST_F(ServerTest, WithoutTrustEveryoneIsLocal) {
  ServerOptions options = Options();
  options.config.set_trust_tenant_metadata(false);
  Start(std::move(options));
  std::string id = MustSubmit("team-a");
  EXPECT_TRUE(script_.evaluations->Get("local", id).ok());
}

TEST_F(ServerTest, HealthAndSocketPermissions) {
  Start();
  struct stat info;
  ASSERT_EQ(::stat((folder_ + "/s.sock").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
  server_.reset();
  // A socket whose server is gone is taken over.
  sockaddr_un name = {};
  name.sun_family = AF_UNIX;
  std::string path = folder_ + "/s.sock";
  std::memcpy(name.sun_path, path.c_str(), path.size() + 1);
  ::unlink(path.c_str());
  {
    base::UniqueFd fd(::socket(AF_UNIX, SOCK_STREAM, 0));
    ASSERT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
  }
  Start();
  MustSubmit();
}

class PrivateServerTest : public ServiceTest {
 protected:
  ServerOptions Private() {
    ServerOptions options = Options();
    options.private_server = true;
    options.linger = std::chrono::hours(1);
    return options;
  }
};

TEST_F(PrivateServerTest, ServesTheFoldersOwnSocketAlone) {
  Start(Private());
  auto data_dir = rpc::PrepareDataDir(folder_ + "/data");
  EXPECT_THAT(server_->addresses(), ElementsAre("unix:" + *rpc::PrivateSocketPath(*data_dir)));
  MustSubmit();
  auto second = Server::Start(Private());
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(second.status()), HasSubstr("another private server"));
}

TEST_F(PrivateServerTest, EndsWhenIdle) {
  script_.SetRunning(1);
  ServerOptions options = Private();
  options.linger = std::chrono::milliseconds(1);
  Start(std::move(options));
  script_.SetRunning(0);
  EXPECT_EQ(server_->Wait(), "nothing to do");
}

TEST_F(PrivateServerTest, EndsWhenTheLockFileGoes) {
  Start(Private());
  std::filesystem::remove(folder_ + "/data/server.lock");
  EXPECT_EQ(server_->Wait(), "the lock file is gone");
}

TEST_F(PrivateServerTest, HandsOverAfterDraining) {
  ServerOptions options = Private();
  options.handover_timeout = std::chrono::hours(1);
  Start(std::move(options));
  std::string id = MustSubmit();
  script_.SetRunning(1);
  ASSERT_TRUE(rpc::RequestHandover(folder_ + "/data", "build-b").ok());
  // Until it has noticed, calls are accepted.
  Status refused;
  while (refused.ok()) refused = Submit(Request()).status();
  EXPECT_EQ(refused.code(), StatusCode::kUnavailable);
  v1::GetRequest request;
  request.set_evaluation_id(id);
  v1::Evaluation evaluation;
  EXPECT_TRUE(evaluations_->Get(Context().get(), request, &evaluation).ok()) << "reading goes on";
  script_.SetRunning(0);
  EXPECT_EQ(server_->Wait(), "handing over to another build");
  server_.reset();
  ServerOptions next = Private();
  next.build_id = "build-b";
  Start(std::move(next));
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/data/server.handover"));
}

TEST_F(PrivateServerTest, AnEvaluationThatNeverEndsDoesNotHoldUpAHandover) {
  ServerOptions options = Private();
  options.handover_timeout = std::chrono::milliseconds(1);
  Start(std::move(options));
  script_.SetRunning(1);
  server_->RequestHandover();
  EXPECT_EQ(server_->Wait(), "handing over to another build");
}

TEST(ListenTest, MalformedAddresses) {
  for (const char* bad : {"", "7411", ":7411", "localhost", "localhost:", "localhost:x", "localhost:65536",
                          "localhost:-1", "::1:7411", "[]:1", "unix:", "unix:relative", "no.such.host.invalid:1"}) {
    EXPECT_EQ(PrepareAddress(bad).code(), StatusCode::kInvalidArgument) << bad;
  }
  EXPECT_EQ(PrepareAddress("unix:/no/such/folder/s.sock").code(), StatusCode::kFailedPrecondition);
  EXPECT_EQ(PrepareAddress("unix:/etc/passwd").code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(PrepareAddress("127.0.0.1:0").ok());
}

TEST(ListenTest, LocalAddresses) {
  for (const char* local : {"unix:/s", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"}) {
    EXPECT_TRUE(IsLocal(local)) << local;
  }
  for (const char* open : {"0.0.0.0:1", "[::]:1", "10.0.0.1:1"}) EXPECT_FALSE(IsLocal(open)) << open;
}

TEST(ConfigTest, ParsesAndNamesTheLineOfAnError) {
  auto config = ParseConfig("listen: \"unix:/a\"\nqueue_capacity: 5\ndevices: \"emulator\"", "c.textproto");
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_EQ(config->queue_capacity(), 5);
  auto bad = ParseConfig("queue_capacity: 5\nnonsense: 3", "c.textproto");
  EXPECT_EQ(bad.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(base::MessageOf(bad.status()), StartsWith("c.textproto:2:"));
  EXPECT_EQ(ReadConfig("/no/such/file").status().code(), StatusCode::kInvalidArgument);
}

TEST(ConfigTest, DefaultsAndRanges) {
  v1::ServerConfig config;
  ASSERT_TRUE(CompleteConfig("/nowhere/bin", &config).ok());
  EXPECT_EQ(config.listen(0), "127.0.0.1:7411");
  EXPECT_EQ(config.queue_capacity(), pipeline::Options().queue_capacity);
  EXPECT_GT(config.default_timeout_s(), 0);
  v1::ServerConfig twice = config;
  ASSERT_TRUE(CompleteConfig("/nowhere/bin", &twice).ok());
  EXPECT_EQ(twice.DebugString(), config.DebugString());
  const std::vector<std::function<void(v1::ServerConfig*)>> mistakes = {
      [](auto* c) { c->set_queue_capacity(-1); },          [](auto* c) { c->set_queue_capacity(1000001); },
      [](auto* c) { c->set_compile_workers(257); },        [](auto* c) { c->set_max_attempts(-2); },
      [](auto* c) { c->set_default_timeout_s(1e9); },      [](auto* c) { c->set_max_timeout_s(-1); },
      [](auto* c) { c->set_compile_timeout_s(1e9); },      [](auto* c) { c->set_instruction_budget(-1); },
      [](auto* c) { c->set_max_timeout_s(std::nan("")); },
  };
  for (size_t i = 0; i < mistakes.size(); ++i) {
    v1::ServerConfig wrong;
    mistakes[i](&wrong);
    EXPECT_EQ(CompleteConfig("/nowhere/bin", &wrong).code(), StatusCode::kInvalidArgument) << i;
  }
}

TEST(ConfigTest, Devices) {
  EXPECT_EQ(ParseDevice("emulator")->kind, v1::EMULATOR);
  EXPECT_EQ(ParseDevice("cuda")->ordinal, pipeline::kEveryOrdinal);
  EXPECT_EQ(ParseDevice("cuda:7")->ordinal, 7);
  for (const char* bad : {"", "cuda:", "cuda:-1", "cuda:64", "cuda:1x", "gpu"}) {
    EXPECT_EQ(ParseDevice(bad).status().code(), StatusCode::kInvalidArgument) << bad;
  }
  v1::ServerConfig config;
  config.add_devices("cuda");
  config.add_devices("cuda:0");
  EXPECT_EQ(PipelineOptions(config, "").status().code(), StatusCode::kInvalidArgument);
}

TEST(ExecutorTest, RunsEverythingPostedAndRefusesTheRest) {
  std::atomic<int> ran{0};
  std::atomic<bool> release{false};
  Executor executor(1, 2);
  ASSERT_TRUE(executor.Post([&] {
    while (!release.load()) std::this_thread::yield();
    ++ran;
  }));
  int accepted = 1;
  // One runs (or will), two wait at most.
  for (int i = 0; i < 10; ++i) accepted += executor.Post([&] { ++ran; }) ? 1 : 0;
  EXPECT_LE(accepted, 3);
  EXPECT_GE(accepted, 2);
  release.store(true);
  executor.Stop();
  EXPECT_EQ(ran.load(), accepted);
  EXPECT_FALSE(executor.Post([] {}));
}

}  // namespace
}  // namespace solstice::service
