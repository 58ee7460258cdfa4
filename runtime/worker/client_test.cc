// The server's side of the conversation, against workers that break every rule. The worker is a thread here, so that it
// can say anything; real processes are in worker_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "runtime/worker/service.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::HasSubstr;
using v1::internal::WorkerReply;
using v1::internal::WorkerRequest;

using Script = std::function<void(sandbox::Channel&)>;

// Plays a worker on a thread; "killed" ends nothing but is remembered.
class ScriptedProcess : public sandbox::Process {
 public:
  ScriptedProcess(base::UniqueFd server_end, base::UniqueFd worker_end, const Script& script, std::atomic<int>* kills)
      : channel_(std::move(server_end)), kills_(kills) {
    thread_ = std::thread([this, script, worker = std::make_shared<sandbox::Channel>(std::move(worker_end))] {
      script(*worker);
      worker->Close();
      ended_ = true;
    });
  }
  ~ScriptedProcess() override { thread_.join(); }
  pid_t pid() const override { return 1234; }
  base::UniqueFd TakeChannel() override { return std::move(channel_); }
  void Kill() override { ++*kills_; }
  StatusOr<int> Wait(std::chrono::nanoseconds) override {
    if (!ended_) return base::DeadlineExceeded("runs");
    return 139;
  }
  std::string Stderr() override { return "last words \xFF\n"; }

 private:
  base::UniqueFd channel_;
  std::atomic<int>* kills_;
  std::atomic<bool> ended_ = false;
  std::thread thread_;
};

class ScriptedSpawner : public sandbox::Spawner {
 public:
  explicit ScriptedSpawner(Script script) : script_(std::move(script)) {}
  StatusOr<std::unique_ptr<sandbox::Process>> Spawn(const sandbox::JailSpec&) override {
    auto pair = sandbox::Channel::MakePair();
    return std::unique_ptr<sandbox::Process>(
        new ScriptedProcess(std::move(pair->first), std::move(pair->second), script_, &kills));
  }
  std::vector<std::string> Enforced() const override { return {}; }

  std::atomic<int> kills = 0;

 private:
  Script script_;
};

void SayHello(sandbox::Channel& channel) {
  WorkerReply greeting;
  greeting.mutable_header()->set_version(kProtocolVersion);
  greeting.mutable_hello()->set_pid(2);
  ASSERT_TRUE(channel.Send(greeting).ok());
}

// Answers one request with a reply that `spoil` may change.
Script AnswerOnce(std::function<void(WorkerReply*)> spoil) {
  return [spoil](sandbox::Channel& channel) {
    SayHello(channel);
    WorkerRequest request;
    if (!channel.Receive(&request, nullptr, seconds(60)).ok()) return;
    WorkerReply reply;
    *reply.mutable_header() = request.header();
    reply.set_loaded(true);
    spoil(&reply);
    channel.Send(reply).IgnoreError();
    channel.Receive(&request, nullptr, seconds(60)).IgnoreError();
  };
}

sandbox::JailSpec Spec() {
  sandbox::JailSpec spec;
  spec.name = "runner";
  return spec;
}

StatusOr<WorkerReply> CallOnce(ScriptedSpawner& spawner, std::unique_ptr<Client>* keep = nullptr) {
  auto client = Client::Start(spawner, Spec(), seconds(60));
  EXPECT_TRUE(client.ok()) << client.status();
  WorkerRequest request;
  request.mutable_header()->set_evaluation("ev_1");
  request.mutable_header()->set_attempt(2);
  request.mutable_load()->set_program(1);
  auto reply = (*client)->Call(request, {}, nullptr, seconds(60));
  if (keep != nullptr) *keep = *std::move(client);
  return reply;
}

TEST(ClientTest, EchoIsAccepted) {
  ScriptedSpawner spawner(AnswerOnce([](WorkerReply*) {}));
  std::unique_ptr<Client> client;
  auto reply = CallOnce(spawner, &client);
  ASSERT_TRUE(reply.ok()) << reply.status();
  EXPECT_TRUE(reply->loaded());
  EXPECT_EQ(client->hello().pid(), 2);
  EXPECT_EQ(client->pid(), 1234);
  EXPECT_TRUE(client->alive());
}

