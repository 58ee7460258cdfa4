#include "runtime/expr/formula.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "runtime/base/strings.h"

namespace solstice::expr {
namespace {

class TestScope : public ListScope {
 public:
  TestScope() {
    Add("M", int64_t{8});
    Add("batch_size", int64_t{7});
    Add("zero", int64_t{0});
    Add("big", INT64_MAX);
    Add("small", INT64_MIN);
    Add("eps", 0.5);
    Add("flag", true);
  }
  StatusOr<Value> Call(std::string_view function, const std::vector<std::string>& raw,
                       const std::vector<Value>& arguments) const override {
    if (function != "occupancy") return base::NotFound("none");
    last_raw = raw;
    if (arguments.size() != 3) return base::InvalidArgument("occupancy() takes 3 arguments");
    return Value(static_cast<int64_t>(arguments.size()) * 100 + (IsTrue(arguments[1]) ? 1 : 0));
  }
  mutable std::vector<std::string> last_raw;
};

std::string Result(const std::string& text) {
  StatusOr<Formula> formula = Formula::Parse(text);
  if (!formula.ok()) return "parse: " + base::MessageOf(formula.status());
  StatusOr<Value> value = formula->Evaluate(TestScope());
  if (!value.ok()) return base::MessageOf(value.status());
  const char* kind = std::holds_alternative<bool>(*value) ? "b " : std::holds_alternative<double>(*value) ? "f " : "i ";
  return kind + ToText(*value);
}

struct Case {
  const char* text;
  const char* expected;
};

TEST(Formula, Values) {
  const Case kCases[] = {
      {"1", "i 1"},
      {"0x1F", "i 31"},
      {"0", "i 0"},
      {"1.5", "f 1.5"},
      {".5", "f 0.5"},
      {"2.", "f 2"},
      {"1e-6", "f 1e-06"},
      {"1E3", "f 1000"},
      {"True", "b True"},
      {"False", "b False"},
      {"M", "i 8"},
      {"eps", "f 0.5"},
      {"1 + 2 * 3", "i 7"},
      {"(1 + 2) * 3", "i 9"},
      {"7 - 2 - 1", "i 4"},
      {"2 ** 3 ** 2", "i 512"},
      {"-2 ** 2", "i -4"},
      {"2 ** -1", "f 0.5"},
      {"(-2) ** 3", "i -8"},
      {"0 ** 0", "i 1"},
      {"(-1) ** 9223372036854775807", "i -1"},
      {"1 ** 9223372036854775807", "i 1"},
      {"2 ** 62", "i 4611686018427387904"},
      {"2.0 ** 0.5 > 1.414", "b True"},
      {"7 / 2", "f 3.5"},
      {"8 / 2", "f 4"},
      {"7 // 2", "i 3"},
      {"-7 // 2", "i -4"},
      {"7 // -2", "i -4"},
      {"-7 // -2", "i 3"},
      {"7 % 3", "i 1"},
      {"-7 % 3", "i 2"},
      {"7 % -3", "i -2"},
      {"-7 % -3", "i -1"},
      {"small % -1", "i 0"},
      {"7.5 // 2", "f 3"},
      {"-7.5 // 2", "f -4"},
      {"-7.5 % 2", "f 0.5"},
      {"7.5 % -2", "f -0.5"},
      {"- - 3", "i 3"},
      {"+True", "i 1"},
      {"-True", "i -1"},
      {"True + True", "i 2"},
      {"-9223372036854775808", "i -9223372036854775808"},
      {"9223372036854775807", "i 9223372036854775807"},
      {"1 < 2 < 3", "b True"},
      {"1 < 3 < 2", "b False"},
      {"3 > 2 >= 2 != 1", "b True"},
      {"3 > 5 > 1 // zero", "b False"},
      {"1 == 1.0", "b True"},
      {"9007199254740993 == 9007199254740992.0", "b False"},
      {"big < 9223372036854775808.0", "b True"},
      {"True == 1", "b True"},
      {"not 0", "b True"},
      {"not not 3", "b True"},
      {"not 1 == 2", "b True"},
      {"0 or 5", "i 5"},
      {"3 and 5", "i 5"},
      {"0 and 1 // 0", "i 0"},
      {"1 or 1 // 0", "i 1"},
      {"1 or 0 and 0", "i 1"},
      {"64 if M > 4 else 32", "i 64"},
      {"64 if M > 9 else 32", "i 32"},
      {"1 if zero else 2 if flag else 3", "i 2"},
      {"1 if flag else 1 // 0", "i 1"},
      {"ceil_div(7, 2)", "i 4"},
      {"ceil_div(-7, 2)", "i -3"},
      {"ceil_div(7, -2)", "i -3"},
      {"ceil_div(-7, -2)", "i 4"},
      {"ceil_div(0, 5)", "i 0"},
      {"ceil_div(big, 2)", "i 4611686018427387904"},
      {"ceil_div(big, big)", "i 1"},
      {"round_up(13, 8)", "i 16"},
      {"round_up(-13, 8)", "i -8"},
      {"round_up(16, 8)", "i 16"},
      {"next_pow2(5)", "i 8"},
      {"next_pow2(8)", "i 8"},
      {"next_pow2(0)", "i 1"},
      {"next_pow2(-5)", "i 1"},
      {"next_pow2(4611686018427387904)", "i 4611686018427387904"},
      {"min(3, 1, 2)", "i 1"},
      {"max(3)", "i 3"},
      {"max(1, 2.5)", "f 2.5"},
      {"min(2, 2.0)", "i 2"},
      {"abs(-3)", "i 3"},
      {"abs(-2.5)", "f 2.5"},
      {"floor(-2.5)", "i -3"},
      {"ceil(-2.5)", "i -2"},
      {"floor(7)", "i 7"},
      {"log2(8)", "f 3"},
      {"exp2(3)", "f 8"},
      {"sqrt(16)", "f 4"},
      {"1 / sqrt(M * 2)", "f 0.25"},
      {"occupancy(k, 256, M)", "i 301"},
      {"occupancy(ops::k<float, M>, 256, 1) * 2", "i 602"},
      {"occupancy(k<A<4>>, 0, 1)", "i 300"},
      {"  M\t+ 1 ", "i 9"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Result(c.text), c.expected) << c.text;
}

TEST(Formula, SyntaxErrorsNameTheColumn) {
  const Case kCases[] = {
      {"", "column 1: the formula is empty"},
      {"   ", "column 1: the formula is empty"},
      {"1 +", "column 4: the formula ends where a value is expected"},
      {"1 2", "column 3: unexpected \"2\" where an operator or the end is expected"},
      {"(1", "column 3: the formula ends where \")\" is expected"},
      {"1)", "column 2: unexpected \")\" where an operator or the end is expected"},
      {"(1, 2)", "column 3: a formula is one value, not a list"},
      {"* 2", "column 1: unexpected \"*\" where a value is expected"},
      {"3x", "column 2: unexpected \"x\" after the number 3"},
      {"4u", "column 2: unexpected \"u\" after the number 4"},
      {"1.2.3", "column 4: unexpected \".\" after the number 1.2"},
      {"007", "column 1: the integer \"007\" starts with a zero"},
      {"0x", "column 1: 0x without digits"},
      {"9223372036854775808", "column 1: the integer \"9223372036854775808\" does not fit in 64 bits"},
      {"-9223372036854775808 ** 2", "column 2: the integer \"9223372036854775808\" does not fit in 64 bits"},
      {"99999999999999999999", "column 1: the integer \"99999999999999999999\" does not fit in 64 bits"},
      {"0x10000000000000000", "column 1: the integer \"0x10000000000000000\" does not fit in 64 bits"},
      {"1e999", "column 1: the number \"1e999\" does not fit in a 64-bit float"},
      {"1 << 3", "column 3: \"<<\" is not an operator of formulas"},
      {"8 >> 1", "column 3: unexpected \">>\" where an operator or the end is expected"},
      {"a && b", "column 3: \"&&\" is not an operator of formulas"},
      {"a || b", "column 3: \"||\" is not an operator of formulas"},
      {"2 ^ 3", "column 3: \"^\" is not an operator of formulas"},
      {"a ? 1 : 2", "column 3: \"?\" is not an operator of formulas"},
      {"!a", "column 1: \"!\" is not an operator of formulas"},
      {"a = 1", "column 3: \"=\" is not an operator of formulas"},
      {"std::min(1, 2)", "column 4: unexpected \"::\" where an operator or the end is expected"},
      {"a.b", "column 2: unexpected character \".\""},
      {"\xc3\xa9", "column 1: unexpected character \"\xc3\xa9\""},
      {"\xff", "column 1: unexpected character \"\\xff\""},
      {"1\n+2", "column 2: unexpected character \"\\n\""},
      {"'a'", "column 1: unexpected character \"'\""},
      {"1 if 2", "column 7: the formula ends where else is expected"},
      {"1 if 2 3", "column 8: unexpected \"3\" where else is expected"},
      {"if", "column 1: unexpected \"if\" where a value is expected"},
      {"and 1", "column 1: unexpected \"and\" where a value is expected"},
      {"1 and", "column 6: the formula ends where a value is expected"},
      {"min()", "column 1: min() takes at least 1 argument, not 0"},
      {"ceil_div(1)", "column 1: ceil_div() takes 2 arguments, not 1"},
      {"floor(1, 2)", "column 1: floor() takes 1 argument, not 2"},
      {"min(1 2)", "column 7: unexpected \"2\" where \",\" or \")\" is expected"},
      {"min(1,", "column 7: the formula ends where a value is expected"},
      {"occupancy(k<1, 2", "column 17: the formula ends where \",\" or \")\" is expected"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Result(c.text), std::string("parse: ") + c.expected) << c.text;
}

TEST(Formula, EvaluationErrorsNameTheColumn) {
  const Case kCases[] = {
      {"M + batch", "column 5: unknown name \"batch\""},
      {"1 // zero", "column 3: division by zero"},
      {"1 / zero", "column 3: division by zero"},
      {"1 % zero", "column 3: division by zero"},
      {"1.0 // 0", "column 5: division by zero"},
      {"1.0 % 0.0", "column 5: division by zero"},
      {"zero ** -1", "column 6: division by zero"},
      {"0.0 ** -1", "column 5: division by zero"},
      {"big + 1", "column 5: integer overflow"},
      {"small - 1", "column 7: integer overflow"},
      {"big * 2", "column 5: integer overflow"},
      {"M * (big + 1)", "column 10: integer overflow"},
      {"-small", "column 1: integer overflow"},
      {"small // -1", "column 7: integer overflow"},
      {"abs(small)", "column 1: integer overflow"},
      {"2 ** 63", "column 3: integer overflow"},
      {"2 ** (2 ** 62)", "column 3: integer overflow"},
      {"9 ** 9 ** 9", "column 3: integer overflow"},
      {"ceil_div(1, 0)", "column 1: division by zero"},
      {"ceil_div(small, -1)", "column 1: integer overflow"},
      {"ceil_div(1.5, 2)", "column 1: ceil_div() takes integers, not 1.5"},
      {"round_up(5, 0)", "column 1: round_up() to a multiple of 0"},
      {"round_up(5, -8)", "column 1: round_up() to a multiple of -8"},
      {"round_up(big, 4)", "column 1: integer overflow"},
      {"next_pow2(big)", "column 1: integer overflow"},
      {"next_pow2(2.0)", "column 1: next_pow2() takes integers, not 2"},
      {"log2(0)", "column 1: log2() of 0"},
      {"sqrt(-1)", "column 1: sqrt() of -1"},
      {"(-8) ** 0.5", "column 6: a negative number to a fractional power is not real"},
      {"floor(1e30)", "column 1: 1e+30 does not fit in a 64-bit integer"},
      {"ceil(1e300 * 1e300)", "column 1: inf does not fit in a 64-bit integer"},
      {"nothing(1)", "column 1: unknown function \"nothing\""},
      {"1 + celi(1)", "column 5: unknown function \"celi\""},
      {"2 * occupancy(k)", "column 5: occupancy() takes 3 arguments"},
  };
  for (const Case& c : kCases) EXPECT_EQ(Result(c.text), c.expected) << c.text;
}

TEST(Formula, Mends) {
  auto mend = [](const char* text) {
    StatusOr<Formula> formula = Formula::Parse(text);
    return base::MendOf(formula.ok() ? formula->Evaluate(TestScope()).status() : formula.status());
  };
  EXPECT_EQ(mend("batchsize"), "did you mean \"batch_size\"?");
  EXPECT_EQ(mend("true"), "did you mean \"True\"?");
  EXPECT_EQ(mend("ceildiv(1, 2)"), "did you mean \"ceil_div\"?");
  EXPECT_EQ(mend("a << 2"), "write x * 2**n");
  EXPECT_EQ(mend("a >> 2"), "there are no bit operators; write x // 2**n");
  EXPECT_EQ(mend("a && 2"), "write and");
}

TEST(Formula, EvaluateInteger) {
  auto integer = [](const char* text) {
    StatusOr<int64_t> value = Formula::Parse(text)->EvaluateInteger(TestScope());
    return value.ok() ? base::StrCat(*value) : base::MessageOf(value.status()) + " | " + base::MendOf(value.status());
  };
  EXPECT_EQ(integer("M // 2"), "4");
  EXPECT_EQ(integer("M > 2"), "1");
  EXPECT_EQ(integer("M / 2"),
            "column 1: the result is the float 4, not an integer | use // instead of /, or floor() or ceil()");
  EXPECT_EQ(integer("1e200 * 1e200"), "column 1: the result is inf, not an integer | ");
  EXPECT_NE(integer("1e200 * 1e200 - 1e200 * 1e200").find("nan, not an integer"), std::string::npos);
  EXPECT_EQ(integer("M / zero"), "column 3: division by zero | ");
}

TEST(Formula, ReportsNamesAndFunctionsOnce) {
  StatusOr<Formula> formula = Formula::Parse("min(M, N) + M * ceil_div(K, min(1, N)) + occupancy(k<T, 2>, B, True)");
  ASSERT_TRUE(formula.ok()) << formula.status();
  EXPECT_EQ(base::Join(formula->names(), " "), "M N K B");
  EXPECT_EQ(base::Join(formula->functions(), " "), "min ceil_div occupancy");
  EXPECT_EQ(Formula::Parse(" 1 ")->text(), " 1 ");
}

TEST(Formula, KernelsReachTheScopeAsText) {
  TestScope scope;
  ASSERT_TRUE(
      Formula::Parse("occupancy( ops::k<float, (M > 2), std::array<int, 2>> , 256 * 1, 0)")->Evaluate(scope).ok());
  ASSERT_EQ(scope.last_raw.size(), 3u);
  EXPECT_EQ(scope.last_raw[0], "ops::k<float, (M > 2), std::array<int, 2>>");
  EXPECT_EQ(scope.last_raw[1], "256 * 1");
  // A comparison is not a kernel.
  EXPECT_EQ(Result("occupancy(M < 9, 1, 2)"), "i 301");
}

TEST(Formula, LimitsSizeAndNesting) {
  auto repeat = [](const std::string& text, int count) {
    std::string out;
    for (int i = 0; i < count; ++i) out += text;
    return out;
  };
  EXPECT_EQ(Result(repeat("(", 60) + "1" + repeat(")", 60)), "i 1");
  const std::string kDeep[] = {repeat("(", 2000) + "1" + repeat(")", 2000),
                               repeat("-", 4000) + "1",
                               repeat("not ", 1000) + "1",
                               repeat("2**", 1300) + "1",
                               repeat("1 if 1 else ", 300) + "1",
                               repeat("abs(", 800) + "1" + repeat(")", 800),
                               repeat("2**-", 1000) + "1",
                               repeat("f(", 2000)};
  for (const std::string& text : kDeep) {
    EXPECT_NE(Result(text).find("nested more than 64 deep"), std::string::npos) << text.substr(0, 20) << Result(text);
  }
  EXPECT_EQ(Result(repeat("1+", 2000) + "1"), "i 2001");
  EXPECT_EQ(Result(repeat("1<", 2000) + "1"), "b False");
  EXPECT_EQ(Result(repeat("1 or ", 800) + "1"), "i 1");
  EXPECT_EQ(Result(std::string(4097, '1')), "parse: column 4097: the formula has 4097 bytes, more than 4096");
  EXPECT_EQ(Result(std::string("1\0", 2)), "parse: column 2: unexpected character \"\\x00\"");
}

TEST(Formula, ListScopeLaterEntriesHideEarlierOnes) {
  ListScope scope;
  scope.Add("x", int64_t{1});
  scope.Add("x", int64_t{2});
  EXPECT_EQ(*Formula::Parse("x")->EvaluateInteger(scope), 2);
  EXPECT_TRUE(absl::IsNotFound(scope.Lookup("y").status()));
  EXPECT_TRUE(absl::IsNotFound(scope.Call("f", {}, {}).status()));
}

// Against the compiler's own arithmetic, over values that meet every boundary.
TEST(Formula, AgreesWithWideArithmetic) {
  const int64_t kValues[] = {INT64_MIN, INT64_MIN + 1, -4611686018427387904, -7,       -3, -2, -1, 0, 1, 2, 3,
                             7,         4294967296,    INT64_MAX - 1,        INT64_MAX};
  for (int64_t a : kValues) {
    for (int64_t b : kValues) {
      ListScope scope;
      scope.Add("a", a);
      scope.Add("b", b);
      auto check = [&](const char* text, bool defined, __int128 expected) {
        StatusOr<int64_t> value = Formula::Parse(text)->EvaluateInteger(scope);
        bool fits = defined && expected >= INT64_MIN && expected <= INT64_MAX;
        ASSERT_EQ(value.ok(), fits) << text << " a=" << a << " b=" << b;
        if (fits) {
          EXPECT_EQ(*value, static_cast<int64_t>(expected)) << text << " a=" << a << " b=" << b;
        }
      };
      __int128 x = a, y = b;
      check("a + b", true, x + y);
      check("a - b", true, x - y);
      check("a * b", true, x * y);
      __int128 floor = 0, ceiling = 0;
      if (b != 0) {
        floor = x / y - ((x % y != 0 && (x < 0) != (y < 0)) ? 1 : 0);
        ceiling = x / y + ((x % y != 0 && (x < 0) == (y < 0)) ? 1 : 0);
      }
      check("a // b", b != 0, floor);
      check("a % b", b != 0, b != 0 ? x - floor * y : 0);
      check("ceil_div(a, b)", b != 0, ceiling);
      check("a < b", true, a < b);
      check("min(a, b)", true, std::min(a, b));
    }
  }
}

TEST(Formula, SurvivesMutations) {
  const std::string kSeeds[] = {"ceil_div(batch_size, 4) if M > 4 else -2 ** 3",
                                "occupancy(ops::k<float, M>, 256, 0) * 2", "not flag or 1.5e3 // eps <= 0x1F % big",
                                "min(1, max(2, 3)) and (small - 1)"};
  const std::string kBytes = "()<>:,*/%+-.0123456789xeEMk_ andornotifelse\n\t\0\xff";
  std::mt19937 random(20240601);
  int parsed = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string text = kSeeds[random() % 4];
    for (int edits = 1 + static_cast<int>(random() % 4); edits > 0 && !text.empty(); --edits) {
      size_t at = random() % text.size();
      char byte = kBytes[random() % kBytes.size()];
      switch (random() % 4) {
        case 0:
          text[at] = byte;
          break;
        case 1:
          text.insert(at, 1, byte);
          break;
        case 2:
          text.erase(at, 1 + random() % 3);
          break;
        default:
          text.insert(at, text.substr(random() % text.size(), random() % 8));
          break;
      }
    }
    StatusOr<Formula> formula = Formula::Parse(text);
    if (!formula.ok()) {
      ASSERT_TRUE(absl::IsInvalidArgument(formula.status())) << text;
      continue;
    }
    ++parsed;
    StatusOr<Value> value = formula->Evaluate(TestScope());
    ASSERT_TRUE(value.ok() || absl::IsInvalidArgument(value.status())) << text << value.status();
  }
  EXPECT_GT(parsed, 1000);
}

}  // namespace
}  // namespace solstice::expr
