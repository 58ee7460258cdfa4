#include "runtime/plan/name_expression.h"

#include <gtest/gtest.h>

#include "runtime/plan/plan_test_support.h"

namespace solstice::plan {
namespace {

TEST(NameExpression, Normalises) {
  const std::pair<const char*, const char*> kCases[] = {
      {"k", "k"},
      {"  k ", "k"},
      {"&k", "k"},
      {" & user::ops::k", "user::ops::k"},
      {"user :: ops :: k", "user::ops::k"},
      {"::k", "::k"},
      {"k<>", "k<>"},
      {"k<4>", "k<4>"},
      {"k< 4 ,true,\tfloat >", "k<4, true, float>"},
      {"user::ops::affine<float,4,true>", "user::ops::affine<float, 4, true>"},
      {"k<-3, 0x1F, 7u, 8ULL>", "k<-3, 0x1F, 7u, 8ULL>"},
      {"k<unsigned   int>", "k<unsigned int>"},
      {"k<const float *>", "k<const float*>"},
      {"k<float const * const>", "k<float const* const>"},
      {"k<T &&>", "k<T&&>"},
      {"k<const ns::T<int, 4> *, A<B<C>>>", "k<const ns::T<int, 4>*, A<B<C>>>"},
      {"Outer<4>::inner<float>", "Outer<4>::inner<float>"},
      {"k<::ns::T>", "k<::ns::T>"},
      {"k<long long>", "k<long long>"},
  };
  for (const auto& [text, expected] : kCases) {
    StatusOr<std::string> name = NormaliseNameExpression(text);
    ASSERT_TRUE(name.ok()) << text << name.status();
    EXPECT_EQ(*name, expected);
    // What is normal stays as it is.
    EXPECT_EQ(*NormaliseNameExpression(*name), expected);
  }
}

TEST(NameExpression, RefusesEverythingElse) {
  const char* kCases[] = {
      "",
      " ",
      "&",
      "&&k",
      "4",
      "k<",
      "k<4",
      "k>",
      "k<4>>",
      "k<,>",
      "k<4,>",
      "k<4 5>",
      "k 4",
      "k l",
      "k<float 4>",
      "k;",
      "k(1)",
      "k<(2+2)>",
      "k<2+2>",
      "k<sizeof(int)>",
      "k<'a'>",
      "k<\"a\">",
      "k<A[4]>",
      "k{}",
      "k<4>;",
      "k<4>()",
      "k<4> l",
      "a:::b",
      "a::",
      "a:b",
      "k::<4>",
      "k.l",
      "k->l",
      "k\\",
      "k/**/",
      "k//",
      "#k",
      "k#",
      "k<#>",
      "k@",
      "k$",
      "k<int float x>",
      "k<T U>",
      "k<int T>",
      "k<*>",
      "k<&>",
      "k<const>",
      "k<1.5>",
      "k<1e5>",
      "k<0x>",
      "k<4x>",
      "k<->",
      "k<\xc3\xa9>",
      "\xc3\xa9",
      "k<4>\n",
      "k\r",
      "k\x01",
      "k\x7f",
      "k<?>",
      "k<%:>",
      "k<a ? b : c>",
      "k<a, b = c>",
      // the injections of test case 02_template_name_expression
      "user::ops::affine<float, 4, true>); }; static_assert(false, \"injected\"); namespace z { (void)(0",
      "user::ops::affine<float,4,true>\n#include \"/etc/hostname\"",
  };
  for (const char* text : kCases) {
    EXPECT_TRUE(absl::IsInvalidArgument(NormaliseNameExpression(text).status())) << text;
  }
  EXPECT_FALSE(NormaliseNameExpression(std::string("k\0", 2)).ok());
  EXPECT_FALSE(NormaliseNameExpression(std::string(2000, 'k')).ok());
  std::string deep = "k";
  for (int i = 0; i < 1000; ++i) deep += "<k";
  EXPECT_FALSE(NormaliseNameExpression(deep).ok());
}

TEST(NameExpression, ErrorsSayWhere) {
  EXPECT_EQ(base::MessageOf(NormaliseNameExpression("k<4>;").status()),
            "kernel name \"k<4>;\": character 5: found \";\" where the end is expected");
  EXPECT_EQ(base::MessageOf(NormaliseNameExpression("k<4").status()),
            "kernel name \"k<4\": character 4: found the end where \",\" or \">\" is expected");
  EXPECT_EQ(base::MessageOf(NormaliseNameExpression("k\n").status()), "a kernel's name may not hold a line break");
}

TEST(NameExpression, Specialises) {
  expr::ListScope scope;
  scope.Add("N", int64_t{64});
  scope.Add("M", int64_t{8});
  scope.Add("even", true);
  scope.Add("eps", 0.5);
  auto name = [&](const char* text) {
    StatusOr<std::string> result = SpecialiseNameExpression(text, scope);
    return result.ok() ? *result : base::MessageOf(result.status());
  };
  EXPECT_EQ(name("k<N>"), "k<64>");
  EXPECT_EQ(name("k<float, N, even, true, T>"), "k<float, 64, true, true, T>");
  EXPECT_EQ(name("k<N // M * 2, -M, ceil_div(N, 5)>"), "k<16, -8, 13>");
  EXPECT_EQ(name("k<(N > M), (N < M) or even>"), "k<true, true>");
  EXPECT_EQ(name("k<Pair<float, N>, A<B<M>>>"), "k<Pair<float, 64>, A<B<8>>>");
  EXPECT_EQ(name("k<T*, const N*, unsigned int>"), "k<T*, const N*, unsigned int>");
  EXPECT_EQ(name("k<64 if N > M else 32>"),
            "kernel name \"k<64 if N > M else 32>\": character 6: found \"i\" where \",\" or \">\" is expected");
  EXPECT_EQ(name("k<(64 if N > M else 32)>"), "k<64>");
  EXPECT_EQ(name("Outer<N>::k<M>"), "Outer<64>::k<8>");
  EXPECT_EQ(name("N"), "N");
  EXPECT_EQ(name("k<N / M>"), "template argument \"N / M\" is the float 8");
  EXPECT_EQ(name("k<eps>"), "template argument \"eps\" is the float 0.5");
  EXPECT_EQ(name("k<N // 0>"), "template argument \"N // 0\": column 3: division by zero");
  EXPECT_EQ(name("k<T + 1>"), "template argument \"T + 1\": column 1: unknown name \"T\"");
  EXPECT_EQ(name("k<(1>"),
            "kernel name \"k<(1>\": character 3: found \"(\" where a type, an integer, true or false is expected");
}

}  // namespace
}  // namespace solstice::plan
