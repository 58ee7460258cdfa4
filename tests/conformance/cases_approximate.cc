// Approximate functions, with the bounds that the PTX manual states for them. A bound holds where the manual states it:
// arguments are drawn from there, and from the special values.
#include <cmath>
#include <random>

#include "tests/conformance/kernel.h"
#include "tests/conformance/operands.h"

namespace solstice::conformance {
namespace {

// Special values and `count - 8` values spread evenly over [low, high], as operands of `type`.
std::vector<std::vector<uint64_t>> Spread(const std::string& type, double low, double high, int count) {
  const FloatFormat& format = *FormatOf(type);
  std::mt19937_64 random(Hash(type.data(), type.size()));
  std::vector<std::vector<uint64_t>> tuples;
  for (const double special : {0.0, -0.0, HUGE_VAL, -HUGE_VAL, std::nan(""), 1.0, 0.5, 0x1p-20}) {
    tuples.push_back({EncodeValue(special, format)});
  }
  while (tuples.size() < static_cast<size_t>(count)) {
    const double part = static_cast<double>(random() >> 11) * 0x1p-53;
    tuples.push_back({EncodeValue(low + (high - low) * part, format)});
  }
  if (type.size() > 2 && type[type.size() - 2] == 'x') {
    const size_t others = tuples.size();
    for (size_t i = 0; i < others; ++i)
      tuples[i][0] |= EncodeValue(low + (high - low) * static_cast<double>(i) / static_cast<double>(others), format)
                      << 16;
  }
  return tuples;
}

}  // namespace

void AddApproximate(std::vector<Case>* cases) {
  using Kind = Bound::Kind;
  const auto relative = [](double value, const char* meaning) { return Bound{Kind::kRelative, value, meaning}; };
  const auto absolute = [](double value, const char* meaning) { return Bound{Kind::kAbsolute, value, meaning}; };
  const auto ulps = [](double value, const char* meaning) { return Bound{Kind::kUlps, value, meaning}; };
  constexpr int kCount = 128;
  AddRows("approximate",
          {
              {"rcp.approx{|.ftz}.f32", "f32", "f32", "", 0, "", relative(0x1p-23, "maximum relative error 2^-23")},
              {"sqrt.approx{|.ftz}.f32", "f32", "f32", "", 0, "", relative(0x1p-23, "maximum relative error 2^-23")},
              {"rsqrt.approx{|.ftz}.f32", "f32", "f32", "", 0, "",
               relative(std::exp2(-22.9), "maximum relative error 2^-22.9 over the positive finite range")},
              {"div.approx{|.ftz}.f32", "f32", "f32 f32", "", 0, "",
               ulps(2, "2 ulp for divisors of magnitude 2^-126 to 2^126")},
              {"div.full{|.ftz}.f32", "f32", "f32 f32", "", 0, "", ulps(2, "2 ulp over the full range")},
              {"lg2.approx{|.ftz}.f32", "f32", "f32", "", 0, "",
               Bound{Kind::kEither, 0x1p-22, "absolute error 2^-22 from 0.5 to 2, relative error 2^-22 elsewhere"}},
              {"ex2.approx{|.ftz}.f32", "f32", "f32", "", 0, "", relative(0x1p-22, "maximum relative error 2^-22")},
              {"tanh.approx.f32", "f32", "f32", "", 0, "", relative(0x1p-11, "maximum relative error 2^-11")},
              {"tanh.approx.{f16|f16x2}", "[0]", "[0]", "", 0, "",
               absolute(std::exp2(-10.987), "maximum absolute error 2^-10.987")},
              {"tanh.approx.{bf16|bf16x2}", "[0]", "[0]", "", 0, "", absolute(0x1p-8, "maximum absolute error 2^-8")},
              {"{rcp|rsqrt}.approx.ftz.f64", "f64", "f64", "", 0, "",
               relative(0x1p-20, "made of the upper 32 bits of the operand; 20 bits of the mantissa")},
          },
          cases);
  const Bound half_power = relative(std::exp2(-9.9), "maximum relative error 2^-9.9"),
              brain_power = relative(0x1p-7, "maximum relative error 2^-7");
  for (const char* type : {"f16", "f16x2"}) {
    AddRow("approximate", {std::string("ex2.approx.") + type, type, type, "", kCount, "", half_power}, cases,
           Spread(type, -24, 15, kCount));
  }
  for (const char* type : {"bf16", "bf16x2"}) {
    AddRow("approximate", {std::string("ex2.approx.ftz.") + type, type, type, "", kCount, "", brain_power}, cases,
           Spread(type, -120, 120, kCount));
  }
  for (const char* function : {"sin", "cos"}) {
    for (const char* ftz : {"", ".ftz"}) {
      const std::string name = std::string(function) + ".approx" + ftz + ".f32";
      AddRow("approximate",
             {name, "f32", "f32", "", kCount, "",
              absolute(std::exp2(-20.5), "maximum absolute error 2^-20.5 from -2 pi to 2 pi")},
             cases, Spread("f32", -2 * M_PI, 2 * M_PI, kCount));
      AddRow("approximate",
             {name + " to 100 pi", "f32", "f32", name + " %o0, %i0;", kCount, "",
              absolute(std::exp2(-14.7), "maximum absolute error 2^-14.7 from -100 pi to 100 pi")},
             cases, Spread("f32", -100 * M_PI, 100 * M_PI, kCount));
    }
  }
}

}  // namespace solstice::conformance
