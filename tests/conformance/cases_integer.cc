// Integer arithmetic; logic, shifts and bit fields; comparison and selection.
#include "tests/conformance/kernel.h"

namespace solstice::conformance {

void AddInteger(std::vector<Case>* cases) {
  AddRows("integer",
          {
              {"{add|sub|mul.lo|mul.hi|div|rem|min|max}.{u16|s16|u32|s32|u64|s64}", "[1]", "[1] [1]"},
              {"{add|sub}.sat.s32", "s32", "s32 s32"},
              {"{add|min|max}.{u16x2|s16x2}", "[1]", "[1] [1]"},
              {"{min|max}.relu.{s32|s16x2}", "[1]", "[1] [1]"},
              {"mul.wide.{u16|s16}", "b32", "[0] [0]"},
              {"mul.wide.{u32|s32}", "b64", "[0] [0]"},
              {"mul24.{lo|hi}.{u32|s32}", "[1]", "[1] [1]"},
              {"mad24.{lo|hi}.{u32|s32}", "[1]", "[1] [1] [1]"},
              {"mad24.hi.sat.s32", "s32", "s32 s32 s32"},
              {"mad.{lo|hi}.{u16|s16|u32|s32|u64|s64}", "[1]", "[1] [1] [1]"},
              {"mad.hi.sat.s32", "s32", "s32 s32 s32"},
              {"mad.wide.{u16|s16}", "b32", "[0] [0] b32"},
              {"mad.wide.{u32|s32}", "b64", "[0] [0] b64"},
              {"sad.{u16|s16|u32|s32|u64|s64}", "[0]", "[0] [0] [0]"},
              {"{abs|neg}.{s16|s32|s64}", "[1]", "[1]"},
              {"dp4a.{u32|s32}.{u32|s32}", "b32", "b32 b32 b32"},
              {"dp2a.{lo|hi}.{u32|s32}.{u32|s32}", "b32", "b32 b32 b32"},
              // The carry shows in a second instruction.
              {"{add|sub}.cc.{u32|u64}", "[1] [1]", "[1] [1]", "[0].cc.[1] %o0, %i0, %i1;\n  [0]c.[1] %o1, 0, 0;"},
              {"{add|sub}c.cc.u32", "u32 u32 u32", "u32 u32 u32",
               "[0].cc.u32 %o0, %i0, %i1;\n  [0]c.cc.u32 %o1, %i1, %i2;\n  [0]c.u32 %o2, %i2, %i0;"},
              {"mad.{lo|hi}.cc.{u32|s32|u64}", "[1] [1]", "[1] [1] [1]",
               "mad.[0].cc.[1] %o0, %i0, %i1, %i2;\n  addc.[1] %o1, 0, 0;"},
              {"madc.{lo|hi}.cc.u32", "u32 u32 u32", "u32 u32 u32",
               "add.cc.u32 %o0, %i0, %i1;\n  madc.[0].cc.u32 %o1, %i0, %i1, %i2;\n  addc.u32 %o2, 0, 0;"},
          },
          cases);
}

// Positions and lengths of all sizes, of which only bits 0 to 7 are said to count.
void AddWideFields(std::vector<Case>* cases) {
  const uint64_t a = 0xfedc'ba98'7654'3210, b = 0x0f1e'2d3c'4b5a'6978;
  const std::vector<uint64_t> sizes = {0,   5,   31,  32,  33,         40,         63,         64,        65,
                                       255, 256, 261, 296, 0x80000000, 0x80000005, 0xf5a0d718, 0xffffffff};
  std::vector<std::vector<uint64_t>> fields, insertions;
  for (const uint64_t position : sizes) {
    for (const uint64_t length : sizes) {
      if (fields.size() >= static_cast<size_t>(kMostTuples)) break;
      fields.push_back({a, position, length});
      insertions.push_back({b, a, position, length});
    }
  }
  for (const char* type : {"u32", "s32", "u64", "s64"}) {
    AddRow("bits",
           {std::string("bfe.") + type + " wide", type, std::string(type) + " u32 u32",
            std::string("bfe.") + type + " %o0, %i0, %i1, %i2;", kMostTuples},
           cases, fields);
  }
  for (const char* type : {"b32", "b64"}) {
    AddRow("bits",
           {std::string("bfi.") + type + " wide", type, std::string(type) + " " + type + " u32 u32",
            std::string("bfi.") + type + " %o0, %i0, %i1, %i2, %i3;", kMostTuples},
           cases, insertions);
  }
}

void AddBits(std::vector<Case>* cases) {
  AddWideFields(cases);
  AddRows("bits",
          {
              {"{and|or|xor}.{b16|b32|b64}", "[1]", "[1] [1]"},
              {"{and|or|xor}.pred", "pred", "pred pred", "", 32},
              {"{not|cnot}.{b16|b32|b64}", "[1]", "[1]"},
              {"not.pred", "pred", "pred", "", 32},
              {"{shl.b16|shr.u16|shr.s16}", "b16", "b16 shift"},
              {"{shl.b32|shr.u32|shr.s32}", "b32", "b32 shift"},
              {"{shl.b64|shr.u64|shr.s64}", "b64", "b64 shift"},
              {"shf.{l|r}.{wrap|clamp}.b32", "b32", "b32 b32 shift"},
              {"{popc|clz}.{b32|b64}", "u32", "[1]"},
              {"bfind{|.shiftamt}.{u32|s32|u64|s64}", "u32", "[1]"},
              {"brev.{b32|b64}", "[0]", "[0]"},
              {"bfe.{u32|s32|u64|s64}", "[0]", "[0] shift shift"},
              {"bfi.{b32|b64}", "[0]", "[0] [0] shift shift"},
              {"bmsk.{wrap|clamp}.b32", "b32", "shift shift"},
              {"szext.{wrap|clamp}.{u32|s32}", "[1]", "[1] shift"},
              {"fns.b32", "b32", "b32 shift s32"},
              {"lop3.b32 {0x00|0x80|0x96|0xca|0xe8|0x1b}", "b32", "b32 b32 b32", "lop3.b32 %o0, %i0, %i1, %i2, [0];"},
              {"prmt.b32{|.f4e|.b4e|.rc8|.ecl|.ecr|.rc16}", "b32", "b32 b32 b32"},
              {"mov.b64 2", "b32 b32 b64", "b64 b32 b32", "mov.b64 {%o0, %o1}, %i0;\n  mov.b64 %o2, {%i1, %i2};"},
              {"mov.b64 4", "b16 b16 b16 b16 b64", "b64 b16 b16 b16 b16",
               "mov.b64 {%o0, %o1, %o2, %o3}, %i0;\n  mov.b64 %o4, {%i1, %i2, %i3, %i4};"},
              {"mov.b32 2", "b16 b16 b32", "b32 b16 b16", "mov.b32 {%o0, %o1}, %i0;\n  mov.b32 %o2, {%i1, %i2};"},
          },
          cases);
}

void AddComparison(std::vector<Case>* cases) {
  AddRows("comparison",
          {
              {"setp.{eq|lt|ge}.{s16|s32|s64}", "pred", "[1] [1]"},
              {"setp.{ne|le|gt|lo|ls|hi|hs}.{u16|u32|u64}", "pred", "[1] [1]"},
              {"setp.{eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan}.f32", "pred", "f32 f32"},
              {"setp.{eq|lt|geu|num|nan}.f64", "pred", "f64 f64"},
              {"setp.{eq|lt|gtu|nan}.{f16|bf16}", "pred", "[1] [1]"},
              {"setp.{eq|lt|neu}.ftz.{f32|f16}", "pred", "[1] [1]"},
              {"setp.{lt|ne|num}.{f16x2|bf16x2}", "pred pred", "[1] [1]", "setp.[0].[1] %o0|%o1, %i0, %i1;"},
              {"setp.{lt|eq}.{and|or|xor}.{s32|f32}", "pred pred", "[2] [2] pred",
               "setp.[0].[1].[2] %o0|%o1, %i0, %i1, %i2;"},
              {"set.{lt|ne}.{u32|s32|f32}.{u32|s32|f32|f64}", "[1]", "[2] [2]"},
              {"set.{ge|equ}.{f16x2|u32}.f16x2", "b32", "f16x2 f16x2"},
              {"set.gt.and.u32.f32", "u32", "f32 f32 pred"},
              {"selp.{b16|b32|b64|f32|f64}", "[0]", "[0] [0] pred"},
              {"slct.{b32|f32|b64|b16}.{s32|f32}", "[0]", "[0] [0] [1]"},
              {"slct.ftz.b32.f32", "b32", "b32 b32 f32"},
              {"testp.{finite|infinite|number|notanumber|normal|subnormal}.{f32|f64}", "pred", "[1]"},
          },
          cases);
}

}  // namespace solstice::conformance
