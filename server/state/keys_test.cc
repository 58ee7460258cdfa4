#include "server/state/keys.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/base/crypto.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::state {
namespace {

constexpr char kId[] = "ev_01HF7YAT00ABCDEFGHJKMNPQRS";

// The bytes that docs/formats/store.md shows.
TEST(KeysTest, GoldenKeys) {
  EXPECT_EQ(keys::Evaluation("local", kId), "e/local/ev_01HF7YAT00ABCDEFGHJKMNPQRS");
  EXPECT_EQ(base::Hex(keys::Event("t", kId, 258)),
            "762f742f65765f303148463759415430304142434445464748"
            "4a4b4d4e505152532f0000000000000102");
  EXPECT_EQ(keys::Submission("local", kId), "s/local/ev_01HF7YAT00ABCDEFGHJKMNPQRS");
  EXPECT_EQ(keys::Bundle("local", "sha256:ab"), "b/local/sha256:ab");
  EXPECT_EQ(keys::Idempotency("local", "a/b"), "i/local/a/b");
  EXPECT_EQ(keys::CachedResult("local", "sha256:cd"), "c/local/sha256:cd");
  EXPECT_EQ(keys::Unfinished("local", kId), "u/local/ev_01HF7YAT00ABCDEFGHJKMNPQRS");
  EXPECT_EQ(keys::NewestFirst("local", kId), "n/local/ev_ZYEGR1N5ZZNMKJHGFEDCBA9876");
}

TEST(KeysTest, GoldenValue) {
  v1::Event event;
  event.set_seq(1);
  event.set_attempt(1);
  event.set_state(v1::QUEUED);
  EXPECT_EQ(base::Hex(Frame(event)), "01080118012001");
  EXPECT_EQ(base::Hex(Frame("")), "01");
}

TEST(KeysTest, EventsSortByNumber) {
  int64_t last = 0;
  for (int64_t seq : {1, 2, 255, 256, 65535, 65536, 1 << 30}) {
    EXPECT_LT(keys::Event("t", kId, last), keys::Event("t", kId, seq));
    last = seq;
  }
}

TEST(KeysTest, ComplementReversesOrderAndIsItsOwnInverse) {
  const std::string older = "ev_01HF7YAT00ABCDEFGHJKMNPQRS", newer = "ev_01HF7YAT01000000000000000Z";
  EXPECT_GT(keys::ComplementId(older), keys::ComplementId(newer));
  EXPECT_EQ(keys::ComplementId(keys::ComplementId(newer)), newer);
}

TEST(KeysTest, TenantGrammar) {
  for (const char* good : {"local", "a", "0", "team_1-x"}) EXPECT_TRUE(IsValidTenant(good)) << good;
  EXPECT_TRUE(IsValidTenant(std::string(64, 'a')));
  for (const std::string& bad :
       {std::string(), std::string(65, 'a'), std::string("A"), std::string("a/b"), std::string("a b"),
        std::string("a.b"), std::string("a\0b", 3), std::string("\xc3\xa4")}) {
    EXPECT_FALSE(IsValidTenant(bad)) << bad;
  }
}

TEST(KeysTest, EvaluationIdGrammar) {
  EXPECT_TRUE(IsEvaluationId(kId));
  EXPECT_TRUE(IsEvaluationId("ev_" + base::NewUlid(1'700'000'000'000)));
  for (const char* bad :
       {"", "ev_", "01HF7YAT00ABCDEFGHJKMNPQRS", "ev_01HF7YAT00ABCDEFGHJKMNPQR", "ev_01HF7YAT00ABCDEFGHJKMNPQRI",
        "ev_01hf7yat00abcdefghjkmnpqrs", "ev_81HF7YAT00ABCDEFGHJKMNPQRS", "ev_../../../../../../../../..",
        "job_01HF7YAT00ABCDEFGHJKMNPQRS"}) {
    EXPECT_FALSE(IsEvaluationId(bad)) << bad;
  }
}

TEST(KeysTest, ParseGivesTenantAndRest) {
  auto parts = keys::Parse("u/local/ev_X");
  ASSERT_TRUE(parts.has_value());
  EXPECT_EQ(parts->tenant, "local");
  EXPECT_EQ(parts->rest, "ev_X");
  for (const char* bad : {"", "u", "u/", "u/local", "!schema"}) EXPECT_FALSE(keys::Parse(bad).has_value()) << bad;
}

TEST(KeysTest, UnframeRefusesWhatItDoesNotKnow) {
  v1::Event event;
  EXPECT_EQ(Unframe("", "k", &event).code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Unframe("\x02", "k", &event).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Unframe("\x01\xff\xff", "k", &event).code(), absl::StatusCode::kDataLoss);
  EXPECT_TRUE(Unframe("\x01", "k", &event).ok());
}

}  // namespace
}  // namespace solstice::state