TEST(ProbeHostTest, AnotherWorkersGreetingIsNoProbe) {
  ScriptedSpawner greets(SayHello);
  EXPECT_EQ(ProbeHost(greets, {}, seconds(60)).status().code(), absl::StatusCode::kFailedPrecondition);
  ScriptedSpawner probes([](sandbox::Channel& channel) {
    WorkerReply reply;
    reply.mutable_header()->set_version(kProtocolVersion + 1);
    reply.mutable_probe();
    ASSERT_TRUE(channel.Send(reply).ok());
  });
  EXPECT_EQ(ProbeHost(probes, {}, seconds(60)).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST(ProbeHostTest, OneThatHangsIsGivenUp) {
  // Says nothing until the server's end is closed.
  ScriptedSpawner hangs([](sandbox::Channel& channel) {
    WorkerRequest request;
    EXPECT_TRUE(absl::IsUnavailable(channel.Receive(&request, nullptr, seconds(60))));
  });
  Status status = ProbeHost(hangs, {}, milliseconds(20)).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_THAT(base::MendOf(status), HasSubstr("nvidia-smi"));
}

TEST(ClientTest, AnswersThatDoNotBelongKillTheWorker) {
  std::vector<std::function<void(WorkerReply*)>> spoilers = {
      [](WorkerReply* r) { r->mutable_header()->set_nonce(r->header().nonce() + 1); },
      [](WorkerReply* r) { r->mutable_header()->set_sequence(r->header().sequence() + 1); },
      [](WorkerReply* r) { r->mutable_header()->set_version(kProtocolVersion + 1); },
      [](WorkerReply* r) { r->mutable_header()->set_evaluation("ev_2"); },
      [](WorkerReply* r) { r->mutable_header()->set_attempt(1); },
      [](WorkerReply* r) { r->clear_header(); },
      [](WorkerReply* r) { r->clear_body(); },
      [](WorkerReply* r) { r->mutable_hello(); },
      // More than anything but a program may hold.
      [](WorkerReply* r) { r->mutable_outcome()->set_reason(std::string(9 << 20, 'x')); },
  };
  for (size_t i = 0; i < spoilers.size(); ++i) {
    ScriptedSpawner spawner(AnswerOnce(spoilers[i]));
    std::unique_ptr<Client> client;
    auto reply = CallOnce(spawner, &client);
    EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable) << i;
    EXPECT_THAT(base::MessageOf(reply.status()), HasSubstr("broke the protocol")) << i;
    EXPECT_EQ(spawner.kills, 1) << i;
    EXPECT_FALSE(client->alive());
    // It is of no more use.
    EXPECT_EQ(client->Call({}, {}, nullptr, seconds(60)).status().code(), absl::StatusCode::kUnavailable);
  }
}

TEST(ClientTest, UnexpectedDescriptorsAreRefused) {
  ScriptedSpawner spawner([](sandbox::Channel& channel) {
    SayHello(channel);
    WorkerRequest request;
    if (!channel.Receive(&request, nullptr, seconds(60)).ok()) return;
    WorkerReply reply;
    *reply.mutable_header() = request.header();
    reply.set_loaded(true);
    channel.Send(reply, {0, 1, 2}).IgnoreError();
  });
  EXPECT_EQ(CallOnce(spawner).status().code(), absl::StatusCode::kUnavailable);
}

TEST(ClientTest, WorkerErrorsComeBackAsTheirStatus) {
  ScriptedSpawner spawner(AnswerOnce([](WorkerReply* r) {
    r->mutable_error()->set_code(static_cast<int>(absl::StatusCode::kFailedPrecondition));
    r->mutable_error()->set_message("no module");
  }));
  std::unique_ptr<Client> client;
  auto reply = CallOnce(spawner, &client);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(reply.status()), HasSubstr("no module"));
  EXPECT_TRUE(client->alive());
  // A code of OK or one that does not exist is still an error.
  for (int code : {0, -1, 99}) {
    ScriptedSpawner other(AnswerOnce([code](WorkerReply* r) { r->mutable_error()->set_code(code); }));
    EXPECT_EQ(CallOnce(other).status().code(), absl::StatusCode::kUnknown) << code;
  }
}

TEST(ClientTest, DeathSaysHow) {
  ScriptedSpawner spawner([](sandbox::Channel& channel) {
    SayHello(channel);
    WorkerRequest request;
    channel.Receive(&request, nullptr, seconds(60)).IgnoreError();
  });
  auto reply = CallOnce(spawner);
  EXPECT_EQ(reply.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::MessageOf(reply.status()), HasSubstr("last words ?"));
}

