// Answers of the emulator against models on the host that owe it nothing.
#include <cfenv>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include "gtest/gtest.h"
#include "tests/conformance/runner.h"

namespace solstice::conformance {
namespace {

using Int = __int128;
using Operands = std::vector<uint64_t>;
using Model = std::function<uint64_t(const Operands&)>;

struct IntegerType {
  const char* name;
  int bits;
  bool is_signed;
  Int Value(uint64_t word) const {
    if (bits < 64) word &= (uint64_t{1} << bits) - 1;
    if (is_signed && (word >> (bits - 1)) & 1) return static_cast<Int>(word) - (static_cast<Int>(1) << bits);
    return static_cast<Int>(word);
  }
  uint64_t Code(Int value) const {
    const auto word = static_cast<uint64_t>(value);
    return bits < 64 ? word & ((uint64_t{1} << bits) - 1) : word;
  }
  Int Most() const { return (static_cast<Int>(1) << (is_signed ? bits - 1 : bits)) - 1; }
  Int Least() const { return is_signed ? -Most() - 1 : 0; }
};
constexpr IntegerType kIntegers[] = {{"u16", 16, false}, {"s16", 16, true},  {"u32", 32, false},
                                     {"s32", 32, true},  {"u64", 64, false}, {"s64", 64, true}};

// The high half of a product, for which 128 bits are just enough.
Int High(const IntegerType& t, Int a, Int b) {
  if (t.bits == 64 && !t.is_signed) {
    return static_cast<Int>((static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b)) >> 64);
  }
  return (a * b) >> t.bits;
}

void AddIntegerModels(std::map<std::string, Model>* models) {
  for (const IntegerType& t : kIntegers) {
    const auto add = [&](const std::string& name, auto f) {
      (*models)["integer/" + name + "." + t.name] = [t, f](const Operands& o) {
        return t.Code(f(t.Value(o[0]), t.Value(o[1])));
      };
    };
    add("add", [](Int a, Int b) { return a + b; });
    add("sub", [](Int a, Int b) { return a - b; });
    add("mul.lo", [](Int a, Int b) {
      return static_cast<Int>(static_cast<unsigned __int128>(a) * static_cast<unsigned __int128>(b));
    });
    add("mul.hi", [t](Int a, Int b) { return High(t, a, b); });
    add("min", [](Int a, Int b) { return a < b ? a : b; });
    add("max", [](Int a, Int b) { return a > b ? a : b; });
    const std::string name = t.name;
    (*models)["integer/mad.lo." + name] = [t](const Operands& o) {
      return t.Code(static_cast<Int>(static_cast<unsigned __int128>(t.Value(o[0])) *
                                     static_cast<unsigned __int128>(t.Value(o[1]))) +
                    t.Value(o[2]));
    };
    (*models)["integer/mad.hi." + name] = [t](const Operands& o) {
      return t.Code(High(t, t.Value(o[0]), t.Value(o[1])) + t.Value(o[2]));
    };
    (*models)["integer/sad." + name] = [t](const Operands& o) {
      const Int a = t.Value(o[0]), b = t.Value(o[1]);
      return t.Code(t.Value(o[2]) + (a < b ? b - a : a - b));
    };
    if (t.bits < 64) {
      (*models)["integer/mul.wide." + name] = [t](const Operands& o) {
        const uint64_t product = static_cast<uint64_t>(t.Value(o[0]) * t.Value(o[1]));
        return t.bits == 16 ? product & 0xffffffff : product;
      };
    }
    for (const IntegerType& from : kIntegers) {
      (*models)["conversion/cvt." + name + "." + from.name] = [t, from](const Operands& o) {
        return t.Code(from.Value(o[0]));
      };
      (*models)["conversion/cvt.sat." + name + "." + from.name] = [t, from](const Operands& o) {
        const Int v = from.Value(o[0]);
        return t.Code(v > t.Most() ? t.Most() : v < t.Least() ? t.Least() : v);
      };
    }
  }
}

class Rounding {
 public:
  explicit Rounding(int mode) : saved_(std::fegetround()) { std::fesetround(mode); }
  ~Rounding() { std::fesetround(saved_); }

 private:
  int saved_;
};

template <typename T, typename U>
T From(U word) {
  T value;
  std::memcpy(&value, &word, sizeof value);
  return value;
}

// A float's NaN is the canonical one; a double's only has to be one.
template <typename T>
uint64_t CodeOf(T value) {
  if (std::isnan(value)) return sizeof(T) == 4 ? 0x7fffffff : 0x7ff8000000000000u;
  uint64_t code = 0;
  std::memcpy(&code, &value, sizeof value);
  return code;
}

template <typename T>
void AddFloatModels(const std::string& type, std::map<std::string, Model>* models) {
  constexpr std::pair<const char*, int> kModes[] = {
      {"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};
  for (const auto& [word, mode] : kModes) {
    const auto add = [&, word = word, mode = mode](const std::string& name, auto f) {
      (*models)["float/" + name + "." + word + "." + type] = [f, mode](const Operands& o) {
        volatile T x[3] = {};
        for (size_t i = 0; i < o.size(); ++i) {
          x[i] = sizeof(T) == 4 ? From<T>(static_cast<uint32_t>(o[i])) : From<T>(o[i]);
        }
        Rounding scope(mode);
        volatile T result = f(x[0], x[1], x[2]);
        return CodeOf<T>(result);
      };
    };
    add("add", [](T a, T b, T) { return a + b; });
    add("sub", [](T a, T b, T) { return a - b; });
    add("mul", [](T a, T b, T) { return a * b; });
    add("div", [](T a, T b, T) { return a / b; });
    add("fma", [](T a, T b, T c) { return std::fma(a, b, c); });
    add("rcp", [](T a, T, T) { return T{1} / a; });
    add("sqrt", [](T a, T, T) { return std::sqrt(a); });
  }
}

TEST(Models, TheEmulatorAnswersAsTheHostComputes) {
  std::map<std::string, Model> models;
  AddIntegerModels(&models);
  AddFloatModels<float>("f32", &models);
  AddFloatModels<double>("f64", &models);
  std::vector<Case> cases;
  for (Case& c : AllCases()) {
    if (models.count(c.name) > 0) cases.push_back(std::move(c));
  }
  auto answers = RunOnEmulator(cases);
  ASSERT_TRUE(answers.ok()) << answers.status();
  int checked = 0;
  for (size_t i = 0; i < cases.size(); ++i) {
    const Case& c = cases[i];
    ASSERT_FALSE((*answers)[i].bytes.empty()) << c.name << ": " << (*answers)[i].why_not;
    ++checked;
    for (int t = 0; t < c.tuples; ++t) {
      Operands operands;
      for (const Value& value : c.operands) {
        uint64_t word = 0;
        std::memcpy(&word, c.input.data() + t * c.input_stride + value.offset,
                    static_cast<size_t>(BytesOf(value.type)));
        operands.push_back(word);
      }
      uint64_t got = 0;
      std::memcpy(&got, (*answers)[i].bytes.data() + t * c.answer_stride, static_cast<size_t>(c.answer_stride));
      if (c.results[0].type == "f64") got = CodeOf<double>(From<double>(got));
      ASSERT_EQ(got, models[c.name](operands)) << c.name << ", tuple " << t << ": " << std::hex << operands[0];
    }
  }
  EXPECT_GE(checked, 120);
}

}  // namespace
}  // namespace solstice::conformance
