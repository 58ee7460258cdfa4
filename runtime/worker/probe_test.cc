// The real probe process, on whatever this host has.
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/base/strings.h"
#include "runtime/compile/compile.h"
#include "runtime/worker/worker.h"

namespace solstice::worker {
namespace {

using std::chrono::seconds;
using testing::HasSubstr;
using testing::StartsWith;

bool HasDriver() { return ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL) != nullptr; }

class ProbeTest : public testing::Test {
 protected:
  void SetUp() override {
    auto spawner = sandbox::Spawner::Create({});
    ASSERT_TRUE(spawner.ok()) << spawner.status();
    spawner_ = *std::move(spawner);
    installation_.worker_program = SOLSTICE_BINARY_DIR "/bin/solstice-worker";
  }

  std::unique_ptr<sandbox::Spawner> spawner_;
  Installation installation_;
};

TEST_F(ProbeTest, AnswersInOneMessage) {
  ::setenv("CUDA_VISIBLE_DEVICES", "0", 1);
  auto host = ProbeHost(*spawner_, installation_, seconds(60));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_EQ(host->visible_devices(), "0");
  if (HasDriver()) {
    EXPECT_TRUE(host->driver_found());
    EXPECT_EQ(host->cuda_version().empty(), !host->driver_error().empty()) << host->driver_error();
  } else {
    EXPECT_FALSE(host->driver_found());
    EXPECT_THAT(host->driver_error(), HasSubstr("there is no CUDA driver here: libcuda.so.1"));
    EXPECT_EQ(host->gpus_size(), 0);
  }
}

TEST_F(ProbeTest, OpensTheToolkitsCupti) {
  auto host = ProbeHost(*spawner_, installation_, seconds(60));
  ASSERT_TRUE(host.ok()) << host.status();
  EXPECT_FALSE(host->has_visible_devices());
  for (const char* folder : {"/lib64", "/lib", "/targets/x86_64-linux/lib", "/extras/CUPTI/lib64"}) {
    auto toolkit = compile::FindToolkit();
    ASSERT_TRUE(toolkit.ok()) << toolkit.status();
    const std::string library = base::StrCat(toolkit->root, folder, "/libcupti.so");
    if (::access(library.c_str(), R_OK) != 0) continue;
    installation_.cupti_library = library;
    host = ProbeHost(*spawner_, installation_, seconds(60));
    ASSERT_TRUE(host.ok()) << host.status();
    EXPECT_EQ(host->cupti_error(), "");
    EXPECT_EQ(host->cupti_library(), library);
    EXPECT_THAT(host->cupti_version(), testing::MatchesRegex("1[2-9]\\.[0-9]+\\.[0-9]+|API [0-9]+"));
    return;
  }
  GTEST_SKIP() << "the toolkit has no CUPTI";
}

TEST_F(ProbeTest, SaysHowItDied) {
  installation_.worker_program = "/bin/false";
  auto host = ProbeHost(*spawner_, installation_, seconds(60));
  EXPECT_EQ(host.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(base::MessageOf(host.status()), StartsWith("the host's probe died: it ended with exit code 1"));
}

TEST_F(ProbeTest, PassesOnWhatDecidesTheDriver) {
  ::setenv("CUDA_VISIBLE_DEVICES", "", 1);
  ::setenv("SOLSTICE_SECRET", "x", 1);
  EXPECT_THAT(DriverEnvironment(), testing::Contains("CUDA_VISIBLE_DEVICES="));
  EXPECT_THAT(DriverEnvironment(), testing::Not(testing::Contains(HasSubstr("SOLSTICE_SECRET"))));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::unsetenv("SOLSTICE_SECRET");
}

}  // namespace
}  // namespace solstice::worker