TEST(ClientTest, SilenceIsADeadline) {
  std::atomic<bool> done = false;
  ScriptedSpawner spawner([&done](sandbox::Channel& channel) {
    SayHello(channel);
    while (!done) std::this_thread::sleep_for(milliseconds(1));
  });
  auto client = Client::Start(spawner, Spec(), seconds(60));
  ASSERT_TRUE(client.ok());
  EXPECT_EQ((*client)->Call({}, {}, nullptr, milliseconds(10)).status().code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_FALSE((*client)->alive()) << "a late answer would be taken for the next one's";
  done = true;
}

TEST(ClientTest, BadGreetings) {
  ScriptedSpawner silent([](sandbox::Channel&) {});
  EXPECT_EQ(Client::Start(silent, Spec(), seconds(60)).status().code(), absl::StatusCode::kUnavailable);
  ScriptedSpawner old([](sandbox::Channel& channel) {
    WorkerReply greeting;
    greeting.mutable_header()->set_version(kProtocolVersion + 1);
    greeting.mutable_hello();
    channel.Send(greeting).IgnoreError();
  });
  auto client = Client::Start(old, Spec(), seconds(60));
  EXPECT_EQ(client.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_FALSE(base::MendOf(client.status()).empty());
}

// ---- Serve: the worker's side ------------------------------------------------------------------------------------

class ServeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto pair = sandbox::Channel::MakePair();
    server_ = std::make_unique<sandbox::Channel>(std::move(pair->first));
    thread_ = std::thread([this, worker = std::make_shared<sandbox::Channel>(std::move(pair->second))] {
      code_ = Serve(*worker, {}, [](const WorkerRequest& request, std::vector<base::UniqueFd>) -> StatusOr<Answer> {
        if (!request.has_load()) return base::InvalidArgument("only loads");
        Answer answer;
        answer.reply.mutable_outcome()->set_device_output("\xC3(");
        answer.last = request.load().program() == 9;
        return answer;
      });
    });
    WorkerReply greeting;
    ASSERT_TRUE(server_->Receive(&greeting, nullptr, seconds(60)).ok());
    EXPECT_TRUE(greeting.has_hello());
  }
  void TearDown() override {
    server_->Close();
    if (thread_.joinable()) thread_.join();
  }
  WorkerReply Exchange(const WorkerRequest& request) {
    WorkerReply reply;
    EXPECT_TRUE(server_->Send(request).ok());
    EXPECT_TRUE(server_->Receive(&reply, nullptr, seconds(60)).ok());
    return reply;
  }

  std::unique_ptr<sandbox::Channel> server_;
  std::atomic<int> code_ = -1;
  std::thread thread_;
};

TEST_F(ServeTest, EchoesErrorsAndEnds) {
  WorkerRequest request;
  request.mutable_header()->set_version(kProtocolVersion);
  request.mutable_header()->set_nonce(77);
  WorkerReply reply = Exchange(request);
  EXPECT_EQ(reply.error().message(), "only loads");
  EXPECT_EQ(reply.header().nonce(), 77u);
  request.mutable_load();
  EXPECT_EQ(Exchange(request).outcome().device_output(), "?(") << "bad UTF-8 would not parse";
  request.mutable_header()->set_version(kProtocolVersion + 1);
  EXPECT_THAT(Exchange(request).error().message(), HasSubstr(base::StrCat("version ", kProtocolVersion + 1)));
  request.mutable_header()->set_version(kProtocolVersion);
  request.mutable_load()->set_program(9);
  Exchange(request);
  thread_.join();
  EXPECT_EQ(code_, 0);
}

TEST_F(ServeTest, EndsWithItsPeer) {
  server_->Close();
  thread_.join();
  EXPECT_EQ(code_, 0);
}

TEST_F(ServeTest, GarbageEndsIt) {
  ASSERT_EQ(write(server_->fd(), "garbage", 7), 7);
  thread_.join();
  EXPECT_EQ(code_, 1);
}

TEST(Utf8Test, OnlyBadBytesAreReplaced) {
  EXPECT_EQ(ToUtf8("a\xC3\xA9\xF0\x9F\x98\x80z"), "a\xC3\xA9\xF0\x9F\x98\x80z");
  EXPECT_EQ(ToUtf8("a\xC3"), "a?");
  EXPECT_EQ(ToUtf8("\xFF\xFE\xC3\xA9"), "??\xC3\xA9");
  EXPECT_EQ(ToUtf8("\xED\xA0\x80"), "???");
  WorkerReply reply;
  reply.mutable_program()->add_math_modes("\xFF");
  reply.mutable_program()->add_kernels()->set_name("k\xFF");
  reply.mutable_program()->set_ptx("\xFF");
  MakeUtf8(&reply);
  EXPECT_EQ(reply.program().math_modes(0), "?");
  EXPECT_EQ(reply.program().kernels(0).name(), "k?");
  EXPECT_EQ(reply.program().ptx(), "\xFF") << "bytes stay";
}

TEST(FlagsTest, Forms) {
  std::vector<std::string> words = {"worker", "run", "--a=1", "--b=x=y", "--a=2"};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  auto flags = Flags::Parse(5, argv.data());
  ASSERT_TRUE(flags.ok());
  EXPECT_EQ(flags->Get("a"), "2");
  EXPECT_EQ(flags->Get("b"), "x=y");
  EXPECT_EQ(flags->Get("c"), "");
  EXPECT_EQ(flags->All("a").size(), 2u);
  words[2] = "plain";
  argv[2] = words[2].data();
  EXPECT_FALSE(Flags::Parse(5, argv.data()).ok());
}

}  // namespace
}  // namespace solstice::worker
