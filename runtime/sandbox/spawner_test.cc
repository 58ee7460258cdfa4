#include "runtime/sandbox/spawner.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <thread>

#include "runtime/base/strings.h"
#include "runtime/sandbox/process.h"

namespace solstice::sandbox {
namespace {

using base::StrCat;
using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::Contains;
using testing::HasSubstr;
using testing::Not;

// AddressSanitizer maps terabytes, so a limit on address space cannot be tested under it.
#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

constexpr int kFirstUid = 611000;
const char kProbe[] = SOLSTICE_BINARY_DIR "/tests/jail_probe";

std::map<std::string, std::string> Lines(const std::string& text) {
  std::map<std::string, std::string> values;
  for (std::string_view line : base::Split(text, '\n')) {
    size_t equals = line.find('=');
    if (equals != std::string::npos) values[std::string(line.substr(0, equals))] = line.substr(equals + 1);
  }
  return values;
}

std::string ProcStatus(pid_t pid) {
  std::ifstream file(StrCat("/proc/", pid, "/status"));
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool Alive(pid_t pid) {
  std::string status = ProcStatus(pid);
  return !status.empty() && status.find("State:\tZ") == std::string::npos &&
         status.find("State:\tX") == std::string::npos;
}

// Polls until `condition` holds; the limit only ends a test that has failed.
template <typename Condition>
bool Eventually(Condition condition) {
  for (int i = 0; i < 3000; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(milliseconds(10));
  }
  return false;
}

class SpawnerTest : public testing::Test {
 protected:
  void SetUp() override {
    Spawner::Options options;
    options.first_uid = kFirstUid;
    auto spawner = Spawner::Create(options);
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    spawner_ = *std::move(spawner);
  }

  static JailSpec Spec(std::vector<std::string> arguments) {
    JailSpec spec;
    spec.name = "probe";
    spec.argv = {"/probe"};
    spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
    spec.mounts = {{kProbe, "/probe"}};
    auto libraries = SharedLibraries(kProbe);
    EXPECT_TRUE(libraries.ok()) << libraries.status();
    for (const std::string& library : *libraries) spec.mounts.push_back({library, library});
    return spec;
  }

  std::map<std::string, std::string> Describe(const JailSpec& spec) {
    auto process = spawner_->Spawn(spec);
    EXPECT_TRUE(process.ok()) << process.status();
    if (!process.ok()) return {};
    auto code = (*process)->Wait(seconds(60));
    EXPECT_TRUE(code.ok() && *code == 0) << code.status() << (code.ok() ? *code : -1) << (*process)->Stderr();
    return Lines((*process)->Stderr());
  }

  std::unique_ptr<Spawner> spawner_;
};

TEST_F(SpawnerTest, InsideAJail) {
  char secret[] = "/tmp/solstice_secret_XXXXXX";
  int fd = mkstemp(secret);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(setenv("SOLSTICE_TEST_SECRET", "hidden", 1), 0);
  JailSpec spec = Spec({"describe", secret, "/root", "/home", SOLSTICE_SOURCE_DIR});
  spec.mounts.push_back({SOLSTICE_SOURCE_DIR "/cmake", "/data"});
  auto seen = Describe(spec);
  unlink(secret);
  close(fd);
  EXPECT_EQ(seen["uid"], "65534 65534");
  EXPECT_EQ(seen["gid"].substr(0, 6), "65534 ");
  EXPECT_EQ(seen["host"], "solstice");
  EXPECT_THAT(seen["environment"], Not(HasSubstr("SOLSTICE")));
  EXPECT_THAT(seen["environment"], Not(HasSubstr("PATH")));
  EXPECT_EQ(seen["fds"], "0 1 2 3 ");
  EXPECT_EQ(seen["proc"], "ENOENT");
  EXPECT_EQ(seen["etc"], "ENOENT");
  EXPECT_EQ(seen["outside"], "ENOENT ENOENT ENOENT ENOENT ");
  EXPECT_THAT(seen["root"], Not(HasSubstr("etc")));
  EXPECT_THAT(seen["root"], HasSubstr("data"));
  EXPECT_EQ(seen["write_root"], "EROFS");
  EXPECT_THAT(seen["write_self"], testing::AnyOf("EROFS", "ETXTBSY", "EACCES"));
  EXPECT_EQ(seen["write_mounted"], "EROFS");
  EXPECT_EQ(seen["write_tmp"], "ENOENT");
  EXPECT_EQ(seen["inet"], "EPERM");
  EXPECT_EQ(seen["vsock"], "EPERM");
  EXPECT_EQ(seen["unix"], "ok");
  EXPECT_EQ(seen["signal_parent"], "ok 1") << "the only other process is the jail's own init";
  EXPECT_EQ(seen["signal_all"], "ESRCH") << "there is nobody else to signal";
  EXPECT_EQ(seen["unshare"], "EPERM");
  EXPECT_EQ(seen["ptrace"], "EPERM");
  EXPECT_EQ(seen["mount"], "EPERM");
  EXPECT_EQ(seen["chroot"], "EPERM");
  EXPECT_THAT(seen["setuid"], testing::AnyOf("EPERM", "EINVAL"));
  EXPECT_EQ(seen["limit_core"], "0");
}

TEST_F(SpawnerTest, ProcAndTmpOnlyWhenAsked) {
  JailSpec spec = Spec({"describe"});
  spec.proc = true;
  spec.tmp_bytes = 1 << 20;
  auto seen = Describe(spec);
  EXPECT_EQ(seen["proc"], "ok");
  EXPECT_EQ(seen["write_tmp"], "ok");
  EXPECT_EQ(seen["write_root"], "EROFS");
}

TEST_F(SpawnerTest, LimitsAreSet) {
  JailSpec spec = Spec({"describe"});
  if (!kSanitized) spec.limits.address_space_bytes = int64_t{3} << 30;
  spec.limits.cpu_seconds = 77;
  spec.limits.file_bytes = 12345678;
  spec.limits.open_files = 99;
  spec.limits.processes = 55;
  auto seen = Describe(spec);
  EXPECT_EQ(seen["limit_as"], kSanitized ? "none" : "3221225472");
  EXPECT_EQ(seen["limit_cpu"], "77");
  EXPECT_EQ(seen["limit_fsize"], "12345678");
  EXPECT_EQ(seen["limit_nofile"], "99");
  if (geteuid() == 0) {
    EXPECT_EQ(seen["limit_nproc"], "55");
  }
  EXPECT_EQ(seen["limit_core"], "0");
}

TEST_F(SpawnerTest, ForkBombIsBounded) {
  if (geteuid() != 0) GTEST_SKIP() << "needs a uid of its own";
  JailSpec spec = Spec({"forks"});
  spec.limits.processes = 20;
  auto seen = Describe(spec);
  int forks = std::atoi(seen["forks"].c_str());
  EXPECT_GT(forks, 0);
  EXPECT_LE(forks, 20);
}

TEST_F(SpawnerTest, UnprivilegedOutside) {
  auto process = spawner_->Spawn(Spec({"daemon"}));
  ASSERT_TRUE(process.ok());
  ASSERT_TRUE(Eventually([&] { return (*process)->Stderr().find("ready=1") != std::string::npos; }))
      << (*process)->Stderr();
  int64_t resident;
  std::vector<pid_t> tree = ProcessTree((*process)->pid(), &resident);
  EXPECT_GE(tree.size(), 3u) << "bubblewrap, init, probe";
  for (pid_t pid : tree) {
    std::string status = ProcStatus(pid);
    if (geteuid() == 0) {
      EXPECT_THAT(status, HasSubstr(StrCat("Uid:\t", kFirstUid, "\t", kFirstUid, "\t", kFirstUid, "\t", kFirstUid)));
      EXPECT_THAT(status, HasSubstr(StrCat("Gid:\t", kFirstUid, "\t")));
    }
    EXPECT_THAT(status, HasSubstr("NoNewPrivs:\t1"));
  }
  EXPECT_THAT(ProcStatus(tree.back()), HasSubstr("CapEff:\t0000000000000000"));
  EXPECT_THAT(ProcStatus(tree.back()), HasSubstr("CapBnd:\t0000000000000000"));
}

TEST_F(SpawnerTest, SlotsHaveTheirOwnUid) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  JailSpec spec = Spec({"sleep"});
  spec.slot = 3;
  auto process = spawner_->Spawn(spec);
  ASSERT_TRUE(process.ok());
  EXPECT_THAT(ProcStatus((*process)->pid()), HasSubstr(StrCat("Uid:\t", kFirstUid + 3, "\t")));
}

// Process ids of the tree once its daemon is there: bubblewrap, init, probe, daemon.
std::vector<pid_t> DaemonTree(Process& process) {
  std::vector<pid_t> tree;
  EXPECT_TRUE(Eventually([&] {
    int64_t resident;
    tree = ProcessTree(process.pid(), &resident);
    return process.Stderr().find("ready=1") != std::string::npos && tree.size() >= 4;
  })) << process.Stderr();
  return tree;
}

TEST_F(SpawnerTest, KillTakesTheWholeTree) {
  auto process = spawner_->Spawn(Spec({"daemon"}));
  ASSERT_TRUE(process.ok());
  std::vector<pid_t> tree = DaemonTree(**process);
  EXPECT_EQ((*process)->Wait(milliseconds(0)).status().code(), absl::StatusCode::kDeadlineExceeded);
  (*process)->Kill();
  (*process)->Kill();
  auto code = (*process)->Wait(seconds(60));
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 128 + SIGKILL);
  EXPECT_EQ(*(*process)->Wait(seconds(0)), 128 + SIGKILL);
  for (pid_t pid : tree) EXPECT_TRUE(Eventually([pid] { return !Alive(pid); })) << pid;
}

TEST_F(SpawnerTest, DestructorLeavesNothingRunning) {
  auto process = spawner_->Spawn(Spec({"daemon"}));
  ASSERT_TRUE(process.ok());
  std::vector<pid_t> tree = DaemonTree(**process);
  process->reset();
  for (pid_t pid : tree) EXPECT_FALSE(Alive(pid)) << pid;
}

TEST_F(SpawnerTest, DaemonDoesNotOutliveTheWorker) {
  // The probe ends by itself, its daemon does not: with the worker the whole process namespace goes.
  auto process = spawner_->Spawn(Spec({"daemon"}));
  ASSERT_TRUE(process.ok());
  std::vector<pid_t> tree = DaemonTree(**process);
  ASSERT_EQ(kill(tree[2], SIGKILL), 0);
  EXPECT_TRUE((*process)->Wait(seconds(60)).ok());
  for (pid_t pid : tree) EXPECT_TRUE(Eventually([pid] { return !Alive(pid); })) << pid;
}

TEST_F(SpawnerTest, EndsWithTheSpawner) {
  auto process = spawner_->Spawn(Spec({"daemon"}));
  ASSERT_TRUE(process.ok());
  std::vector<pid_t> tree = DaemonTree(**process);
  spawner_.reset();
  for (pid_t pid : tree) EXPECT_TRUE(Eventually([pid] { return !Alive(pid); })) << pid;
}

TEST_F(SpawnerTest, EndsWhenTheServerIsKilled) {
  int report[2];
  ASSERT_EQ(pipe(report), 0);
  JailSpec jailed = Spec({"daemon"});
  JailSpec plain = Spec({"sleep"});
  plain.jailed = false;
  plain.argv[0] = kProbe;
  pid_t server = fork();
  if (server == 0) {
    auto spawner = Spawner::Create({});
    if (!spawner.ok()) _exit(1);
    auto first = (*spawner)->Spawn(jailed);
    auto second = (*spawner)->Spawn(plain);
    if (!first.ok() || !second.ok()) _exit(2);
    std::vector<pid_t> tree = DaemonTree(**first);
    tree.push_back((*second)->pid());
    [[maybe_unused]] ssize_t written = write(report[1], tree.data(), tree.size() * sizeof(pid_t));
    while (true) pause();
  }
  close(report[1]);
  pid_t pids[16];
  ssize_t count = read(report[0], pids, sizeof pids);
  ASSERT_GE(count, static_cast<ssize_t>(5 * sizeof(pid_t)));
  ASSERT_EQ(kill(server, SIGKILL), 0);
  waitpid(server, nullptr, 0);
  for (size_t i = 0; i < static_cast<size_t>(count) / sizeof(pid_t); ++i) {
    EXPECT_TRUE(Eventually([&] { return !Alive(pids[i]); })) << pids[i];
  }
  close(report[0]);
}

TEST_F(SpawnerTest, ExitCodesAndSignals) {
  auto process = spawner_->Spawn(Spec({"exit", "7"}));
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*(*process)->Wait(seconds(60)), 7);
  process = spawner_->Spawn(Spec({"crash"}));
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*(*process)->Wait(seconds(60)), 128 + SIGABRT);
}

