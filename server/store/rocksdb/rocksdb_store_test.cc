#include "server/store/rocksdb/rocksdb_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "runtime/base/crypto.h"
#include "runtime/base/file.h"
#include "runtime/base/strings.h"
#include "server/store/rocksdb/mark.h"

namespace solstice::store {
namespace {

using absl::StatusCode;
using testing::ElementsAre;
using testing::HasSubstr;

class RocksDbStoreTest : public testing::Test {
 protected:
  RocksDbStoreTest() : folder_(base::StrCat(testing::TempDir(), "/solstice_store_", base::Hex(base::RandomBytes(8)))) {}
  ~RocksDbStoreTest() override { std::filesystem::remove_all(folder_); }

  StatusOr<std::unique_ptr<Store>> Open(bool accept_loss = false) {
    RocksDbOptions options;
    options.accept_loss = accept_loss;
    options.lock_timeout = std::chrono::milliseconds(0);
    return OpenRocksDb(folder_, options);
  }
  static void Put(Store& store, std::string key, std::string value) {
    Batch batch;
    batch.Put(std::move(key), std::move(value));
    ASSERT_TRUE(store.Write(batch, Durability::kSynced).ok());
  }
  static std::vector<std::string> Keys(const Store& store, std::string_view prefix, std::string_view start,
                                       bool reverse) {
    std::vector<std::string> keys;
    EXPECT_TRUE(store
                    .Scan(prefix, start, reverse,
                          [&](std::string_view key, std::string_view) {
                            keys.emplace_back(key);
                            return true;
                          })
                    .ok());
    return keys;
  }
  // What a disk that lost its newest writes looks like.
  void TruncateLogs() {
    for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/db")) {
      if (entry.path().extension() == ".log") std::filesystem::resize_file(entry.path(), 0);
    }
  }

