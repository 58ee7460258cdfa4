#include "runtime/sandbox/bubblewrap.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "runtime/base/strings.h"

namespace solstice::sandbox {
namespace {

namespace fs = std::filesystem;
using base::StrCat;
using testing::HasSubstr;

// A folder laid out as a bundle.
class BundleTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/solstice_bundle_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = fs::canonical(name);
    fs::create_directories(folder_ / "bin");
    fs::create_directories(folder_ / "libexec/solstice");
  }
  void TearDown() override { fs::remove_all(folder_); }

  // The system's bubblewrap, where the bundle's own lies, with the libraries that it needs.
  void CopyBubblewrap() {
    std::string system = FindProgram("bwrap");
    ASSERT_NE(system, "");
    fs::copy_file(system, program());
    fs::create_directory(libraries());
    auto needed = SharedLibraries(system);
    ASSERT_TRUE(needed.ok()) << needed.status();
    for (const std::string& library : *needed) {
      std::string name = fs::path(library).filename();
      // The C library belongs to the loader that the program names.
      if (name.rfind("libc.", 0) != 0 && name.rfind("ld-", 0) != 0) fs::copy_file(library, libraries() / name);
    }
    ASSERT_FALSE(fs::is_empty(libraries()));
  }

  fs::path program() const { return folder_ / "libexec/solstice/bwrap"; }
  fs::path libraries() const { return folder_ / "libexec/solstice/bwrap-libraries"; }

  fs::path folder_;
};

TEST_F(BundleTest, OwnBubblewrapComesFirst) {
  std::string system = FindProgram("bwrap");
  ASSERT_NE(system, "");
  std::vector<Bubblewrap> found = FindBubblewraps("bwrap", folder_ / "bin");
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].program, system);
  EXPECT_EQ(found[0].libraries, "");

  CopyBubblewrap();
  found = FindBubblewraps("bwrap", folder_ / "bin");
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].program, program());
  EXPECT_EQ(found[0].libraries, libraries());
  EXPECT_EQ(found[1].program, system);

  found = FindBubblewraps(system, folder_ / "bin");
  ASSERT_EQ(found.size(), 1u) << "a path means that program alone";
  EXPECT_EQ(found[0].program, system);
}

TEST_F(BundleTest, FoldersAndPlainFilesAreNoPrograms) {
  fs::create_directory(program());
  EXPECT_EQ(FindBubblewraps("bwrap", folder_ / "bin").size(), 1u);
  EXPECT_EQ(FindProgram(program()), "");
  fs::remove(program());
  std::ofstream(program()) << "text";
  EXPECT_EQ(FindBubblewraps("bwrap", folder_ / "bin").size(), 1u);
  EXPECT_TRUE(FindBubblewraps("no-such-bwrap", folder_ / "bin").empty());
  EXPECT_TRUE(FindBubblewraps("/no/such/bwrap", folder_ / "bin").empty());
}

TEST_F(BundleTest, StartsWithItsOwnLibrariesBelowAPrivateFolder) {
  CopyBubblewrap();
  // As below root's home: an unprivileged uid cannot pass through.
  ASSERT_EQ(chmod(folder_.c_str(), 0700), 0);
  Spawner::Options options;
  options.bwrap = program();
  auto spawner = Spawner::Create(options);
  ASSERT_TRUE(spawner.ok()) << spawner.status();

  // Damaged libraries stop it: they are the ones that are loaded.
  for (const auto& library : fs::directory_iterator(libraries())) std::ofstream(library.path()) << "no library";
  auto damaged = Spawner::Create(options);
  EXPECT_EQ(damaged.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(damaged.status()), HasSubstr(program().string()));
  EXPECT_THAT(base::MessageOf(damaged.status()), HasSubstr("libselinux"));
}

TEST_F(BundleTest, EnvironmentOfTheJailHoldsNoLibraries) {
  CopyBubblewrap();
  Spawner::Options options;
  options.bwrap = program();
  auto spawner = Spawner::Create(options);
  ASSERT_TRUE(spawner.ok()) << spawner.status();
  const std::string probe = SOLSTICE_BINARY_DIR "/tests/jail_probe";
  JailSpec spec;
  spec.name = "probe";
  spec.argv = {"/probe"};
  spec.mounts = {{probe, "/probe"}};
  auto needed = SharedLibraries(probe);
  ASSERT_TRUE(needed.ok()) << needed.status();
  for (const std::string& library : *needed) spec.mounts.push_back({library, library});
  auto process = (*spawner)->Spawn(spec);
  ASSERT_TRUE(process.ok()) << process.status();
  auto code = (*process)->Wait(std::chrono::seconds(60));
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_EQ(*code, 0) << (*process)->Stderr();
  EXPECT_THAT((*process)->Stderr(), HasSubstr("environment="));
  EXPECT_THAT((*process)->Stderr(), testing::Not(HasSubstr("LD_LIBRARY_PATH")));
}

}  // namespace
}  // namespace solstice::sandbox
