#include "server/queue/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <set>
#include <thread>
#include <vector>

#include "runtime/base/strings.h"

namespace solstice::queue {
namespace {

using std::chrono::hours;
using std::chrono::nanoseconds;

Entry Of(std::string tenant, std::string id, v1::DeviceKind kind = v1::DEVICE_KIND_UNSPECIFIED) {
  Entry entry;
  entry.tenant = std::move(tenant);
  entry.id = std::move(id);
  entry.device_kind = kind;
  return entry;
}
bool Any(const Entry&) { return true; }

std::vector<std::string> Drain(Queue& queue) {
  std::vector<std::string> ids;
  while (auto entry = queue.Pop(Any, nanoseconds(0))) ids.push_back(entry->id);
  return ids;
}

TEST(QueueTest, ServesOneTenantInOrder) {
  Queue queue(10);
  for (const char* id : {"1", "2", "3"}) ASSERT_TRUE(queue.Push(Of("a", id)).ok());
  EXPECT_THAT(Drain(queue), testing::ElementsAre("1", "2", "3"));
  EXPECT_EQ(queue.size(), 0);
}

TEST(QueueTest, TakesTurnsBetweenTenants) {
  Queue queue(10);
  for (const char* id : {"a1", "a2", "a3"}) ASSERT_TRUE(queue.Push(Of("a", id)).ok());
  ASSERT_TRUE(queue.Push(Of("b", "b1")).ok());
  for (const char* id : {"c1", "c2"}) ASSERT_TRUE(queue.Push(Of("c", id)).ok());
  EXPECT_THAT(Drain(queue), testing::ElementsAre("a1", "b1", "c1", "a2", "c2", "a3"));
}

TEST(QueueTest, PositionAgreesWithTheOrderOfPops) {
  for (const std::string last : {"", "a", "b", "bb", "c"}) {
    Queue queue(100);
    if (!last.empty()) {
      ASSERT_TRUE(queue.Push(Of(last, "first")).ok());
      ASSERT_TRUE(queue.Pop(Any, nanoseconds(0)).has_value());
    }
    std::vector<Entry> pushed;
    for (int i = 0; i < 5; ++i) pushed.push_back(Of("a", base::StrCat("a", i)));
    for (int i = 0; i < 2; ++i) pushed.push_back(Of("b", base::StrCat("b", i)));
    for (int i = 0; i < 3; ++i) pushed.push_back(Of("c", base::StrCat("c", i)));
    std::map<std::string, int> expected;
    for (const Entry& entry : pushed) ASSERT_TRUE(queue.Push(entry).ok());
    for (const Entry& entry : pushed) expected[entry.id] = queue.Position(entry.tenant, entry.id);
    std::vector<std::string> order = Drain(queue);
    ASSERT_EQ(order.size(), pushed.size());
    for (size_t i = 0; i < order.size(); ++i) EXPECT_EQ(expected[order[i]], static_cast<int>(i)) << order[i] << last;
  }
}

TEST(QueueTest, PositionOfAnUnknownEntryIsMinusOne) {
  Queue queue(4);
  ASSERT_TRUE(queue.Push(Of("a", "1")).ok());
  EXPECT_EQ(queue.Position("a", "2"), -1);
  EXPECT_EQ(queue.Position("b", "1"), -1);
}

TEST(QueueTest, FullRefusesUnlessForced) {
  Queue queue(2);
  ASSERT_TRUE(queue.Push(Of("a", "1")).ok());
  EXPECT_FALSE(queue.Full());
  ASSERT_TRUE(queue.Push(Of("b", "2")).ok());
  EXPECT_TRUE(queue.Full());
  Status full = queue.Push(Of("c", "3"));
  EXPECT_EQ(full.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(base::MessageOf(full), testing::HasSubstr("2 evaluations"));
  EXPECT_TRUE(queue.Push(Of("c", "4"), /*force=*/true).ok());
  EXPECT_EQ(queue.size(), 3);
}

TEST(QueueTest, PopSkipsWhatItsCallerCannotRun) {
  Queue queue(10);
  ASSERT_TRUE(queue.Push(Of("a", "gpu", v1::CUDA)).ok());
  ASSERT_TRUE(queue.Push(Of("a", "cpu", v1::EMULATOR)).ok());
  auto emulator = [](const Entry& entry) { return entry.device_kind == v1::EMULATOR; };
  EXPECT_EQ(queue.Pop(emulator, nanoseconds(0))->id, "cpu");
  EXPECT_FALSE(queue.Pop(emulator, nanoseconds(0)).has_value());
  EXPECT_EQ(queue.size(), 1);
}

TEST(QueueTest, RemoveTakesOutExactlyOneEntry) {
  Queue queue(10);
  for (const char* id : {"1", "2"}) ASSERT_TRUE(queue.Push(Of("a", id)).ok());
  EXPECT_TRUE(queue.Remove("a", "1"));
  EXPECT_FALSE(queue.Remove("a", "1"));
  EXPECT_FALSE(queue.Remove("b", "2"));
  EXPECT_THAT(Drain(queue), testing::ElementsAre("2"));
}

TEST(QueueTest, CloseWakesWaitersAndRefusesEverything) {
  Queue queue(10);
  std::thread waiter([&] { EXPECT_FALSE(queue.Pop(Any, hours(24 * 10000)).has_value()); });
  queue.Close();
  waiter.join();
  EXPECT_EQ(queue.Push(Of("a", "1"), true).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(queue.Full());
}

TEST(QueueTest, EveryEntryIsPoppedOnceUnderThreads) {
  constexpr int kProducers = 4, kEach = 500;
  Queue queue(kProducers * kEach);
  std::atomic<int> popped{0};
  base::Mutex mutex;
  std::set<std::string> seen;
  std::vector<std::thread> threads;
  for (int c = 0; c < 4; ++c) {
    threads.emplace_back([&, c] {
      // Each consumer takes one half: even or odd attempts.
      auto accepts = [c](const Entry& entry) { return entry.attempt % 2 == c % 2; };
      while (auto entry = queue.Pop(accepts, hours(1))) {
        base::MutexLock lock(mutex);
        EXPECT_TRUE(seen.insert(entry->id).second) << entry->id;
        if (++popped == kProducers * kEach) queue.Close();
      }
    });
  }
  for (int p = 0; p < kProducers; ++p) {
    threads.emplace_back([&, p] {
      for (int i = 0; i < kEach; ++i) {
        Entry entry = Of(base::StrCat("t", p), base::StrCat(p, "-", i));
        entry.attempt = i;
        EXPECT_TRUE(queue.Push(entry).ok());
        queue.Position(entry.tenant, entry.id);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(popped.load(), kProducers * kEach);
  EXPECT_EQ(queue.size(), 0);
}

}  // namespace
}  // namespace solstice::queue
