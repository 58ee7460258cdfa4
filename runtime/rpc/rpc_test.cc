#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/rpc/build_id.h"
#include "runtime/rpc/details.pb.h"
#include "runtime/rpc/private_server.h"
#include "runtime/rpc/status.h"

namespace solstice::rpc {
namespace {

using absl::StatusCode;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(RpcStatusTest, EveryCodeComesBackWithMessageAndMend) {
  for (int code = 1; code <= 16; ++code) {
    Status status = base::MakeStatus(static_cast<StatusCode>(code), "where: what", "do this");
    grpc::Status sent = ToGrpc(status);
    EXPECT_EQ(static_cast<int>(sent.error_code()), code);
    Status got = FromGrpc(sent);
    EXPECT_EQ(static_cast<int>(got.code()), code);
    EXPECT_EQ(base::MessageOf(got), "where: what");
    EXPECT_EQ(base::MendOf(got), "do this");
    EXPECT_EQ(RetryDelay(sent).has_value(), status.code() == StatusCode::kResourceExhausted) << code;
  }
  EXPECT_TRUE(ToGrpc(absl::OkStatus()).ok());
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  EXPECT_EQ(RetryDelay(ToGrpc(base::ResourceExhausted("full"))), kRetryDelay);
}

TEST(RpcStatusTest, DetailsAreGoogleRpcs) {
  wire::RichStatus rich;
  ASSERT_TRUE(rich.ParseFromString(ToGrpc(base::NotFound("x", "y")).error_details()));
  EXPECT_EQ(rich.code(), 5);
  EXPECT_EQ(rich.message(), "x");
  ASSERT_EQ(rich.details_size(), 1);
  EXPECT_EQ(rich.details(0).type_url(), "type.googleapis.com/google.rpc.ErrorInfo");
  wire::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(rich.details(0).value()));
  EXPECT_EQ(info.reason(), "NOT_FOUND");
  EXPECT_EQ(info.domain(), "solstice.dev");
  EXPECT_EQ(info.metadata().at("mend"), "y");
}

TEST(RpcStatusTest, TextIsBoundedAndPrintable) {
  grpc::Status sent = ToGrpc(base::InvalidArgument(std::string(100000, 'x'), std::string(100000, 'y')));
  EXPECT_EQ(sent.error_message().size(), kMaxMessageBytes);
  EXPECT_THAT(sent.error_message(), EndsWith("..."));
  EXPECT_LT(sent.error_details().size(), 2500u);
  EXPECT_TRUE(base::IsValidUtf8(ToGrpc(base::InvalidArgument("bad \xff byte")).error_message()));
}

TEST(RpcStatusTest, ForeignDetailsAreIgnored) {
  Status got = FromGrpc(grpc::Status(grpc::StatusCode::UNAVAILABLE, "no connection", "\xff\xff not a message"));
  EXPECT_EQ(got.code(), StatusCode::kUnavailable);
  EXPECT_EQ(base::MessageOf(got), "no connection");
  EXPECT_EQ(base::MendOf(got), "");
}

class PrivateServerTest : public testing::Test {
 protected:
  PrivateServerTest() : folder_(base::StrCat(testing::TempDir(), "/solstice_rpc_", base::Hex(base::RandomBytes(8)))) {
    std::filesystem::create_directories(folder_);
    ::chmod(folder_.c_str(), 0700);
    ::setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1);
  }
  ~PrivateServerTest() override {
    ::unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }
  const std::string folder_;
};