  const std::string folder_;
};

TEST_F(RocksDbStoreTest, BatchesAreKeptAcrossReopening) {
  {
    auto store = Open();
    ASSERT_TRUE(store.ok()) << store.status();
    Put(**store, "a", "1");
    Batch batch;
    batch.Put("b", std::string("2\0x", 3));
    batch.Put("c", "");
    batch.Delete("a");
    ASSERT_TRUE((*store)->Write(batch, Durability::kBuffered).ok());
    ASSERT_TRUE((*store)->Write(Batch(), Durability::kSynced).ok());
  }
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ((*store)->Get("a").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(*(*store)->Get("b"), std::string("2\0x", 3));
  EXPECT_EQ(*(*store)->Get("c"), "");
}

TEST_F(RocksDbStoreTest, ScansStayInsideThePrefix) {
  auto store = Open();
  ASSERT_TRUE(store.ok());
  for (const char* key : {"a", "b/1", "b/2", "b/3", "b0", "c"}) Put(**store, key, key);
  Put(**store, "\xff\xff", "last");
  EXPECT_THAT(Keys(**store, "b/", "", false), ElementsAre("b/1", "b/2", "b/3"));
  EXPECT_THAT(Keys(**store, "b/", "b/2", false), ElementsAre("b/2", "b/3"));
  EXPECT_THAT(Keys(**store, "b/", "a", false), ElementsAre("b/1", "b/2", "b/3"));
  EXPECT_THAT(Keys(**store, "b/", "b0", false), ElementsAre());
  EXPECT_THAT(Keys(**store, "b/", "", true), ElementsAre("b/3", "b/2", "b/1"));
  EXPECT_THAT(Keys(**store, "b/", "b/2", true), ElementsAre("b/3", "b/2"));
  EXPECT_THAT(Keys(**store, "\xff", "", true), ElementsAre("\xff\xff"));
  EXPECT_EQ(Keys(**store, "", "", false).size(), 7u);
  EXPECT_THAT(Keys(**store, "x", "", true), ElementsAre());
  int visits = 0;
  ASSERT_TRUE((*store)
                  ->Scan("b/", "", false,
                         [&](std::string_view, std::string_view) {
                           ++visits;
                           return false;
                         })
                  .ok());
  EXPECT_EQ(visits, 1);
}

TEST_F(RocksDbStoreTest, ASecondInstanceIsToldWhoHoldsTheFolder) {
  auto store = Open();
  ASSERT_TRUE(store.ok());
  auto second = Open();
  EXPECT_EQ(second.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(base::MessageOf(second.status()), HasSubstr(base::StrCat("another instance (process ", ::getpid(), ")")));
  EXPECT_THAT(base::MendOf(second.status()), HasSubstr("--data-dir"));
  store->reset();
  EXPECT_TRUE(Open().ok());
}

TEST_F(RocksDbStoreTest, AQuickRestartWaitsForTheOldInstance) {
  auto store = Open();
  ASSERT_TRUE(store.ok());
  std::thread stopper([&] { store->reset(); });
  RocksDbOptions options;
  options.lock_timeout = std::chrono::minutes(1);
  EXPECT_TRUE(OpenRocksDb(folder_, options).ok());
  stopper.join();
}

TEST_F(RocksDbStoreTest, LostLogsAreDataLossUntilAccepted) {
  {
    auto store = Open();
    ASSERT_TRUE(store.ok());
    for (int i = 0; i < 10; ++i) Put(**store, base::StrCat("k", i), "v");
  }
  TruncateLogs();
  for (int i = 0; i < 2; ++i) {
    auto store = Open();
    EXPECT_EQ(store.status().code(), StatusCode::kDataLoss);
    EXPECT_THAT(base::MendOf(store.status()), HasSubstr("--accept-loss"));
  }
  {
    auto store = Open(/*accept_loss=*/true);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_EQ((*store)->Get("k9").status().code(), StatusCode::kNotFound);
    Put(**store, "new", "v");
  }
  auto store = Open();
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(*(*store)->Get("new"), "v");
}

TEST_F(RocksDbStoreTest, AMissingDatabaseIsDataLoss) {
  {
    auto store = Open();
    Put(**store, "k", "v");
  }
  std::filesystem::remove_all(folder_ + "/db");
  EXPECT_EQ(Open().status().code(), StatusCode::kDataLoss);
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/db/CURRENT")) << "no empty data base is made in its place";
  EXPECT_TRUE(Open(true).ok());
  EXPECT_TRUE(Open().ok());
}

TEST_F(RocksDbStoreTest, AMissingOrDamagedMarkIsDataLoss) {
  {
    auto store = Open();
    Put(**store, "k", "v");
  }
  std::filesystem::remove(folder_ + "/mark");
  EXPECT_EQ(Open().status().code(), StatusCode::kDataLoss);
  { std::ofstream(folder_ + "/mark") << std::string(128, 'x'); }
  EXPECT_EQ(Open().status().code(), StatusCode::kDataLoss);
  EXPECT_TRUE(Open(true).ok());
  EXPECT_TRUE(Open().ok());
}

TEST_F(RocksDbStoreTest, ADamagedTableIsDataLossOrUnavailable) {
  {
    auto store = Open();
    Put(**store, "k", "v");
  }
  { std::ofstream(folder_ + "/db/CURRENT") << "nonsense\n"; }
  auto store = Open();
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(base::MessageOf(store.status()), HasSubstr("cannot open"));
}

TEST_F(RocksDbStoreTest, AFolderThatCannotBeMadeSaysWhere) {
  { std::ofstream file(folder_); }
  auto store = Open();
  ASSERT_FALSE(store.ok());
  EXPECT_THAT(base::MessageOf(store.status()), HasSubstr(folder_));
}

// A process that ends without closing anything, right after a synced write was acknowledged.
TEST_F(RocksDbStoreTest, ACrashLosesNothingSynced) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  // The child is a new process that runs this test again: both must name the same folder.
  std::string folder = testing::TempDir() + "/solstice_store_crash";
  EXPECT_EXIT(
      {
        std::filesystem::remove_all(folder);
        RocksDbOptions options;
        options.mark_interval = std::chrono::milliseconds(1);
        auto store = OpenRocksDb(folder, options);
        if (!store.ok()) std::_Exit(1);
        for (int i = 0; i < 50; ++i) {
          Batch batch;
          batch.Put(base::StrCat("k", i), "v");
          if (!(*store)->Write(batch, Durability::kSynced).ok()) std::_Exit(2);
        }
        std::_Exit(0);
      },
      testing::ExitedWithCode(0), "");
  auto store = OpenRocksDb(folder);
  ASSERT_TRUE(store.ok()) << store.status();
  for (int i = 0; i < 50; ++i) EXPECT_TRUE((*store)->Get(base::StrCat("k", i)).ok()) << i;
  store->reset();
  std::filesystem::remove_all(folder);
}

class MarkTest : public testing::Test {
 protected:
  MarkTest() : path_(base::StrCat(testing::TempDir(), "/solstice_mark_", base::Hex(base::RandomBytes(8)))) {}
  ~MarkTest() override { std::filesystem::remove(path_); }
  StatusOr<uint64_t> Value() {
    bool existed = false;
    auto mark = Mark::Open(path_, &existed);
    if (!mark.ok()) return mark.status();
    EXPECT_TRUE(existed);
    return mark->value();
  }
  const std::string path_;
};

// The bytes that docs/formats/store.md shows.
TEST_F(MarkTest, GoldenBytes) {
  std::string slot = EncodeMark(4711);
  ASSERT_EQ(slot.size(), 64u);
  std::string text = slot.substr(0, slot.find('\0'));
  EXPECT_EQ(text, "solstice-mark 1 00000000000000004711 e90b564934cf610b\n");
  EXPECT_EQ(DecodeMark(slot), 4711u);
}

TEST_F(MarkTest, AnyChangedByteIsNoticed) {
  const std::string slot = EncodeMark(18446744073709551615u);
  EXPECT_EQ(DecodeMark(slot), 18446744073709551615u);
  for (size_t i = 0; i < slot.find('\0'); ++i) {
    std::string damaged = slot;
    damaged[i] ^= 1;
    EXPECT_FALSE(DecodeMark(damaged).has_value()) << i;
  }
  EXPECT_FALSE(DecodeMark(slot.substr(1)).has_value());
  EXPECT_FALSE(DecodeMark("").has_value());
}

TEST_F(MarkTest, ATornWriteLeavesTheOlderValue) {
  bool existed = true;
  auto mark = Mark::Open(path_, &existed);
  ASSERT_TRUE(mark.ok());
  EXPECT_FALSE(existed);
  for (uint64_t value : {10, 20, 30}) ASSERT_TRUE(mark->Set(value).ok());
  EXPECT_EQ(*Value(), 30u);
  auto content = base::ReadFile(path_, 1000);
  ASSERT_EQ(content->size(), 128u);
  // 30 stands in the first slot again; half of it is lost.
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(20);
  file << "torn";
  file.close();
  EXPECT_EQ(*Value(), 20u);
}

}  // namespace
}  // namespace solstice::store