TEST_F(SpawnerTest, CpuLimitKills) {
  JailSpec spec = Spec({"spin"});
  spec.limits.cpu_seconds = 1;
  auto process = spawner_->Spawn(spec);
  ASSERT_TRUE(process.ok());
  auto code = (*process)->Wait(seconds(120));
  ASSERT_TRUE(code.ok());
  EXPECT_GT(*code, 128);
}

TEST_F(SpawnerTest, AddressSpaceLimitBinds) {
  if (kSanitized) GTEST_SKIP();
  JailSpec spec = Spec({"allocate", "1000"});
  spec.limits.address_space_bytes = 200 << 20;
  auto process = spawner_->Spawn(spec);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*(*process)->Wait(seconds(120)), 3);
  EXPECT_THAT((*process)->Stderr(), HasSubstr("allocation=refused"));
}

TEST_F(SpawnerTest, WatchdogKillsWhatUsesTooMuchMemory) {
  JailSpec spec = Spec({"allocate", "300"});
  spec.limits.resident_bytes = 100 << 20;
  auto process = spawner_->Spawn(spec);
  ASSERT_TRUE(process.ok());
  auto code = (*process)->Wait(seconds(120));
  ASSERT_TRUE(code.ok());
  EXPECT_EQ(*code, 128 + SIGKILL);
  EXPECT_THAT((*process)->Stderr(), HasSubstr("the limit is 100 MiB"));
}