TEST_F(PrivateServerTest, EverySpellingOfAFolderGivesOneSocket) {
  auto made = PrepareDataDir(folder_ + "/a/data/");
  ASSERT_TRUE(made.ok()) << made.status();
  struct stat info;
  ASSERT_EQ(::stat(made->c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  std::filesystem::create_symlink(*made, folder_ + "/link");
  auto by_link = PrepareDataDir(folder_ + "/link");
  ASSERT_TRUE(by_link.ok());
  EXPECT_EQ(*by_link, *made);
  auto socket = PrivateSocketPath(*made);
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_EQ(*socket, base::StrCat(folder_, "/solstice/", base::Hex(base::Sha256(*made)).substr(0, 16), ".sock"));
}

TEST_F(PrivateServerTest, DataDirsThatCannotBe) {
  EXPECT_EQ(PrepareDataDir("").status().code(), StatusCode::kInvalidArgument);
  { std::ofstream file(folder_ + "/file"); }
  EXPECT_EQ(PrepareDataDir(folder_ + "/file").status().code(), StatusCode::kFailedPrecondition);
  EXPECT_FALSE(PrepareDataDir(folder_ + "/file/below").ok());
}

TEST_F(PrivateServerTest, SocketFoldersOfOthersAreRefused) {
  std::filesystem::create_directories(folder_ + "/solstice");
  ::chmod((folder_ + "/solstice").c_str(), 0755);
  EXPECT_EQ(PrivateSocketPath("/data").status().code(), StatusCode::kFailedPrecondition);
  std::filesystem::remove_all(folder_ + "/solstice");
  std::filesystem::create_directories(folder_ + "/elsewhere");
  ::chmod((folder_ + "/elsewhere").c_str(), 0700);
  std::filesystem::create_symlink(folder_ + "/elsewhere", folder_ + "/solstice");
  EXPECT_EQ(PrivateSocketPath("/data").status().code(), StatusCode::kFailedPrecondition) << "a link";
}

TEST_F(PrivateServerTest, LongSocketPathsAreRefused) {
  std::string deep = folder_ + "/" + std::string(100, 'd');
  std::filesystem::create_directories(deep);
  ::chmod(deep.c_str(), 0700);
  ::setenv("XDG_RUNTIME_DIR", deep.c_str(), 1);
  auto socket = PrivateSocketPath("/data");
  EXPECT_EQ(socket.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(socket.status()), HasSubstr("107"));
}

TEST_F(PrivateServerTest, WithoutARuntimeFolderTheSocketIsInTmp) {
  ::unsetenv("XDG_RUNTIME_DIR");
  auto socket = PrivateSocketPath("/data");
  ASSERT_TRUE(socket.ok()) << socket.status();
  EXPECT_THAT(*socket, StartsWith(base::StrCat("/tmp/solstice-", ::geteuid(), "/")));
  ::setenv("XDG_RUNTIME_DIR", "relative", 1);
  EXPECT_EQ(*PrivateSocketPath("/data"), *socket);
}

TEST_F(PrivateServerTest, DefaultDataDir) {
  ::setenv("SOLSTICE_DATA_DIR", "/given", 1);
  EXPECT_EQ(*DefaultDataDir(), "/given");
  ::unsetenv("SOLSTICE_DATA_DIR");
  std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  ::setenv("HOME", "/home/x", 1);
  ::unsetenv("XDG_DATA_HOME");
  EXPECT_EQ(*DefaultDataDir(), "/home/x/.local/share/solstice");
  ::setenv("XDG_DATA_HOME", "/data", 1);
  EXPECT_EQ(*DefaultDataDir(), "/data/solstice");
  ::unsetenv("XDG_DATA_HOME");
  ::unsetenv("HOME");
  EXPECT_EQ(DefaultDataDir().status().code(), StatusCode::kFailedPrecondition);
  if (!home.empty()) ::setenv("HOME", home.c_str(), 1);
}

TEST_F(PrivateServerTest, OneHoldsTheLock) {
  auto first = PrivateLock::TryTake(folder_);
  ASSERT_TRUE(first.ok() && first->has_value());
  auto second = PrivateLock::TryTake(folder_);
  ASSERT_TRUE(second.ok());
  EXPECT_FALSE(second->has_value());
  EXPECT_TRUE((*first)->StillOurs());
  std::filesystem::remove(folder_ + "/server.lock");
  EXPECT_FALSE((*first)->StillOurs());
  auto third = PrivateLock::TryTake(folder_);
  ASSERT_TRUE(third.ok() && third->has_value()) << "a new file, a new lock";
  EXPECT_FALSE((*first)->StillOurs());
  first->reset();
  EXPECT_FALSE(PrivateLock::TryTake(folder_)->has_value());
  third->reset();
  EXPECT_TRUE(PrivateLock::TryTake(folder_)->has_value());
  EXPECT_FALSE(PrivateLock::TryTake(folder_ + "/missing").ok());
}

TEST_F(PrivateServerTest, Handover) {
  EXPECT_FALSE(HandoverRequested(folder_, "build-a"));
  ASSERT_TRUE(RequestHandover(folder_, "build-b").ok());
  EXPECT_TRUE(HandoverRequested(folder_, "build-a"));
  EXPECT_TRUE(HandoverRequested(folder_, "build-a")) << "stays until someone clears it";
  EXPECT_FALSE(HandoverRequested(folder_, "build-b")) << "its own request is done";
  EXPECT_FALSE(HandoverRequested(folder_, "build-a"));
  ASSERT_TRUE(RequestHandover(folder_, "build-b").ok());
  ClearHandover(folder_);
  EXPECT_FALSE(HandoverRequested(folder_, "build-a"));
}

TEST_F(PrivateServerTest, BuildIds) {
  auto own = BuildIdOf("/proc/self/exe");
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_GE(own->size(), 16u);
  EXPECT_EQ(*BuildIdOf("/proc/self/exe"), *own);
  EXPECT_EQ(BuildIdOf(folder_ + "/missing").status().code(), StatusCode::kNotFound);
  { std::ofstream(folder_ + "/text") << "not a program at all, but long enough for a header of sixty-four bytes ..."; }
  EXPECT_EQ(BuildIdOf(folder_ + "/text").status().code(), StatusCode::kInvalidArgument);
  auto nothing = InstallationBuildId(folder_);
  ASSERT_TRUE(nothing.ok());
  std::filesystem::copy_file("/proc/self/exe", folder_ + "/solsticed");
  auto something = InstallationBuildId(folder_);
  ASSERT_TRUE(something.ok()) << something.status();
  EXPECT_EQ(something->size(), 20u);
  EXPECT_NE(*something, *nothing);
}

}  // namespace
}  // namespace solstice::rpc
