#include "runtime/worker/header_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace solstice::worker {
namespace {

class HeaderFileTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/header_file_XXXXXX";
    ASSERT_NE(::mkdtemp(name), nullptr);
    folder_ = name;
    path_ = folder_ + "/headers.pch";
    Write(path_, "precompiled");
    auto header = HeaderFile::Freeze(path_);
    ASSERT_TRUE(header.ok()) << header.status();
    header_ = *std::move(header);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void Write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }
  absl::StatusCode Tidy() const { return header_->Tidy().code(); }

  std::string folder_, path_;
  std::unique_ptr<HeaderFile> header_;
};

TEST_F(HeaderFileTest, StaysAsLongAsItIsOnlyRead) {
  EXPECT_TRUE(header_->Tidy().ok());
  std::string text;
  std::ifstream(path_) >> text;
  EXPECT_EQ(text, "precompiled");
  EXPECT_TRUE(header_->Tidy().ok());
  struct stat info;
  ASSERT_EQ(::stat(path_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0400u);
}

TEST_F(HeaderFileTest, LeftoversAreRemoved) {
  Write(folder_ + "/edg0_12", "heap");
  Write(folder_ + "/.hidden", "");
  ASSERT_EQ(::symlink("/etc/hostname", (folder_ + "/link").c_str()), 0);
  EXPECT_TRUE(header_->Tidy().ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_TRUE(std::filesystem::exists("/etc/hostname"));
}

TEST_F(HeaderFileTest, MoreThanACompileLeavesIsAnError) {
  std::filesystem::create_directory(folder_ + "/folder");
  EXPECT_EQ(header_->Tidy().ok(), false);
  std::filesystem::remove(folder_ + "/folder");
  EXPECT_TRUE(header_->Tidy().ok());
  for (int i = 0; i < 100; ++i) Write(folder_ + "/" + std::to_string(i), "");
  EXPECT_EQ(Tidy(), absl::StatusCode::kInternal);
}

// What it takes to write into it, even when all else is put back.
TEST_F(HeaderFileTest, AChangeOfModeIsSeen) {
  ASSERT_EQ(::chmod(path_.c_str(), 0600), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0400), 0);
  EXPECT_EQ(Tidy(), absl::StatusCode::kInternal);
}

TEST_F(HeaderFileTest, AnotherFileInItsPlaceIsSeen) {
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  EXPECT_EQ(Tidy(), absl::StatusCode::kInternal);
  Write(path_, "precompiled");
  ASSERT_EQ(::chmod(path_.c_str(), 0400), 0);
  EXPECT_EQ(Tidy(), absl::StatusCode::kInternal);
}

TEST_F(HeaderFileTest, AMoveAndBackIsSeen) {
  ASSERT_EQ(::rename(path_.c_str(), (folder_ + "/other").c_str()), 0);
  ASSERT_EQ(::rename((folder_ + "/other").c_str(), path_.c_str()), 0);
  EXPECT_EQ(Tidy(), absl::StatusCode::kInternal);
}

TEST_F(HeaderFileTest, ASecondNameIsSeen) {
  ASSERT_EQ(::link(path_.c_str(), (folder_ + "/other").c_str()), 0);
  EXPECT_EQ(Tidy(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace solstice::worker