TEST_F(SpawnerTest, StderrKeepsItsLast64KiB) {
  auto process = spawner_->Spawn(Spec({"flood"}));
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*(*process)->Wait(seconds(60)), 0);
  ASSERT_TRUE(Eventually([&] { return (*process)->Stderr().find("the end") != std::string::npos; }));
  EXPECT_EQ((*process)->Stderr().size(), size_t{64} << 10);
}

TEST_F(SpawnerTest, ChannelIsDescriptorThree) {
  auto process = spawner_->Spawn(Spec({"echo"}));
  ASSERT_TRUE(process.ok());
  base::UniqueFd channel = (*process)->TakeChannel();
  EXPECT_FALSE((*process)->TakeChannel().valid());
  ASSERT_EQ(send(channel.get(), "ping", 4, 0), 4);
  char answer[16];
  ASSERT_EQ(recv(channel.get(), answer, sizeof answer, 0), 4);
  EXPECT_EQ(std::string(answer, 4), "ping");
  (*process)->Kill();
  EXPECT_EQ(recv(channel.get(), answer, sizeof answer, 0), 0) << "nobody else holds the other end";
}

TEST_F(SpawnerTest, PlainChildForTrustedCode) {
  JailSpec spec = Spec({"describe"});
  spec.jailed = false;
  spec.argv[0] = kProbe;
  auto seen = Describe(spec);
  EXPECT_EQ(seen["uid"], StrCat(getuid(), " ", geteuid()));
  EXPECT_EQ(seen["fds"], "0 1 2 3 ");
  EXPECT_EQ(seen["environment"], "");
  spec.environment = {"CUDA_VISIBLE_DEVICES=1", "EMPTY="};
  EXPECT_EQ(Describe(spec)["environment"], "CUDA_VISIBLE_DEVICES=1 EMPTY= ");
}

