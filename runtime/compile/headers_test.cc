// The header pack: each header alone, all of them with the toolkit's before and after, and what they promise.
#include <algorithm>
#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/strings.h"
#include "runtime/compile/test_compiler.h"

namespace solstice::compile {
namespace {

std::vector<std::string> PackHeaders() {
  std::vector<std::string> names;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::string(SOLSTICE_SOURCE_DIR) + "/runtime/compile/headers")) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Includes(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += base::StrCat("#include <", name, ">\n");
  return text;
}

void ExpectClean(const std::string& text, std::vector<std::string> options = {}) {
  v1::internal::Program program = CompileTest(text, std::move(options));
  EXPECT_EQ(program.verdict(), v1::PASSED) << text.substr(0, 200) << "\n" << program.reason() << "\n" << program.log();
  EXPECT_EQ(program.log(), "") << text.substr(0, 200);
}

TEST(HeaderPack, HoldsWhatIsPromised) {
  EXPECT_THAT(PackHeaders(),
              ::testing::IsSupersetOf({"cstdint", "stdint.h",  "cstddef", "stddef.h", "cmath",      "math.h",
                                       "cfloat",  "float.h",   "climits", "limits.h", "limits",     "type_traits",
                                       "utility", "algorithm", "array",   "tuple",    "functional", "initializer_list",
                                       "cassert", "assert.h",  "cstdio",  "stdio.h",  "cstdlib",    "stdlib.h",
                                       "cstring", "string.h"}));
}

TEST(HeaderPack, EachAlone) {
  for (const std::string& name : PackHeaders()) ExpectClean(Includes({name, name}) + kAffine);
  for (const char* name : {"cuda.h", "cuda_runtime.h", "cuda_bf16.h"}) ExpectClean(Includes({name}) + kAffine);
}

const std::vector<std::string>& ToolkitHeaders() {
  static const auto* names = new std::vector<std::string>{"cuda_fp16.h",          "cuda_bf16.h",
                                                          "cuda_fp8.h",           "cuda_fp6.h",
                                                          "cuda_fp4.h",           "mma.h",
                                                          "cuda_pipeline.h",      "cuda_awbarrier.h",
                                                          "cuda_runtime.h",       "cuda.h",
                                                          "cooperative_groups.h", "cooperative_groups/reduce.h",
                                                          "cuda/barrier",         "cuda/ptx",
                                                          "cuda/std/array",       "cuda/std/tuple",
                                                          "cuda/std/cmath",       "cuda/std/limits",
                                                          "cuda/std/functional",  "cuda/std/cstdint",
                                                          "cuda/std/cstring",     "cuda/std/cassert",
                                                          "cuda/std/complex",     "cuda/std/atomic",
                                                          "cuda/std/span",        "cub/block/block_reduce.cuh",
                                                          "curand_kernel.h",      "math_constants.h"};
  return *names;
}

TEST(HeaderPack, AllBeforeTheToolkits) { ExpectClean(Includes(PackHeaders()) + Includes(ToolkitHeaders()) + kAffine); }
TEST(HeaderPack, AllAfterTheToolkits) {
  ExpectClean(Includes(ToolkitHeaders()) + Includes(PackHeaders()) + kAffine, {"-std=c++20"});
}

TEST(HeaderPack, TypesWithoutAnyInclude) {
  ExpectClean(
      "extern \"C\" __global__ void k(const float* x, float* y, int64_t n) {\n  int64_t i = (int64_t)blockIdx.x * "
      "blockDim.x + threadIdx.x;\n"
      "  uint32_t one = 1;\n  if (i < n) y[i] = 2.0f * x[i] + (float)one;\n}\n");
}

TEST(HeaderPack, TraitsAndLimits) {
  ExpectClean(R"(
#include <limits>
#include <type_traits>
#include <cstdint>
#include <cfloat>
enum class E : short {}; struct S { int a; virtual ~S(); }; struct D : S {}; union U { int a; float b; }; struct Empty {}; void F(int);
static_assert(std::is_same_v<std::remove_cvref_t<const int&>, int> && !std::is_same<int, long>::value);
static_assert(std::is_same_v<std::decay_t<int[3]>, int*> && std::is_same_v<std::decay_t<decltype(F)>, void (*)(int)>);
static_assert(std::is_same_v<std::common_type_t<int, float, double>, double> && std::is_same_v<std::conditional_t<false, int, float>, float>);
static_assert(std::is_integral_v<const bool> && std::is_integral_v<int64_t> && !std::is_integral_v<float>);
static_assert(std::is_floating_point_v<volatile double> && std::is_arithmetic_v<char> && std::is_signed_v<float> && std::is_unsigned_v<uint8_t>);
static_assert(std::is_pointer_v<int* const> && std::is_reference_v<int&&> && std::is_array_v<int[2]> && std::is_function_v<decltype(F)>);
static_assert(std::is_enum_v<E> && std::is_class_v<S> && std::is_union_v<U> && std::is_empty_v<Empty> && std::is_polymorphic_v<S>);
static_assert(std::is_base_of_v<S, D> && std::is_convertible_v<D*, S*> && !std::is_convertible_v<S*, D*> && std::is_trivially_copyable_v<U>);
static_assert(std::is_constructible_v<S, const S&> && !std::is_constructible_v<int*, float> && std::is_default_constructible_v<Empty>);
static_assert(std::is_same_v<std::underlying_type_t<E>, short> && std::is_same_v<std::make_unsigned_t<int>, unsigned>);
static_assert(std::is_same_v<std::remove_pointer_t<int* const>, int> && std::is_same_v<std::add_pointer_t<int&>, int*> && std::is_void_v<const void>);
static_assert(std::is_same_v<std::add_lvalue_reference_t<void>, void> && std::rank_v<int[2][3]> == 2 && std::extent_v<int[2][3], 1> == 3);
static_assert(std::conjunction_v<std::true_type, std::is_void<void>> && std::disjunction_v<std::false_type, std::true_type> && std::negation_v<std::false_type>);
static_assert(std::is_invocable_v<decltype(F), int> && !std::is_invocable_v<decltype(F), S> && std::is_same_v<std::invoke_result_t<decltype(F), int>, void>);
template <class T, class = void> struct Has : std::false_type {}; template <class T> struct Has<T, std::void_t<decltype(T::a)>> : std::true_type {};
static_assert(Has<S>::value && !Has<Empty>::value);
typedef std::numeric_limits<float> L;
static_assert(L::max() == FLT_MAX && L::lowest() == -FLT_MAX && L::min() == 1.17549435e-38f && L::epsilon() == 1.1920929e-7f && L::infinity() > L::max());
static_assert(L::quiet_NaN() != L::quiet_NaN() && L::digits == 24 && L::is_iec559 && L::has_infinity);
static_assert(std::numeric_limits<double>::max() == DBL_MAX && DBL_MAX == 1.7976931348623157e308 && std::numeric_limits<double>::digits10 == 15);
static_assert(std::numeric_limits<int>::max() == 2147483647 && std::numeric_limits<int>::min() == -2147483647 - 1 && std::numeric_limits<int>::lowest() == INT_MIN);
static_assert(std::numeric_limits<unsigned char>::max() == 255 && std::numeric_limits<signed char>::min() == -128 && std::numeric_limits<bool>::max());
static_assert(std::numeric_limits<int64_t>::min() == INT64_MIN && std::numeric_limits<uint64_t>::max() == UINT64_MAX && std::numeric_limits<int>::digits10 == 9);
static_assert(std::numeric_limits<const short>::max() == 32767 && !std::numeric_limits<Empty>::is_specialized && std::numeric_limits<unsigned>::min() == 0);
static_assert(sizeof(std::int8_t) == 1 && sizeof(std::uint16_t) == 2 && sizeof(int32_t) == 4 && sizeof(std::uintptr_t) == 8 && UINT64_C(1) << 63 != 0);
)" + kAffine);
}

TEST(HeaderPack, Containers) {
  ExpectClean(R"(
#include <algorithm>
#include <array>
#include <functional>
#include <tuple>
#include <utility>
constexpr std::array<int, 4> kSorted = [] { std::array<int, 4> a{4, 1, 3, 2}; std::sort(a.begin(), a.end()); return a; }();
static_assert(kSorted[0] == 1 && kSorted[3] == 4 && kSorted == std::array{1, 2, 3, 4} && kSorted.size() == 4 && std::get<1>(kSorted) == 2);
constexpr int kLarge[] = {9, 8, 7, 6, 5, 4, 3, 2, 1, 0};
constexpr bool Sorts() { int a[10] = {}; std::copy(kLarge, kLarge + 10, a); std::sort(a, a + 10, std::less<>()); return std::is_sorted(a, a + 10) && a[0] == 0; }
static_assert(Sorts());
static_assert(std::min(3, 2) == 2 && std::max(1.0f, 2.0f) == 2.0f && std::max({1, 5, 3}) == 5 && std::clamp(7, 0, 5) == 5 && std::min(1, 2, std::greater<int>()) == 2);
static_assert(*std::max_element(kLarge, kLarge + 10) == 9 && std::find(kLarge, kLarge + 10, 7) - kLarge == 2 && std::count_if(kLarge, kLarge + 10, [](int x) { return x > 4; }) == 5);
static_assert(std::lower_bound(kSorted.begin(), kSorted.end(), 3) - kSorted.begin() == 2 && std::binary_search(kSorted.begin(), kSorted.end(), 4));
static_assert(std::upper_bound(kSorted.begin(), kSorted.end(), 3) - kSorted.begin() == 3 && std::all_of(kSorted.begin(), kSorted.end(), [](int x) { return x > 0; }));
constexpr std::tuple<int, float, char> kTuple(1, 2.5f, 'c');
static_assert(std::get<0>(kTuple) == 1 && std::get<float>(kTuple) == 2.5f && std::tuple_size_v<decltype(kTuple)> == 3);
static_assert(std::is_same_v<std::tuple_element_t<2, std::tuple<int, float, char>>, char> && std::make_tuple(1, 2) == std::tuple<int, int>(1, 2));
static_assert(std::apply([](auto... x) { return (x + ...); }, std::make_tuple(1, 2, 3)) == 6 && std::get<3>(std::tuple_cat(std::make_tuple(1, 2), std::make_tuple(3, 4))) == 4);
constexpr int Bound() { auto [a, b] = std::pair<int, int>{3, 4}; auto [c, d] = std::make_tuple(5, 6); auto [e, f] = std::array<int, 2>{7, 8}; int g = 0, h = 0; std::tie(g, h) = std::make_tuple(9, 10); return a + b + c + d + e + f + g + h; }
static_assert(Bound() == 52);
template <size_t... I> constexpr size_t Sum(std::index_sequence<I...>) { return (I + ... + 0); }
static_assert(Sum(std::make_index_sequence<100>()) == 4950 && Sum(std::make_index_sequence<0>()) == 0);
constexpr int Swapped() { int a = 1, b = 2; std::swap(a, b); int c = std::exchange(a, 7); return a * 100 + b * 10 + c; }
static_assert(Swapped() == 712 && std::plus<>()(1, 2) == 3 && std::invoke(std::multiplies<int>(), 3, 4) == 12 && std::make_pair(1, 2) < std::make_pair(1, 3));
constexpr int Rest() { int a[6] = {1, 2, 3, 4, 5, 6}; std::reverse(a, a + 6); std::rotate(a, a + 2, a + 6); std::fill_n(a, 1, 9); int t = 0; std::for_each(a, a + 6, [&](int x) { t = t * 10 + x; }); return t; }
static_assert(Rest() == 932165);
extern "C" __global__ void k(float* y, int n) { std::array<float, 8> a; a.fill(y[n]); auto best = std::min_element(a.begin(), a.end()); y[0] = *best + std::get<0>(std::move(a)); y[1] = std::ref(y[2]); }
)");
}

TEST(HeaderPack, FunctionsOfDeviceCode) {
  ExpectClean(R"(
#include <cassert>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cstdint>
#include <type_traits>
struct P { char a; int b; };
static_assert(offsetof(P, b) == 4 && sizeof(std::size_t) == 8 && std::to_integer<int>(std::byte(6) & std::byte(3)) == 2);
static_assert(std::is_same_v<decltype(std::sqrt(1.f)), float> && std::is_same_v<decltype(std::sqrt(2)), double> && std::is_same_v<decltype(std::pow(2.f, 3.f)), float>);
static_assert(std::is_same_v<decltype(std::pow(2, 3)), double> && std::is_same_v<decltype(std::fmax(1.f, 2.0)), double> && std::is_same_v<decltype(std::abs(-1.f)), float>);
static_assert(std::is_same_v<decltype(std::abs(-1)), int> && std::is_same_v<decltype(std::fma(1.f, 2.f, 3.f)), float> && INFINITY > 1 && NAN != NAN && M_PI > 3);
extern "C" __global__ void k(const float* x, float* y, std::int64_t n) {
  assert(n > 0);
  char text[8]; std::memset(text, 0, 8); std::memcpy(text, x, 4); std::memmove(text + 1, text, 4);
  if (std::isnan(x[0]) || !std::isfinite(x[1]) || std::isnormal(x[2])) std::printf("%d\n", std::fpclassify(x[0]));
  y[0] = std::exp(x[0]) + std::tanh(x[1]) + std::fabs(x[2]) + std::floor(x[3]) + std::rint(x[4]) + powf(x[5], 2) + std::erf(x[6]) + std::log1p(x[7]);
  y[1] = std::memcmp(text, x, 4) + std::strlen(text) + std::div(7, 2).rem + std::abs(int(n)) + std::hypot(x[0], x[1]) + fpclassify(x[3]);
  if (n == 7) std::abort();
}
)");
  v1::internal::Program quiet = CompileTest(
      "#define NDEBUG\n#include <cassert>\nextern \"C\" __global__ void k(int* y) { assert(y[0] == 1); y[1] = 1; }\n");
  EXPECT_EQ(quiet.verdict(), v1::PASSED);
  EXPECT_THAT(quiet.ptx(), ::testing::Not(::testing::HasSubstr("__assertfail")));
  v1::internal::Program loud =
      CompileTest("#include <assert.h>\nextern \"C\" __global__ void k(int* y) { assert(y[0] == 1); y[1] = 1; }\n");
  EXPECT_THAT(loud.ptx(), ::testing::HasSubstr("__assertfail"));
}

TEST(HeaderPack, TensorMapsByValue) {
  ExpectClean(
      "#include <cuda.h>\nextern \"C\" __global__ void k(const __grid_constant__ CUtensorMap map, float* y) { y[0] = "
      "reinterpret_cast<const char*>(&map)[3]; }\n");
}

}  // namespace
}  // namespace solstice::compile
