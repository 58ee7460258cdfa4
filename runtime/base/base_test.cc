#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>

#include <cstdlib>
#include <set>

#include "runtime/base/crypto.h"
#include "runtime/base/file.h"
#include "runtime/base/status.h"
#include "runtime/base/strings.h"

namespace solstice::base {
namespace {

TEST(StatusTest, MendSurvivesAnnotation) {
  Status status = Annotate(InvalidArgument("$.axes.N: must be an integer", "write 16"), "workload.jsonl:3");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(MessageOf(status), "workload.jsonl:3: $.axes.N: must be an integer");
  EXPECT_EQ(MendOf(status), "write 16");
}

TEST(StringsTest, Utf8) {
  EXPECT_TRUE(IsValidUtf8("a\xC3\xA9\xF0\x9F\x98\x80"));
  EXPECT_FALSE(IsValidUtf8("\xC0\x80"));          // overlong
  EXPECT_FALSE(IsValidUtf8("\xED\xA0\x80"));      // surrogate
  EXPECT_FALSE(IsValidUtf8("\xF4\x90\x80\x80"));  // above U+10FFFF
  EXPECT_FALSE(IsValidUtf8("a\xC3"));
  EXPECT_EQ(Utf8Prefix("a\xC3\xA9z", 2), "a");
  EXPECT_EQ(Utf8Prefix("a\xC3\xA9z", 3), "a\xC3\xA9");
}

TEST(StringsTest, QuoteEscapesAndCuts) {
  EXPECT_EQ(Quote("a\nb\"\x01"), "\"a\\nb\\\"\\x01\"");
  EXPECT_EQ(Quote(std::string(200, 'a'), 10), "\"aaaaaaaaaa...\"");
}

TEST(StringsTest, Nearest) {
  EXPECT_EQ(Nearest("fused_add_rmsnorm_h248", {"gemm", "fused_add_rmsnorm_h2048"}), "fused_add_rmsnorm_h2048");
  EXPECT_EQ(Nearest("zzz", {"gemm"}), "");
}

TEST(CryptoTest, KnownAnswers) {
  EXPECT_EQ(Hex(Sha256("abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(Hex(HmacSha256("key", "The quick brown fox jumps over the lazy dog")),
            "f7bc83f430538424b13298e6aa6fb143ef4d59a14946175997479dbc2d1a3cd8");
  EXPECT_NE(Digest("a", "bc"), Digest("ab", "c"));
}

TEST(CryptoTest, UlidsSortAndDiffer) {
  std::string last = NewUlid(1000);
  EXPECT_EQ(last.size(), 26u);
  std::set<std::string> seen = {last};
  for (int i = 0; i < 1000; ++i) {
    std::string next = NewUlid(1000 + i / 100);
    EXPECT_LT(last, next);
    EXPECT_TRUE(seen.insert(next).second);
    last = next;
  }
}

class FileTest : public testing::Test {
 protected:
  void SetUp() override {
    char path[] = "/tmp/solstice_file_XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    folder_ = path;
  }
  void TearDown() override {
    std::string command = "rm -rf " + folder_;
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  std::string folder_;
};

TEST_F(FileTest, LimitKindsAndLinks) {
  ASSERT_TRUE(WriteFileAtomically(folder_ + "/a", "hello").ok());
  EXPECT_EQ(*ReadFile(folder_ + "/a", 5), "hello");
  EXPECT_EQ(ReadFile(folder_ + "/a", 4).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ReadFile(folder_ + "/b", 4).status().code(), absl::StatusCode::kNotFound);
  ASSERT_EQ(mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  EXPECT_EQ(ReadFile(folder_ + "/fifo", 4).status().code(), absl::StatusCode::kFailedPrecondition);
  ASSERT_EQ(symlink("/etc/hostname", (folder_ + "/link").c_str()), 0);
  UniqueFd root(open(folder_.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  EXPECT_EQ(*ReadFileBeneath(root.get(), "./a", 5), "hello");
  EXPECT_FALSE(ReadFileBeneath(root.get(), "link", 4096).ok());
  EXPECT_FALSE(ReadFileBeneath(root.get(), "../../etc/hostname", 4096).ok());
  EXPECT_FALSE(ReadFileBeneath(root.get(), "/etc/hostname", 4096).ok());
}

TEST_F(FileTest, SealedMemfdCannotBeWritten) {
  auto fd = SealedMemfd("test", "content");
  ASSERT_TRUE(fd.ok());
  EXPECT_EQ(*ReadMemfd(fd->get(), 100), "content");
  EXPECT_EQ(ReadMemfd(fd->get(), 3).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(pwrite(fd->get(), "x", 1, 0), -1);
  EXPECT_EQ(ftruncate(fd->get(), 1), -1);
}

}  // namespace
}  // namespace solstice::base