TEST_F(SpawnerTest, UnreadableFoldersAboveASourceDoNotMatter) {
  char folder[] = "/tmp/solstice_closed_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);  // 0700
  std::string copy = StrCat(folder, "/probe");
  ASSERT_EQ(std::system(StrCat("cp ", kProbe, " ", copy).c_str()), 0);
  JailSpec spec = Spec({"describe"});
  spec.mounts[0].source = copy;
  auto seen = Describe(spec);
  EXPECT_EQ(seen["uid"], "65534 65534");
  ASSERT_EQ(std::system(StrCat("rm -rf ", folder).c_str()), 0);
}

TEST_F(SpawnerTest, AReplacedSourceIsSeen) {
  char folder[] = "/tmp/solstice_replaced_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  std::string program = StrCat(folder, "/probe");
  ASSERT_EQ(std::system(StrCat("cp /bin/true ", program).c_str()), 0);
  JailSpec spec = Spec({"exit", "9"});
  spec.mounts[0].source = program;
  auto process = spawner_->Spawn(spec);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*(*process)->Wait(seconds(60)), 0);
  ASSERT_EQ(std::system(StrCat("cp ", kProbe, " ", program, ".new && mv ", program, ".new ", program).c_str()), 0);
  process = spawner_->Spawn(spec);
  ASSERT_TRUE(process.ok());
  EXPECT_EQ(*(*process)->Wait(seconds(60)), 9);
  ASSERT_EQ(std::system(StrCat("rm -rf ", folder).c_str()), 0);
}

