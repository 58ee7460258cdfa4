#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "runtime/compile/compile.h"

namespace solstice::compile {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

// A folder for toolkits, and an environment that is put back.
class ToolkitTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/solstice_toolkit_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = fs::canonical(name);
    for (const char* variable : {"SOLSTICE_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"}) {
      const char* value = getenv(variable);
      if (value != nullptr) kept_[variable] = value;
      unsetenv(variable);
    }
  }
  void TearDown() override {
    for (const char* variable : {"SOLSTICE_CUDA_HOME", "CUDA_HOME", "CUDA_PATH"}) unsetenv(variable);
    for (const auto& [variable, value] : kept_) setenv(variable.c_str(), value.c_str(), 1);
    fs::remove_all(folder_);
  }

  static void Touch(const fs::path& path) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
  }

  // As NVIDIA's packages install it: everything below targets/, versions of three numbers behind links.
  fs::path Install(const std::string& release) {
    fs::path root = folder_ / ("cuda-" + release);
    fs::path target = root / "targets/x86_64-linux";
    for (const char* header : {"cuda.h", "cuda_fp16.h", "cccl/nv/target", "cccl/cuda/std/cstdint"}) {
      Touch(target / "include" / header);
    }
    const std::string major = release.substr(0, release.find('.'));
    for (const auto& [stem, link] : std::map<std::string, std::string>{
             {"libnvrtc.so", major}, {"libnvrtc-builtins.so", release}, {"libnvJitLink.so", major}}) {
      std::string real = stem + "." + release + ".88";
      Touch(target / "lib" / real);
      fs::create_symlink(real, target / "lib" / (stem + "." + link));
      fs::create_symlink(stem + "." + link, target / "lib" / stem);
    }
    Touch(target / "lib" / ("libnvrtc.alt.so." + major));
    fs::create_symlink("targets/x86_64-linux/lib", root / "lib64");
    fs::create_symlink("targets/x86_64-linux/include", root / "include");
    return root;
  }

  fs::path folder_;
  std::map<std::string, std::string> kept_;
};

TEST_F(ToolkitTest, AsPackagesInstallIt) {
  fs::path root = Install("13.0");
  fs::create_symlink(root, folder_ / "cuda");
  setenv("SOLSTICE_CUDA_HOME", (folder_ / "cuda").c_str(), 1);
  auto toolkit = FindToolkit();
  ASSERT_TRUE(toolkit.ok()) << toolkit.status();
  EXPECT_EQ(toolkit->root, root);
  EXPECT_EQ(toolkit->include, root / "include");
  EXPECT_EQ(toolkit->nvrtc, root / "lib64/libnvrtc.so.13");
  EXPECT_EQ(toolkit->nvrtc_builtins, root / "lib64/libnvrtc-builtins.so.13.0");
  EXPECT_EQ(toolkit->nvjitlink, root / "lib64/libnvJitLink.so.13");

  fs::remove(root / "lib64");
  toolkit = FindToolkit();
  ASSERT_TRUE(toolkit.ok()) << toolkit.status();
  EXPECT_EQ(toolkit->nvrtc, root / "targets/x86_64-linux/lib/libnvrtc.so.13");
}

TEST_F(ToolkitTest, CommonVariablesAreTriedInOrder) {
  fs::path home = Install("13.0"), path = Install("13.1"), own = Install("13.2");
  setenv("CUDA_PATH", path.c_str(), 1);
  auto root = [] { return FindToolkit().value().root; };
  if (fs::exists(fs::path(SOLSTICE_SOURCE_DIR) / ".toolkit"))
    GTEST_SKIP() << "the build tree's own toolkit comes first";
  EXPECT_EQ(root(), path);
  setenv("CUDA_HOME", home.c_str(), 1);
  EXPECT_EQ(root(), home);
  // An incomplete one, of an old release say, is passed over.
  fs::remove_all(home / "targets/x86_64-linux/include/cccl");
  EXPECT_EQ(root(), path);
  setenv("SOLSTICE_CUDA_HOME", own.c_str(), 1);
  EXPECT_EQ(root(), own);
  setenv("SOLSTICE_CUDA_HOME", home.c_str(), 1);
  auto refused = FindToolkit();
  EXPECT_EQ(refused.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(base::MessageOf(refused.status()), HasSubstr("no include/nv/target"));
}

}  // namespace
}  // namespace solstice::compile
