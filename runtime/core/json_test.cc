#include "runtime/core/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "runtime/base/strings.h"

namespace solstice::core {
namespace {

using base::StrCat;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Json Parse(std::string_view text) {
  auto json = ParseJson(text, "a.json");
  EXPECT_TRUE(json.ok()) << base::MessageOf(json.status());
  return json.ok() ? *json : Json();
}

std::string Error(std::string_view text, int first_line = 1) {
  auto json = ParseJson(text, "a.json", first_line);
  EXPECT_FALSE(json.ok()) << text;
  if (json.ok()) return "";
  EXPECT_EQ(json.status().code(), absl::StatusCode::kInvalidArgument);
  return base::MessageOf(json.status());
}

TEST(JsonRead, KeepsTypesAndOrder) {
  Json json = Parse(R"({"z": null, "a": [true, false, 1, -2, 1.5, "x"], "m": {}})");
  ASSERT_TRUE(json.is_object());
  EXPECT_EQ(json.object()[0].first, "z");
  EXPECT_EQ(json.object()[1].first, "a");
  EXPECT_EQ(json.object()[2].first, "m");
  EXPECT_TRUE(json.Find("z")->is_null());
  const Json::Array& list = json.Find("a")->array();
  EXPECT_TRUE(list[0].boolean());
  EXPECT_FALSE(list[1].boolean());
  EXPECT_EQ(list[2].integer(), 1);
  EXPECT_EQ(list[3].integer(), -2);
  EXPECT_FALSE(list[4].is_integer());
  EXPECT_EQ(list[4].number(), 1.5);
  EXPECT_EQ(list[5].string(), "x");
  EXPECT_EQ(json.Find("absent"), nullptr);
  EXPECT_EQ(list[0].Find("x"), nullptr);
}

TEST(JsonRead, IntegersAreExactAndTheRestIsDouble) {
  EXPECT_EQ(Parse("9223372036854775807").integer(), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(Parse("-9223372036854775808").integer(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(Parse("9007199254740993").integer(), 9007199254740993);
  EXPECT_FALSE(Parse("9223372036854775808").is_integer());
  EXPECT_EQ(Parse("9223372036854775808").number(), 9223372036854775808.0);
  EXPECT_FALSE(Parse("1000000000000000000000").is_integer());
  EXPECT_FALSE(Parse("16.0").is_integer());
  EXPECT_FALSE(Parse("1e2").is_integer());
  EXPECT_EQ(Parse("5e-324").number(), 5e-324);
}

TEST(JsonRead, KnowsWhereValuesStand) {
  Json json = Parse("{\n  \"a\": 12,\n  \"b\": [1,\n 22 , \"x\"],\"c\":\ntrue}");
  EXPECT_EQ(json.line(), 1);
  EXPECT_EQ(json.Find("a")->line(), 2);
  EXPECT_EQ(json.Find("a")->column(), 8);
  EXPECT_EQ(json.Find("b")->column(), 8);
  EXPECT_EQ(json.Find("b")->array()[0].column(), 9);
  EXPECT_EQ(json.Find("b")->array()[1].line(), 4);
  EXPECT_EQ(json.Find("b")->array()[1].column(), 2);
  EXPECT_EQ(json.Find("b")->array()[2].column(), 7);
  EXPECT_EQ(json.Find("c")->line(), 5);
  EXPECT_EQ(json.Find("c")->column(), 1);
  EXPECT_EQ(Json(1).line(), 0);
}

TEST(JsonRead, StripsOneByteOrderMark) {
  EXPECT_TRUE(Parse("\xEF\xBB\xBF{}").is_object());
  EXPECT_THAT(Error("\xEF\xBB\xBF\xEF\xBB\xBF{}"), HasSubstr("byte order mark"));
}

TEST(JsonRead, DecodesEscapes) {
  EXPECT_EQ(Parse(R"("\u00e9\n\"\\\/\ud83d\ude00")").string(), "\xC3\xA9\n\"\\/\xF0\x9F\x98\x80");
  EXPECT_EQ(Parse(R"("a\u0000b")").string(), std::string("a\0b", 3));
}

struct Bad {
  const char* text;
  const char* error;  // begins with
  const char* reason;
};

class JsonRefuses : public ::testing::TestWithParam<Bad> {};

TEST_P(JsonRefuses, WithPlaceAndReason) {
  std::string error = Error(GetParam().text);
  EXPECT_THAT(error, StartsWith(StrCat("a.json:", GetParam().error, ": ")));
  EXPECT_THAT(error, HasSubstr(GetParam().reason));
}

INSTANTIATE_TEST_SUITE_P(
    Table, JsonRefuses,
    ::testing::Values(Bad{"", "1:1: $", "end of input"}, Bad{"{\"a\": 1,}", "1:9: $.a", "unexpected '}'"},
                      Bad{"{\"a\": 1, \"a\": 2}", "1:10: $.a", "duplicate key"},
                      Bad{"[1,\n{\"x\": {\"k\": 1,\n \"k\": 2}}]", "3:2: $[1].x.k", "duplicate key"},
                      Bad{"{\"a\": NaN}", "1:7: $.a", "invalid literal"},
                      Bad{"{\"a\": -Infinity}", "1:8: $.a", "invalid number"},
                      Bad{"{\"t\": 1e999}", "1:11: $.t", "overflows"}, Bad{"\"\\ud800\"", "1:8: $", "surrogate"},
                      Bad{"\"\\udc00\"", "1:7: $", "surrogate"}, Bad{"[\"a\xFF\"]", "1:4: $[0]", "UTF-8"},
                      Bad{"[\"\xC0\x80\"]", "1:3: $[0]", "UTF-8"}, Bad{"[\"\xED\xA0\x80\"]", "1:4: $[0]", "UTF-8"},
                      Bad{"{} {}", "1:4: $", "expected end of input"}, Bad{"[1] x", "1:5: $", "invalid literal"},
                      Bad{"{\"a\": [1, 2", "1:12: $.a[2]", "end of input"},
                      Bad{"\"\x01\"", "1:2: $", "control character"}, Bad{"[01]", "1:3: $[1]", "unexpected number"},
                      Bad{"[+1]", "1:2: $[0]", "invalid literal"}, Bad{"[.5]", "1:2: $[0]", "invalid literal"},
                      Bad{"// c\n1", "1:1: $", "invalid literal"}, Bad{"{'a': 1}", "1:2: $", "invalid literal"},
                      Bad{"{\"two words\": tru}", "1:18: $[\"two words\"]", "invalid literal"}));

TEST(JsonRead, CountsLinesFromTheGivenOne) { EXPECT_THAT(Error("{\"a\": x}", 17), StartsWith("a.json:17:7: $.a: ")); }

TEST(JsonRead, LimitsNestingWithoutDeepRecursion) {
  std::string open(kMaxJsonDepth, '['), close(kMaxJsonDepth, ']');
  EXPECT_TRUE(ParseJson(open + close, "a.json").ok());
  EXPECT_THAT(Error("[" + open + close + "]"), HasSubstr("nested more than 64 deep"));
  EXPECT_THAT(Error(std::string(40 << 10, '[')), HasSubstr("nested more than 64 deep"));
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += "{\"a\":";
  EXPECT_THAT(Error(objects), HasSubstr("nested more than 64 deep"));
}

TEST(JsonRead, LimitsTheNumberOfValues) {
  std::string text = "[";
  for (int64_t i = 0; i < kMaxJsonValues; ++i) text += "0,";
  text += "0]";
  EXPECT_THAT(Error(text), HasSubstr("more than 1000000 values"));
}

TEST(JsonRead, MessagesStayShort) {
  std::string text = "[\"" + std::string(1 << 20, 'x');
  EXPECT_LT(Error(text).size(), 600u);
  std::string key = "{\"" + std::string(1 << 20, 'k') + "\": y}";
  EXPECT_LT(Error(key).size(), 600u);
}

struct Number {
  double value;
  const char* text;
};

class EcmaNumbers : public ::testing::TestWithParam<Number> {};

TEST_P(EcmaNumbers, Canonical) { EXPECT_EQ(Json(GetParam().value).Canonical(), GetParam().text); }

// The layouts of ECMA-262 and RFC 8785, appendix B.
INSTANTIATE_TEST_SUITE_P(
    Table, EcmaNumbers,
    ::testing::Values(
        Number{0.0, "0"}, Number{-0.0, "0"}, Number{1.0, "1"}, Number{-1.5, "-1.5"}, Number{0.01, "0.01"},
        Number{5e-324, "5e-324"}, Number{-5e-324, "-5e-324"}, Number{1.7976931348623157e308, "1.7976931348623157e+308"},
        Number{9007199254740992.0, "9007199254740992"}, Number{295147905179352830000.0, "295147905179352830000"},
        Number{1e20, "100000000000000000000"}, Number{1e21, "1e+21"}, Number{1e22, "1e+22"},
        Number{999999999999999900000.0, "999999999999999900000"}, Number{1e-6, "0.000001"}, Number{1e-7, "1e-7"},
        Number{1.5e-7, "1.5e-7"}, Number{0.000001234, "0.000001234"}, Number{333333333.33333329, "333333333.3333333"},
        Number{123.456, "123.456"}, Number{4.35, "4.35"}, Number{2e-3, "0.002"}, Number{1e23, "1e+23"},
        Number{9.999999999999997e22, "9.999999999999997e+22"}, Number{std::numeric_limits<double>::infinity(), "null"},
        Number{std::nan(""), "null"}));

TEST(JsonWrite, DoublesReadBack) {
  uint64_t bits = 0x9E3779B97F4A7C15u;
  for (int i = 0; i < 20'000; ++i) {
    bits ^= bits << 13;
    bits ^= bits >> 7;
    bits ^= bits << 17;
    double value;
    static_assert(sizeof value == sizeof bits);
    __builtin_memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    auto back = ParseJson(Json(value).Text(), "a.json");
    ASSERT_TRUE(back.ok()) << Json(value).Text();
    ASSERT_EQ(back->number(), value) << Json(value).Text();
  }
}

TEST(JsonWrite, CanonicalSortsByUtf16) {
  // U+1F600 is written as a surrogate pair and so comes before U+FB33.
  Json json = Parse(
      R"({"\ufb33": 1, "\ud83d\ude00": 2, "\u20ac": 3, "\r": 4, "1": 5, "\u0080": 6, "\u00f6": 7, "": 8, "10": 9})");
  EXPECT_EQ(
      json.Canonical(),
      "{\"\":8,\"\\r\":4,\"1\":5,\"10\":9,\"\xC2\x80\":6,\"\xC3\xB6\":7,\"\xE2\x82\xAC\":3,\"\xF0\x9F\x98\x80\":2,"
      "\"\xEF\xAC\xB3\":1}");
}

TEST(JsonWrite, CanonicalDoesNotDependOnOrderOrSpace) {
  EXPECT_EQ(Parse("{\"b\": [1.0, 2e0], \"a\": {\"d\": 1, \"c\": \"\\u0041\"}}").Canonical(),
            Parse("{ \"a\":{\"c\":\"A\",\"d\":1} ,\"b\":[1,2]}").Canonical());
  EXPECT_EQ(Json(int64_t{9007199254740993}).Canonical(), "9007199254740993");
}

TEST(JsonWrite, EscapesWhatItMust) {
  EXPECT_EQ(Json("\b\t\n\f\r\"\\/\x01\x1F\x7F\xC3\xA9").Text(),
            "\"\\b\\t\\n\\f\\r\\\"\\\\/\\u0001\\u001f\x7F\xC3\xA9\"");
  EXPECT_EQ(Json("a\xFFz\xE2\x82").Text(), "\"a\xEF\xBF\xBDz\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

TEST(JsonWrite, TextKeepsOrderAndIndents) {
  Json json;
  json.Set("z", Json(Json::Array{1, "two", nullptr}));
  json.Set("a", Json(Json::Object{}));
  json.Set("z2", true);
  json.Set("z2", false);
  EXPECT_EQ(json.Text(), R"({"z":[1,"two",null],"a":{},"z2":false})");
  EXPECT_EQ(json.Text(2), "{\n  \"z\": [\n    1,\n    \"two\",\n    null\n  ],\n  \"a\": {},\n  \"z2\": false\n}");
}

TEST(JsonWrite, NamesTypes) {
  EXPECT_EQ(Json().type_name(), "null");
  EXPECT_EQ(Json(true).type_name(), "boolean");
  EXPECT_EQ(Json(1).type_name(), "integer");
  EXPECT_EQ(Json(1.0).type_name(), "number");
  EXPECT_EQ(Json("").type_name(), "string");
  EXPECT_EQ(Json(Json::Array()).type_name(), "array");
  EXPECT_EQ(Json(Json::Object()).type_name(), "object");
}

TEST(JsonPath, QuotesWhatIsNoPlainWord) {
  EXPECT_EQ(JsonPathStep("hidden_size"), ".hidden_size");
  EXPECT_EQ(JsonPathStep("a b"), "[\"a b\"]");
  EXPECT_EQ(JsonPathStep(""), "[\"\"]");
  EXPECT_LT(JsonPathStep(std::string(5000, 'x')).size(), 120u);
}

}  // namespace
}  // namespace solstice::core
