#include "runtime/catalog/safetensors.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "runtime/base/strings.h"

namespace solstice::catalog {
namespace {

using base::StrCat;
using ::testing::HasSubstr;

// A folder of the test's own, removed at its end.
class SafetensorsTest : public ::testing::Test {
 protected:
  SafetensorsTest() {
    std::string pattern = ::testing::TempDir() + "/safetensors.XXXXXX";
    folder_ = ::mkdtemp(pattern.data());
    fd_ = base::UniqueFd(::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  ~SafetensorsTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, std::string_view bytes) {
    std::ofstream(folder_ + "/" + name, std::ios::binary)
        .write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  static std::string File(std::string_view header, std::string_view data) {
    std::string out(8, '\0');
    uint64_t size = header.size();
    std::memcpy(out.data(), &size, 8);
    return StrCat(out, header, data);
  }
  std::string OpenError(std::string_view bytes) {
    Write("f", bytes);
    auto file = SafetensorsFile::Open(fd_.get(), "f");
    if (file.ok()) return "";
    EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
    return base::MessageOf(file.status());
  }

  std::string folder_;
  base::UniqueFd fd_;
};

TEST_F(SafetensorsTest, ReadsTensors) {
  Write("f", File(R"({"__metadata__": {"format": "pt"}, "b": {"dtype": "U8", "shape": [3], "data_offsets": [8, 11]},
                     "a": {"dtype": "F32", "shape": [2, 1], "data_offsets": [0, 8]},
                     "e": {"dtype": "BF16", "shape": [0, 7], "data_offsets": [11, 11]},
                     "s": {"dtype": "BOOL", "shape": [], "data_offsets": [11, 12]}}   )",
                  "12345678abc\x01"));
  auto file = SafetensorsFile::Open(fd_.get(), "f");
  ASSERT_TRUE(file.ok()) << file.status();
  ASSERT_EQ(file->entries().size(), 4u);
  EXPECT_EQ(*file->Read(**file->Find("a", v1::FLOAT32, {2, 1})), "12345678");
  EXPECT_EQ(*file->Read(**file->Find("b", v1::UINT8, {3})), "abc");
  EXPECT_EQ(*file->Read(**file->Find("b", v1::FLOAT4_E2M1FN_X2, {3})), "abc");
  EXPECT_EQ(*file->Read(**file->Find("e", v1::BFLOAT16, {0, 7})), "");
  EXPECT_EQ(*file->Read(**file->Find("s", v1::BOOL, {})), "\x01");
  EXPECT_THAT(base::MessageOf(file->Find("a", v1::FLOAT16, {2, 1}).status()),
              HasSubstr("is F32, the definition needs F16"));
  EXPECT_THAT(base::MessageOf(file->Find("a", v1::FLOAT32, {2}).status()),
              HasSubstr("has shape [2, 1], the workload needs [2]"));
  EXPECT_THAT(base::MessageOf(file->Find("c", v1::FLOAT32, {2}).status()), HasSubstr("f: has no tensor \"c\""));
}

TEST_F(SafetensorsTest, RefusesBrokenFiles) {
  auto entry = [](std::string_view body, std::string_view data) { return File(StrCat("{\"x\": {", body, "}}"), data); };
  EXPECT_THAT(OpenError(""), HasSubstr("0 bytes are too few"));
  EXPECT_THAT(OpenError("1234567"), HasSubstr("7 bytes are too few"));
  EXPECT_THAT(OpenError(StrCat(std::string("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 8), "{}")), HasSubstr("claims"));
  EXPECT_THAT(OpenError(StrCat(std::string("\x03\0\0\0\0\0\0\0", 8), "{}")),
              HasSubstr("claims 3 bytes, the file has 2"));
  EXPECT_THAT(OpenError(File("[]", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(OpenError(File("", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(OpenError(File("{\"x\":", "")), HasSubstr("end of input"));
  EXPECT_THAT(OpenError(File("{\"x\": 1}", "")), HasSubstr("must be an object"));
  EXPECT_THAT(OpenError(File(R"({"x": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}, "x": {}})", "a")),
              HasSubstr("duplicate key"));
  EXPECT_THAT(OpenError(entry(R"("shape": [1], "data_offsets": [0, 1])", "a")), HasSubstr("needs \"dtype\""));
  EXPECT_THAT(OpenError(entry(R"("dtype": "F31", "shape": [1], "data_offsets": [0, 1])", "a")),
              HasSubstr("unknown type"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "U8", "shape": [-1], "data_offsets": [0, 1])", "a")), HasSubstr("negative"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "U8", "shape": [1.0], "data_offsets": [0, 1])", "a")), HasSubstr("integer"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "U8", "shape": [1], "data_offsets": [0])", "a")), HasSubstr("two numbers"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "U8", "shape": [1], "data_offsets": [1, 0])", "a")), HasSubstr("backwards"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "U8", "shape": [1], "data_offsets": [-1, 0])", "a")), HasSubstr("backwards"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "U8", "shape": [4], "data_offsets": [0, 4])", "abc")), HasSubstr("end at 4"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "F32", "shape": [1], "data_offsets": [0, 3])", "abc")),
              HasSubstr("asks for 4"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "F32", "shape": [4294967296, 4294967296], "data_offsets": [0, 0])", "")),
              HasSubstr("overflows"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "U8", "shape": [2], "data_offsets": [0, 2])", "abc")),
              HasSubstr("1 bytes at the end"));
  EXPECT_THAT(OpenError(entry(R"("dtype": "U8", "shape": [2], "data_offsets": [1, 3])", "abc")),
              HasSubstr("before it"));
  EXPECT_THAT(OpenError(File(R"({"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                                 "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}})",
                             "abc")),
              HasSubstr("overlaps"));
}

TEST_F(SafetensorsTest, ClaimedSizesAllocateNothing) {
  // 8 EiB claimed in a file of 10 bytes, and a header of 2^32 that the file does not hold.
  for (std::string_view size :
       {std::string_view("\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F", 8), std::string_view("\0\0\0\0\x01\0\0\0", 8)}) {
    EXPECT_THAT(OpenError(StrCat(size, "{}")), HasSubstr("claims"));
  }
}

TEST_F(SafetensorsTest, OpensOnlyRegularFilesBelowTheFolder) {
  std::filesystem::create_directory(folder_ + "/sub");
  std::filesystem::create_symlink("/etc/hostname", folder_ + "/link");
  std::filesystem::create_symlink("sub", folder_ + "/linked");
  ASSERT_EQ(::mkfifo((folder_ + "/fifo").c_str(), 0600), 0);
  Write("sub/f", File("{}", ""));
  EXPECT_TRUE(SafetensorsFile::Open(fd_.get(), "sub/f").ok());
  std::string expected;
  for (const char* path : {"link", "linked/f", "fifo", "sub", "missing", "/etc/hostname", "../x", "/no/such/file"}) {
    auto file = SafetensorsFile::Open(fd_.get(), path);
    ASSERT_FALSE(file.ok()) << path;
    // The same words whether the target exists or not.
    EXPECT_EQ(base::MessageOf(file.status()),
              StrCat(path, ": no regular file of that name below the definition's folder"));
  }
}

TEST_F(SafetensorsTest, NoticesAFileThatShrinks) {
  Write("f", File(R"({"x": {"dtype": "U8", "shape": [4], "data_offsets": [0, 4]}})", "abcd"));
  auto file = SafetensorsFile::Open(fd_.get(), "f");
  ASSERT_TRUE(file.ok());
  std::filesystem::resize_file(folder_ + "/f", 20);
  EXPECT_THAT(base::MessageOf(file->Read(file->entries()[0]).status()), HasSubstr("became shorter"));
}

TEST(Safetensors, NamesEveryType) {
  const google::protobuf::EnumDescriptor* types = v1::DType_descriptor();
  for (int i = 0; i < types->value_count(); ++i) {
    auto type = static_cast<v1::DType>(types->value(i)->number());
    EXPECT_EQ(SafetensorsDType(type).empty(), type == v1::DTYPE_UNSPECIFIED) << types->value(i)->name();
  }
}

}  // namespace
}  // namespace solstice::catalog
