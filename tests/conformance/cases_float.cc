// Floating-point arithmetic: correctly rounded, exact in every bit.
#include <string>
#include <vector>

#include "tests/conformance/kernel.h"

namespace solstice::conformance {
namespace {

std::vector<std::vector<uint64_t>> Combinations(const std::vector<uint64_t>& values, size_t count) {
  std::vector<std::vector<uint64_t>> tuples = {{}};
  for (size_t operand = 0; operand < count; ++operand) {
    std::vector<std::vector<uint64_t>> longer;
    for (const std::vector<uint64_t>& tuple : tuples) {
      for (const uint64_t value : values) {
        longer.push_back(tuple);
        longer.back().push_back(value);
      }
    }
    tuples = std::move(longer);
  }
  return tuples;
}

// A row with operands of its own. `note` tells its name from the others'.
void AddSpecial(const std::string& instruction, const char* note, const std::string& result,
                const std::string& operands, std::vector<Case>* cases,
                const std::vector<std::vector<uint64_t>>& input) {
  for (const Expanded& form : Alternatives(instruction)) {
    std::string text = form.text + " %o0";
    for (size_t i = 0; i < input[0].size(); ++i) text += ", %i" + std::to_string(i);
    AddRow("float", {form.text + " " + note, result, operands, text + ";", static_cast<int>(input.size())}, cases,
           input);
  }
}

// Which NaN comes out: quiet and signalling ones, of both signs, with and without a payload.
void AddNans(std::vector<Case>* cases) {
  const std::vector<uint64_t> doubles = {0x3ff0000000000000, 0x7ff0000000000000, 0x7ff8000000000001,
                                         0xfff8000000000005, 0x7ff0000000000003, 0xfff4000000000000,
                                         0x7fffffffffffffff, 0xfff8000000000000};
  const std::vector<std::vector<uint64_t>> one = Combinations(doubles, 1), two = Combinations(doubles, 2);
  std::vector<uint64_t> fewer(doubles.begin(), doubles.begin() + 6);
  AddSpecial("{add|sub|mul|div}.rn.f64", "NaN", "f64", "f64 f64", cases, two);
  AddSpecial("{min|max}.f64", "NaN", "f64", "f64 f64", cases, two);
  AddSpecial("fma.rn.f64", "NaN", "f64", "f64 f64 f64", cases, Combinations(fewer, 3));
  AddSpecial("{rcp.rn|sqrt.rn|abs|neg|cvt.rni.f64}.f64", "NaN", "f64", "f64", cases, one);
  AddSpecial("cvt.{rn|rz}{|.ftz|.sat}.f32.f64", "NaN", "f32", "f64", cases, one);
  AddSpecial("cvt.{rn|rz|rm}.{f16|bf16}.f64", "NaN", "b16", "f64", cases, one);
  const std::vector<std::vector<uint64_t>> floats =
      Combinations({0x7fc00001, 0xffc00005, 0x7f800003, 0xffa00000, 0x7fffffff, 0xffffffff, 0x7f800000, 0xff800000}, 1);
  AddSpecial("{rcp.rn|sqrt.rn|abs|neg|abs.ftz|neg.ftz|cvt.rni.f32|cvt.ftz.f32|cvt.sat.f32}.f32", "NaN", "f32", "f32",
             cases, floats);
  AddSpecial("cvt{|.ftz}.f64.f32", "NaN", "f64", "f32", cases, floats);
  AddSpecial("cvt.{rn|rz}{|.relu}{|.satfinite}.{f16|bf16}.f32", "NaN", "b16", "f32", cases, floats);
  AddSpecial("cvt.{rna|rna.satfinite|rn|rz|rn.relu|rz.relu}.tf32.f32", "NaN", "b32", "f32", cases, floats);
  const auto narrow = [&](const std::string& type, const std::vector<uint64_t>& values) {
    const std::vector<std::vector<uint64_t>> input = Combinations(values, 1);
    AddSpecial("{abs|neg}." + type, "NaN", "b16", type, cases, input);
    AddSpecial((type == "f16" ? "cvt{|.sat}.f32." : "cvt.f32.") + type, "NaN", "f32", type, cases, input);
    AddSpecial("cvt.f64." + type, "NaN", "f64", type, cases, input);
  };
  narrow("f16", {0x7e01, 0xfe05, 0x7c03, 0xfd00, 0x7fff, 0xffff, 0x7c00, 0xfc00});
  narrow("bf16", {0x7fc1, 0xffc5, 0x7f83, 0xffa0, 0x7fff, 0xffff, 0x7f80, 0xff80});
}

// Products and quotients just below the least normal number, some of which round up to it, where subnormals are
// flushed.
void AddFlushes(std::vector<Case>* cases) {
  const std::vector<std::vector<uint64_t>> products = {
      {0x3f7fffff, 0x00800000}, {0xbf7fffff, 0x00800000}, {0x3f7ffffe, 0x00800001}, {0x3f7fffff, 0x00800001},
      {0x3f000000, 0x00ffffff}, {0xbf000000, 0x00ffffff}, {0x3f000001, 0x00fffffe}, {0x3f000000, 0x01000000},
      {0x3f000000, 0x00fffffe}, {0x3f7ffff0, 0x00800000}, {0x2f7fffff, 0x10800000}, {0xaf7fffff, 0x10800000}};
  std::vector<std::vector<uint64_t>> sums;
  for (const std::vector<uint64_t>& product : products) {
    for (const uint64_t c : {0x00000000u, 0x80000000u, 0x00800000u, 0x80800000u, 0x81000000u}) {
      sums.push_back({product[0], product[1], c});
    }
  }
  const std::vector<std::vector<uint64_t>> quotients = {
      {0x00800000, 0x3f800001}, {0x80800000, 0x3f800001}, {0x00ffffff, 0x40000000}, {0x80ffffff, 0x40000000},
      {0x00fffffe, 0x40000000}, {0x00800001, 0x3f800002}, {0x00800001, 0x3f800001}, {0x10ffffff, 0x50000000},
      {0x00800000, 0x3f800000}, {0x00ffffff, 0x3fffffff}, {0x00fffffe, 0x3fffffff}, {0x80fffffe, 0x3fffffff}};
  AddSpecial("mul.{rn|rz|rm|rp}.ftz.f32", "at the least normal", "f32", "f32 f32", cases, products);
  AddSpecial("fma.{rn|rz|rm|rp}.ftz.f32", "at the least normal", "f32", "f32 f32 f32", cases, sums);
  AddSpecial("div.{rn|rz|rm|rp}.ftz.f32", "at the least normal", "f32", "f32 f32", cases, quotients);
  AddSpecial("rcp.{rn|rz|rm|rp}.ftz.f32", "at the least normal", "f32", "f32", cases,
             Combinations({0x7e800001, 0xfe800001, 0x7e800000, 0x7e7fffff, 0x7e800002, 0x7f000000, 0x7f7fffff}, 1));
  AddSpecial("cvt.{rn|rz|rm|rp}.ftz.f32.f64", "at the least normal", "f32", "f64", cases,
             Combinations({0x380fffffffffffff, 0xb80fffffffffffff, 0x380ffffff0000000, 0x380fffffe0000000,
                           0x380fffffefffffff, 0x3810000000000000, 0xb80ffffff0000000},
                          1));
}

}  // namespace

void AddFloat(std::vector<Case>* cases) {
  AddRows("float",
          {
              {"{add|sub|mul}.{rn|rz|rm|rp}.{f32|f64}", "[2]", "[2] [2]"},
              {"{add|mul}.{rn|rz|rm|rp}.ftz.f32", "f32", "f32 f32"},
              {"{add|sub|mul}.rn{.sat|.ftz.sat}.f32", "f32", "f32 f32"},
              {"fma.{rn|rz|rm|rp}.{f32|f64}", "[1]", "[1] [1] [1]"},
              {"fma.{rn|rz|rm|rp}{.ftz|.sat|.ftz.sat}.f32", "f32", "f32 f32 f32"},
              {"div.{rn|rz|rm|rp}.{f32|f64}", "[1]", "[1] [1]"},
              {"div.{rn|rp}.ftz.f32", "f32", "f32 f32"},
              {"{rcp|sqrt}.{rn|rz|rm|rp}.{f32|f64}", "[2]", "[2]"},
              {"{rcp|sqrt}.{rn|rm}.ftz.f32", "f32", "f32"},
              {"{abs|neg}.{f16|bf16|f32|f64|f16x2|bf16x2}", "[1]", "[1]"},
              {"{abs|neg}.ftz.{f32|f16|f16x2}", "[1]", "[1]"},
              {"copysign.{f32|f64}", "[0]", "[0] [0]"},
              {"{min|max}.{f16|bf16|f32|f64|f16x2|bf16x2}", "[1]", "[1] [1]"},
              {"{min|max}.NaN.{f16|bf16|f32|f16x2|bf16x2}", "[1]", "[1] [1]"},
              {"{min|max}.ftz.{f16|f32|f16x2}", "[1]", "[1] [1]"},
              {"{min|max}.ftz.NaN.f32", "f32", "f32 f32"},
              {"{min|max}{|.NaN}.xorsign.abs.{f16|bf16|f32|f16x2|bf16x2}", "[2]", "[2] [2]"},
              {"{add|sub|mul}.rn.{f16|bf16|f16x2|bf16x2}", "[1]", "[1] [1]"},
              {"{add|sub|mul}.rn{.ftz|.sat|.ftz.sat}.{f16|f16x2}", "[2]", "[2] [2]"},
              {"fma.rn.{f16|bf16|f16x2|bf16x2}", "[0]", "[0] [0] [0]"},
              {"fma.rn.relu.{f16|bf16|f16x2|bf16x2}", "[0]", "[0] [0] [0]"},
              {"fma.rn{.ftz|.sat|.ftz.relu}.{f16|f16x2}", "[1]", "[1] [1] [1]"},
          },
          cases);
  AddNans(cases);
  AddFlushes(cases);
}

}  // namespace solstice::conformance