TEST_F(SpawnerTest, ManyThreadsSpawnAtOnce) {
  std::vector<std::thread> threads;
  std::atomic<int> right = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      JailSpec spec = Spec({"exit", std::to_string(i)});
      spec.slot = i;
      auto process = spawner_->Spawn(spec);
      if (process.ok() && *(*process)->Wait(seconds(60)) == i) ++right;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 8);
}

TEST_F(SpawnerTest, BadSpecifications) {
  JailSpec spec = Spec({});
  spec.mounts[0].source = "/no/such/file";
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kNotFound);
  spec = Spec({});
  spec.mounts[0].destination = "/a/../b";
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec({});
  spec.mounts[0].source = "relative";
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec({});
  spec.mounts[0].destination = "/";
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec({});
  spec.argv.clear();
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec({});
  spec.slot = -1;
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec({std::string("a\0b", 3)});
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kInvalidArgument);
  spec = Spec({});
  spec.jailed = false;
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kFailedPrecondition) << "no /probe outside";
  for (const char* entry : {"", "=value", "NAME"}) {
    spec.environment = {entry};
    EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kInvalidArgument) << entry;
  }
  spec = Spec({});
  spec.environment = {"NAME=value"};
  EXPECT_EQ(spawner_->Spawn(spec).status().code(), absl::StatusCode::kInvalidArgument) << "a jail has none";
}

TEST(SpawnerCreateTest, RemovesWhatKilledServersLeft) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root";
  char left[] = "/run/solstice-jails-XXXXXX";
  ASSERT_NE(mkdtemp(left), nullptr);
  char used[] = "/run/solstice-jails-XXXXXX";
  ASSERT_NE(mkdtemp(used), nullptr);
  base::UniqueFd lock(open(used, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  ASSERT_EQ(flock(lock.get(), LOCK_EX), 0);
  ASSERT_TRUE(Spawner::Create({}).ok());
  EXPECT_NE(access(left, F_OK), 0);
  EXPECT_EQ(access(used, F_OK), 0);
  EXPECT_EQ(rmdir(used), 0);
}

TEST(SpawnerCreateTest, SaysWhatIsMissing) {
  Spawner::Options options;
  options.bwrap = "/no/such/bwrap";
  auto spawner = Spawner::Create(options);
  EXPECT_EQ(spawner.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MendOf(spawner.status()), HasSubstr("install"));
  options.bwrap = "/bin/false";
  spawner = Spawner::Create(options);
  EXPECT_EQ(spawner.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(spawner.status()), HasSubstr("cannot make a jail"));
}

TEST_F(SpawnerTest, EnforcedIsHonest) {
  EXPECT_THAT(spawner_->Enforced(), Contains("jail=bubblewrap"));
  EXPECT_THAT(spawner_->Enforced(), Contains(geteuid() == 0 ? "uid=per-slot" : "uid=server"));
}

TEST(SharedLibrariesTest, FindsLoaderAndRefusesOtherFiles) {
  auto libraries = SharedLibraries("/proc/self/exe");
  ASSERT_TRUE(libraries.ok()) << libraries.status();
  EXPECT_THAT(*libraries, Contains(HasSubstr("libc.so")));
  EXPECT_THAT(*libraries, Contains(HasSubstr("/ld-linux")));
  for (const std::string& library : *libraries) EXPECT_EQ(access(library.c_str(), R_OK), 0) << library;
  EXPECT_EQ(SharedLibraries("/etc/hostname").status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SharedLibraries("/no/such").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace solstice::sandbox
