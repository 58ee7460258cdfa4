// Which instructions the emulator executes, and which it refuses by name, class by class of the PTX ISA.
#include <string>
#include <vector>

#include "runtime/device/emulator/decode.h"
#include "runtime/device/emulator/emulator_test_support.h"
#include "runtime/ptx/module.h"

namespace solstice::device {
namespace {

// "add.<u16|s16> a; b" as "add.u16 a", "add.s16 a" and "b". An empty choice takes the dot before it along.
std::vector<std::string> Expand(const std::string& text) {
  std::vector<std::string> done, todo;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(';', at), text.size());
    const std::string one = text.substr(at, end - at);
    if (one.find_first_not_of(" \n") != std::string::npos) todo.push_back(one.substr(one.find_first_not_of(" \n")));
    at = end + 1;
  }
  while (!todo.empty()) {
    const std::string one = todo.back();
    todo.pop_back();
    const size_t open = one.find('<'), close = one.find('>');
    if (open == std::string::npos) {
      done.push_back(one);
      continue;
    }
    const std::string choices = one.substr(open + 1, close - open - 1) + "|";
    for (size_t at = 0; at < choices.size();) {
      const size_t end = choices.find('|', at);
      std::string before = one.substr(0, open);
      if (end == at && !before.empty() && before.back() == '.') before.pop_back();
      todo.push_back(before + choices.substr(at, end - at) + one.substr(close + 1));
      at = end + 1;
    }
  }
  return done;
}

// What the decoder says of a kernel that holds one instruction: "" if it is executed.
std::string Refusal(const std::string& instruction) {
  const std::string ptx = ".version 9.0\n.target sm_100a\n.address_size 64\n" + std::string(R"(
.global .align 16 .b8 g[4096];
.const .align 16 .b8 k[64];
.func (.param .b32 out) callee(.param .b32 in) { ret; }
.visible .entry k0(.param .u64 p)
{
  .reg .pred %p<8>;
  .reg .b16 %h<10>;
  .reg .b32 %r<20>;
  .reg .b64 %d<10>;
  .reg .b128 %x<4>;
  .reg .f32 %f<10>;
  .reg .f64 %e<4>;
  .shared .align 16 .b8 s[4096];
  .local .align 16 .b8 l[64];
  .param .b32 a0;
  .param .b32 a1;
  T: .branchtargets L0, L1;
  P: .callprototype (.param .b32 _) _ (.param .b32 _);
  C: .calltargets callee;
L0:
)") + instruction + ";\nL1:\n  ret;\n}\n";
  auto module = ptx::Parse(ptx);
  if (!module.ok()) return module.status().ToString();
  const std::map<std::string, uint64_t> addresses = {{"\ng", 0x7000'0000'0000}, {"\nk", 0x7100'0000'0000}};
  return DecodeEntry(*module, *module->FindFunction("k0"), addresses, BestIsa())->unsupported;
}

struct Row {
  const char* name;
  const char* instructions;
};

constexpr Row kExecuted[] = {
    {"Integer", R"(
      <add|sub|div|rem|min|max>.<u16|s16> %h0, %h1, %h2; <add|sub|div|rem|min|max>.<u32|s32> %r0, %r1, -7;
      <add|sub|div|rem|min|max>.<u64|s64> %d0, %d1, %d2; <add|min|max>.<u16x2|s16x2> %r0, %r1, %r2;
      <add|sub>.sat.s32 %r0, %r1, %r2; <min|max>.relu.<s32|s16x2> %r0, %r1, %r2; mul.<lo|hi>.<u16|s16> %h0, %h1, %h2;
      mul.<lo|hi>.<u32|s32> %r0, %r1, %r2; mul.<lo|hi>.<u64|s64> %d0, %d1, %d2; mul.wide.<u16|s16> %r0, %h1, %h2;
      mul.wide.<u32|s32> %d0, %r1, 12; mad.<lo|hi>.<u16|s16> %h0, %h1, %h2, %h3;
      mad.<lo|hi>.<u32|s32> %r0, %r1, %r2, %r3; mad.<lo|hi>.<u64|s64> %d0, %d1, %d2, %d3;
      mad.wide.<u16|s16> %r0, %h1, %h2, %r3; mad.wide.<u32|s32> %d0, %r1, %r2, %d3; mad.hi.sat.s32 %r0, %r1, %r2, %r3;
      mul24.<lo|hi>.<u32|s32> %r0, %r1, %r2; mad24.<lo|hi|hi.sat>.s32 %r0, %r1, %r2, %r3;
      mad24.<lo|hi>.u32 %r0, %r1, %r2, %r3; sad.<u16|s16> %h0, %h1, %h2, %h3; sad.<u32|s32> %r0, %r1, %r2, %r3;
      sad.<u64|s64> %d0, %d1, %d2, %d3; <abs|neg>.s16 %h0, %h1; <abs|neg>.s32 %r0, %r1; <abs|neg>.s64 %d0, %d1;
      <popc|clz|brev>.b32 %r0, %r1; <popc|clz>.b64 %r0, %d1; brev.b64 %d0, %d1; bfind.<shiftamt|>.<u32|s32> %r0, %r1;
      bfind.<shiftamt|>.<u64|s64> %r0, %d1; fns.b32 %r0, %r1, %r2, -3; bfe.<u32|s32> %r0, %r1, %r2, 8;
      bfe.<u64|s64> %d0, %d1, %r2, %r3; bfi.b32 %r0, %r1, %r2, 4, %r3; bfi.b64 %d0, %d1, %d2, %r3, %r4;
      szext.<clamp|wrap>.<u32|s32> %r0, %r1, %r2; bmsk.<clamp|wrap>.b32 %r0, %r1, %r2;
      dp4a.<u32|s32>.<u32|s32> %r0, %r1, %r2, %r3; dp2a.<lo|hi>.<u32|s32>.<u32|s32> %r0, %r1, %r2, %r3)"},
    {"ExtendedPrecision", R"(
      <add.cc|addc|addc.cc|sub.cc|subc|subc.cc>.<u32|s32> %r0, %r1, %r2;
      <add.cc|addc|addc.cc|sub.cc|subc|subc.cc>.<u64|s64> %d0, %d1, %d2;
      <mad.lo.cc|mad.hi.cc|madc.lo|madc.hi|madc.lo.cc|madc.hi.cc>.<u32|s32> %r0, %r1, %r2, %r3;
      <mad.lo.cc|mad.hi.cc|madc.lo|madc.hi|madc.lo.cc|madc.hi.cc>.<u64|s64> %d0, %d1, %d2, %d3)"},
    {"Floating", R"(
      testp.<finite|infinite|number|notanumber|normal|subnormal>.f32 %p0, %f1; testp.normal.f64 %p0, %e1;
      copysign.f32 %f0, %f1, %f2; copysign.f64 %e0, %e1, %e2;
      <add|sub|mul>.<rn|rz|rm|rp|>.<ftz|>.<sat|>.f32 %f0, %f1, 0f3F800000;
      <add|sub|mul>.<rn|rz|rm|rp|>.f64 %e0, %e1, %e2; <add|sub|mul>.<rn|rz|rm|rp|>.<ftz|>.f32x2 %d0, %d1, %d2;
      fma.<rn|rz|rm|rp>.<ftz|>.f32x2 %d0, %d1, %d2, %d3; <fma|mad>.<rn|rz|rm|rp>.<ftz|>.<sat|>.f32 %f0, %f1, %f2, %f3;
      <fma|mad>.<rn|rz|rm|rp>.f64 %e0, %e1, %e2, %e3; div.<approx|full|rn|rz|rm|rp>.<ftz|>.f32 %f0, %f1, %f2;
      div.<rn|rz|rm|rp>.f64 %e0, %e1, %e2; <abs|neg>.<ftz|>.f32 %f0, %f1; <abs|neg>.f64 %e0, %e1;
      <min|max>.<ftz|>.<NaN|>.<xorsign.abs|>.f32 %f0, %f1, %f2; <min|max>.f64 %e0, %e1, %e2;
      <min|max>.<ftz|>.<NaN|>.<abs|>.f32 %f0, %f1, %f2, %f3; <rcp|sqrt>.<approx|rn|rz|rm|rp>.<ftz|>.f32 %f0, %f1;
      <rcp|sqrt>.<rn|rz|rm|rp>.f64 %e0, %e1; rsqrt.approx.<ftz|>.f32 %f0, %f1; <rcp|rsqrt>.approx.ftz.f64 %e0, %e1;
      rsqrt.approx.f64 %e0, %e1; <sin|cos|lg2|ex2>.approx.<ftz|>.f32 %f0, %f1; tanh.approx.f32 %f0, %f1)"},
    {"Half", R"(
      <add|sub|mul>.<rn|>.<ftz|>.<sat|>.f16 %h0, %h1, %h2; <add|sub|mul>.<rn|>.<ftz|>.<sat|>.f16x2 %r0, %r1, %r2;
      <add|sub|mul>.<rn|>.bf16 %h0, %h1, %h2; <add|sub|mul>.<rn|>.bf16x2 %r0, %r1, %r2;
      fma.rn.<ftz|>.<sat|relu|>.f16 %h0, %h1, %h2, %h3; fma.rn.<ftz|>.<sat|relu|>.f16x2 %r0, %r1, %r2, %r3;
      fma.rn.<relu|>.bf16 %h0, %h1, %h2, %h3; fma.rn.<relu|>.bf16x2 %r0, %r1, %r2, %r3; <abs|neg>.<ftz|>.f16 %h0, %h1;
      <abs|neg>.<ftz|>.f16x2 %r0, %r1; <abs|neg>.bf16 %h0, %h1; <abs|neg>.bf16x2 %r0, %r1;
      <min|max>.<ftz|>.<NaN|>.<xorsign.abs|>.f16 %h0, %h1, %h2; <min|max>.<NaN|>.<xorsign.abs|>.bf16 %h0, %h1, %h2;
      <min|max>.<ftz|>.<NaN|>.<xorsign.abs|>.f16x2 %r0, %r1, %r2;
      <min|max>.<NaN|>.<xorsign.abs|>.bf16x2 %r0, %r1, %r2; <tanh.approx|ex2.approx>.f16 %h0, %h1;
      <tanh.approx|ex2.approx>.f16x2 %r0, %r1; <tanh.approx|ex2.approx.ftz>.bf16 %h0, %h1;
      <tanh.approx|ex2.approx.ftz>.bf16x2 %r0, %r1; <add|sub>.<rn|rz|rm|rp|>.<sat|>.f32.<f16|bf16> %f0, %h1, %f2;
      fma.<rn|rz|rm|rp>.<sat|>.f32.<f16|bf16> %f0, %h1, %h2, %f3)"},
    {"Comparison", R"(
      setp.<eq|ne|lt|le|gt|ge|lo|ls|hi|hs>.u32 %p0|%p1, %r1, %r2; setp.<eq|ne>.<b16|u16|s16> %p0, %h1, %h2;
      setp.lt.<u64|s64> %p0, %d1, %d2; setp.ne.b64 %p0, %d1, 0; setp.lt.and.s32 %p0|%p1, %r1, %r2, !%p2;
      setp.ge.<or|xor>.u64 %p0, %d1, 5, %p2;
      setp.<eq|ne|lt|le|gt|ge|equ|neu|ltu|leu|gtu|geu|num|nan>.<ftz|>.f32 %p0, %f1, %f2; setp.ltu.f64 %p0, %e1, %e2;
      setp.<lt|nan>.<ftz|>.f16 %p0, %h1, %h2; setp.<lt|nan>.<ftz|>.f16x2 %p0|%p1, %r1, %r2;
      setp.neu.and.f16x2 %p0|%p1, %r1, %r2, %p3; setp.<lt|nan>.bf16 %p0, %h1, %h2;
      setp.<lt|nan>.bf16x2 %p0|%p1, %r1, %r2; set.<lt|ne>.<u32|s32>.<u32|s32> %r0, %r1, %r2;
      set.ne.<u32|s32>.b32 %r0, %r1, %r2; set.lt.f32.s32 %f0, %r1, %r2; set.lt.and.<u32|s32>.f32 %r0, %f1, %f2, %p0;
      set.gtu.ftz.f32.f32 %f0, %f1, %f2; set.gt.u32.f64 %r0, %e1, %e2; set.gt.u32.<u64|s64> %r0, %d1, %d2;
      set.gt.<f16|u16|s16>.f16 %h0, %h1, %h2; set.gt.f16.<u16|s16> %h0, %h1, %h2; set.eq.f16.b16 %h0, %h1, %h2;
      set.gt.<u32|s32>.<f16|bf16> %r0, %h1, %h2; set.lt.bf16.bf16 %h0, %h1, %h2; set.lt.f16.f32 %h0, %f1, %f2;
      set.lt.f16.s32 %h0, %r1, %r2; set.<lt|nan>.f16x2.f16x2 %r0, %r1, %r2; set.lt.bf16x2.bf16x2 %r0, %r1, %r2;
      set.lt.<u32|s32>.<f16x2|bf16x2> %r0, %r1, %r2; selp.<b16|u16|s16> %h0, %h1, %h2, %p0;
      selp.<b32|u32|s32> %r0, %r1, 0, %p0; selp.f32 %f0, %f1, 0f00000000, %p0;
      selp.<b64|u64|s64|f64> %d0, %d1, %d2, %p0; slct.<b16|u16|s16>.s32 %h0, %h1, %h2, %r3;
      slct.<b32|u32|s32|f32>.s32 %r0, %r1, %r2, %r3; slct.<b64|u64|s64|f64>.<ftz|>.f32 %d0, %d1, %d2, %f3;
      slct.<ftz|>.f32.f32 %f0, %f1, %f2, %f3)"},
    {"Logic", R"(
      <and|or|xor>.pred %p0, %p1, %p2; <and|or|xor>.b16 %h0, %h1, %h2; <and|or|xor>.b32 %r0, %r1, 255;
      <and|or|xor>.b64 %d0, %d1, %d2; not.pred %p0, %p1; <not|cnot>.b16 %h0, %h1; <not|cnot>.b32 %r0, %r1;
      <not|cnot>.b64 %d0, %d1; lop3.b32 %r0, %r1, %r2, %r3, 0x96; lop3.<or|and>.b32 %r0|%p0, %r1, %r2, %r3, 0x96, %p1;
      lop3.or.b32 _|%p0, %r1, %r2, %r3, 0x96, !%p1; shf.<l|r>.<clamp|wrap>.b32 %r0, %r1, %r2, %r3;
      shl.b16 %h0, %h1, %r2; shl.b32 %r0, %r1, 3; shl.b64 %d0, %d1, %r2; shr.<b16|u16|s16> %h0, %h1, %r2;
      shr.<b32|u32|s32> %r0, %r1, %r2; shr.<b64|u64|s64> %d0, %d1, %r2;
      prmt.b32.<f4e|b4e|rc8|ecl|ecr|rc16|> %r0, %r1, %r2, %r3)"},
    {"Convert", R"(
      cvt.<u8|s8|u16|s16|u32|s32|u64|s64>.<u8|s8|u16|s16|u32|s32|u64|s64> %d0, %d1;
      cvt.sat.<u8|s8|u16|s16>.<u32|s32> %h0, %r1; cvt.sat.u32.s64 %r0, %d1; cvt.<rn|rz|rm|rp>.f32.<u32|s32> %f0, %r1;
      cvt.<rn|rz|rm|rp>.f64.<u64|s64> %e0, %d1; cvt.rn.f32.<u8|s8|u16|s16> %f0, %h1; cvt.rn.f16.<u16|s16> %h0, %h1;
      cvt.rn.<f16|bf16>.<u32|s32> %h0, %r1; cvt.rn.bf16.<u64|s64> %h0, %d1;
      cvt.<rni|rzi|rmi|rpi>.<ftz|>.<sat|>.<u32|s32>.f32 %r0, %f1;
      cvt.<rni|rzi|rmi|rpi>.<u8|s8|u16|s16|u64|s64>.f32 %d0, %f1; cvt.rzi.<u32|s32>.<f16|bf16> %r0, %h1;
      cvt.rzi.<u64|s64>.f64 %d0, %e1; cvt.<rni|rzi|rmi|rpi>.<ftz|>.<sat|>.f32.f32 %f0, %f1;
      cvt.<rni|rzi>.f64.f64 %e0, %e1; cvt.<rni|rzi|rmi|rpi>.<f16.f16|bf16.bf16> %h0, %h1; cvt.<ftz|>.f64.f32 %e0, %f1;
      cvt.<rn|rz|rm|rp>.<ftz|>.<sat|>.f32.f64 %f0, %e1; cvt.<sat|>.f32.f16 %f0, %h1; cvt.f32.bf16 %f0, %h1;
      cvt.f64.<f16|bf16> %e0, %h1; cvt.rn.<f16|bf16>.f64 %h0, %e1; cvt.<rn|rz|rm|rp>.<f16|bf16>.f32 %h0, %f1;
      cvt.rn.<relu|satfinite|relu.satfinite>.<f16|bf16>.f32 %h0, %f1; cvt.rn.f16.bf16 %h0, %h1;
      cvt.rn.bf16.f16 %h0, %h1; cvt.<rn|rz>.<relu|>.<satfinite|>.<f16x2|bf16x2>.f32 %r0, %f1, %f2;
      cvt.<rn|rz|rna>.<satfinite|>.tf32.f32 %r0, %f1; cvt.rn.relu.tf32.f32 %r0, %f1;
      cvt.rn.satfinite.<relu|>.<e4m3x2|e5m2x2|e2m3x2|e3m2x2>.f32 %h0, %f1, %f2;
      cvt.rn.satfinite.<relu|>.<e4m3x2|e5m2x2>.f16x2 %h0, %r1;
      cvt.rn.<relu|>.f16x2.<e4m3x2|e5m2x2|e2m3x2|e3m2x2> %r0, %h1; cvt.<rz|rp>.<satfinite|>.ue8m0x2.f32 %h0, %f1, %f2;
      cvt.<rz|rp>.<satfinite|>.ue8m0x2.bf16x2 %h0, %r1; cvt.rn.bf16x2.ue8m0x2 %r0, %h1;
      cvt.pack.sat.<u16|s16>.s32 %r0, %r1, %r2; cvt.pack.sat.<u8|s8|u4|s4|u2|s2>.s32.b32 %r0, %r1, %r2, %r3)"},
    {"Move", R"(
      mov.<b16|u16|s16> %h0, 12; mov.<b32|u32|s32> %r0, %r1; mov.<b32|f32> %f0, %f1; mov.<b64|u64|s64> %d0, %d1;
      mov.<b64|f64> %e0, %e1; mov.b128 %x0, %x1; mov.pred %p0, %p1; mov.u64 %d0, g; mov.u32 %r0, s;
      mov.u64 %d0, callee; mov.b64 %d0, l+4; mov.b32 %r0, {%h0, %h1}; mov.b32 {%h0, _}, %r0; mov.b64 %d0, {%r0, %r1};
      mov.b64 {%r0, %r1}, %d0; mov.b64 {%h0, %h1, %h2, %h3}, %d0; mov.b128 %x0, {%d0, %d1}; mov.b128 {%d0, %d1}, %x0;
      mov.b128 %x0, {%r0, %r1, %r2, %r3}; mov.b128 {%r0, %r1, %r2, %r3}, %x0;
      cvta.<global|shared|shared::cta|local|const|param>.u64 %d0, %d1;
      cvta.to.<global|shared|local|const|param>.u64 %d0, %d1; cvta.global.u64 %d0, g; cvta.shared.u64 %d0, s;
      isspacep.<global|shared|shared::cta|local|const|param|param::entry> %p0, %d1;
      prefetch.<global|local|>.<L1|L2> [%d1]; prefetch.global.L2::evict_<last|normal> [%d1]; prefetchu.L1 [%d1];
      applypriority.<global|>.L2::evict_normal [%d1], 128; discard.<global|>.L2 [%d1], 128;
      createpolicy.fractional.L2::evict_<last|first|normal|unchanged>.b64 %d0, 0f3F800000;
      createpolicy.fractional.L2::evict_last.L2::evict_unchanged.b64 %d0, 0f3F000000;
      createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %d0, [%d1], 4096, 8192;
      createpolicy.cvt.L2.b64 %d0, 0; createpolicy.fractional.L2::evict_first.b64 %d0)"},
    {"Memory", R"(
      ld.<global|shared|shared::cta|local|const|param|>.<u8|s8|b8> %r0, [%d1];
      ld.<global|shared>.<u16|s16|b16> %h0, [%d1+2]; ld.global.v2.<b8|u8> {%h0, %h1}, [%d1];
      ld.global.v4.<b8|s8> {%h0, %h1, %h2, %h3}, [%d1]; ld.global.v2.<u64|f64|b64> {%d2, %d3}, [%d1];
      ld.global.v4.<f32|b32|u32|s32> {%r0, %r1, %r2, %r3}, [%d1+16];
      ld.global.v8.<b32|f32> {%r0, %r1, %r2, %r3, %r4, _, _, %r7}, [%d1];
      ld.global.v4.b64 {%d2, %d3, %d4, %d5}, [%d1]; ld.<global|shared>.b128 %x0, [%d1];
      ld.global.nc.<L1::no_allocate|L1::evict_last|>.<L2::128B|>.v4.u32 {%r0, %r1, %r2, %r3}, [%d1];
      ld.global.L1::evict_first.L2::cache_hint.u32 %r0, [%d1], %d2;
      ld.global.L2::evict_last.L2::256B.v8.b32 {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}, [%d1];
      ld.<weak|volatile>.shared.u32 %r0, [s+4]; ld.<relaxed|acquire>.<cta|cluster|gpu|sys>.global.u32 %r0, [%d1];
      ld.mmio.relaxed.sys.global.u32 %r0, [%d1]; ld.global.<ca|cg|cs|lu|cv>.u32 %r0, [%d1];
      ldu.global.<u32|f32> %r0, [%d1]; ld.global.nc.b128 %x0, [%d1]; ld.param::entry.u64 %d0, [p];
      ld.param::func.b32 %r0, [a0]; st.param::func.b32 [a0], %r0; ld.local.b32 %r0, [l+8]; ld.const.b32 %r0, [k+8];
      st.<global|shared|local|>.<u8|b8|s8> [%d1], %r0; st.global.v4.f32 [%d1], {%f0, %f1, %f2, 0f00000000};
      st.global.v8.b32 [%d1], {%r0, %r1, %r2, %r3, %r4, %r5, %r6, %r7}; st.global.v4.b64 [%d1], {%d2, %d3, %d4, %d5};
      st.shared.b128 [%d1], %x0; st.global.<wb|cg|cs|wt>.u16 [%d1], %h0;
      st.global.L1::no_allocate.L2::cache_hint.u32 [%d1], %r0, %d2;
      st.<relaxed|release>.<cta|gpu|sys>.global.u32 [%d1], %r0; st.mmio.relaxed.sys.global.u32 [%d1], %r0;
      st.volatile.global.u64 [%d1], 0; st.bulk.<weak|>.shared::cta [%d1], %d2, 0; st.bulk [%d1], 64, 0;
      membar.<cta|gl|sys>; fence.<sc|acq_rel|acquire|release>.<cta|cluster|gpu|sys>;
      fence.mbarrier_init.release.cluster; fence.proxy.<alias|async|async.global|async.shared::cta>)"},
    {"Atomic", R"(
      atom.<relaxed.gpu|acq_rel.sys|acquire.cta|>.<global|shared|shared::cta|>.<add|min|max>.<u32|s32> %r0, [%d1], %r1;
      atom.<global|shared|>.<and|or|xor|exch>.b32 %r0, [%d1], 3; atom.global.<inc|dec>.u32 %r0, [%d1], %r2;
      atom.<global|shared>.<min|max>.<u64|s64> %d0, [%d1], %d2; atom.<global|shared>.add.u64 %d0, [%d1], %d2;
      atom.global.<and|or|xor|exch>.b64 %d0, [%d1], %d2; atom.cas.b16 %h0, [%d1], %h1, %h2;
      atom.global.cas.b32 %r0, [%d1], %r1, %r2; atom.cas.b64 %d0, [%d1], %d2, %d3; atom.exch.b128 %x0, [%d1], %x1;
      atom.global.cas.b128 %x0, [%d1], %x1, %x2; atom.shared.exch.b128 _, [s], %x1;
      atom.<global|shared>.add.f32 %f0, [%d1], %f2; atom.global.add.f64 %e0, [%d1], %e2;
      atom.add.noftz.<f16|bf16> %h0, [%d1], %h2; atom.add.noftz.<f16x2|bf16x2> %r0, [%d1], %r2;
      atom.global.v2.f32.add {%f0, %f1}, [%d1], {%f2, %f3};
      atom.global.add.v4.f32 {%f0, _, %f1, %f2}, [%d1], {%f2, %f3, %f4, %f5};
      atom.global.<add|min|max>.noftz.v2.f16x2 {%r0, %r1}, [%d1], {%r2, %r3};
      atom.global.<add|min|max>.noftz.v4.bf16 {%h0, %h1, %h2, %h3}, [%d1], {%h4, %h5, %h6, %h7};
      atom.global.L2::cache_hint.add.u32 %r0, [%d1], %r2, %d3; atom.global.add.f32 _, [%d1], %f2;
      red.<global|shared|>.<add|min|max>.<u32|s32> [%d1], %r1; red.<and|or|xor>.b32 [%d1], %r1;
      red.relaxed.gpu.global.add.u64 [%d1], %d1; red.global.<min|max>.<u64|s64> [%d1], %d1;
      red.global.<and|or|xor>.b64 [%d1], %d1; red.<inc|dec>.u32 [%d1], %r1; red.add.f64 [%d1], %e1;
      red.global.add.f32 [%d1], 0f3F800000; red.global.add.noftz.<f16x2|bf16x2> [%d1], %r1;
      red.global.v2.f32.add [%d1], {%f2, %f3};
      red.global.<add|min|max>.noftz.v8.f16 [%d1], {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7};
      red.release.gpu.global.add.u32 [%d1], 1)"},
    {"Asynchronous", R"(
      cp.async.ca.shared.global [%r1], [%d1], <4|8|16>;
      cp.async.cg.shared::cta.global.<L2::64B|L2::128B|L2::256B> [s+16], [g], 16;
      cp.async.cg.shared.global [%d1], [%d2+32], 16, %r3; cp.async.ca.shared.global [%r1], [%d1], 8, 4;
      cp.async.ca.shared.global [%r1], [%d1], 16, %p1; cp.async.cg.shared.global.L2::cache_hint [%r1], [%d1], 16, %d2;
      cp.async.cg.shared.global.L2::cache_hint.L2::128B [%r1], [%d1], 16, %r2, %d2; cp.async.commit_group;
      cp.async.wait_group 3; cp.async.wait_all; cp.async.mbarrier.arrive.<noinc|>.<shared|shared::cta|>.b64 [%d1];
      mbarrier.init.<shared|shared::cta|>.b64 [%d1], 32; mbarrier.inval.shared.b64 [%r1];
      mbarrier.init.shared.b64 [s+8], %r1;
      mbarrier.<expect_tx|complete_tx>.<relaxed.cta|relaxed.cluster|>.<shared::cta|>.b64 [%d1], %r2;
      mbarrier.<arrive|arrive_drop>.<release.cta|relaxed.cluster|>.<shared|shared::cta|>.b64 <%d0|_>, [%d1];
      mbarrier.<arrive|arrive_drop>.shared.b64 %d0, [%d1], %r2;
      mbarrier.<arrive|arrive_drop>.noComplete.<release.cta|>.shared.b64 %d0, [%d1], 2;
      mbarrier.pending_count.b64 %r0, %d0;
      mbarrier.<arrive|arrive_drop>.expect_tx.<release.cta|>.shared::cta.b64 <_|%d0>, [%r1], %r2;
      mbarrier.<test_wait|try_wait>.<acquire.cta|relaxed.cluster|>.<shared|shared::cta|>.b64 %p0, [%d1], %d2;
      mbarrier.<test_wait|try_wait>.parity.<acquire.cta|>.shared::cta.b64 %p0, [%r1], %r2;
      mbarrier.try_wait.parity.shared.b64 %p0, [%r1], 1, 1000; mbarrier.try_wait.shared.b64 %p0, [%r1], %d1, %r2)"},
    {"Warp", R"(
      shfl.sync.<up|down|bfly|idx>.b32 %r0|%p0, %r1, %r2, 31, -1; shfl.sync.idx.b32 %r0, %r1, 0, 0x181f, %r3;
      vote.sync.<all|any|uni>.pred %p0, !%p1, -1; vote.sync.ballot.b32 %r0, %p1, %r2; match.any.sync.b32 %r0, %r1, -1;
      match.any.sync.b64 %r0, %d1, %r2; match.all.sync.b32 %r0|%p0, %r1, -1; match.all.sync.b64 %r0|%p0, %d1, %r2;
      activemask.b32 %r0; redux.sync.<add|min|max>.<u32|s32> %r0, %r1, -1; redux.sync.<and|or|xor>.b32 %r0, %r1, %r2;
      redux.sync.<min|max>.<abs|>.<NaN|>.f32 %f0, %f1, -1; elect.sync %r0|%p0, -1; elect.sync _|%p0, %r1; bar.sync 0;
      bar.sync %r0, 64; bar.arrive 1, 64; bar.red.popc.u32 %r0, 0, %p0; bar.red.<and|or>.pred %p1, 1, 64, !%p0;
      barrier.sync.<aligned|> 0; barrier.cta.sync.aligned 0, 128; barrier.cta.arrive %r1, 32;
      barrier.cta.red.popc.aligned.u32 %r0, 0, 64, %p0; barrier.red.and.pred %p1, 0, %p0; bar.cta.sync 0;
      bar.warp.sync 0xffffffff; bar.warp.sync %r0)"},
    {"Control", R"(
      bra L1; bra.uni L1; @%p0 bra L1; @!%p0 bra L0; brx.idx %r0, T; brx.idx.uni %r0, T; call.uni (a1), callee, (a0);
      call (a1), callee, (a0); call (a1), %d0, (a0), P; call (a1), %d0, (a0), C; @%p0 call (a1), callee, (a0); ret;
      ret.uni; @%p0 ret; exit; @%p0 exit; trap; brkpt; pmevent 3; pmevent.mask 0xff;
      griddepcontrol.<wait|launch_dependents>; nanosleep.u32 100;
      nanosleep.u32 %r0; alloca.u64 %d0, %d1; alloca.u32 %r0, %r1, 16; alloca.u64 %d0, 64, 8; stacksave.u64 %d0;
      stacksave.u32 %r0; stackrestore.u64 %d0; stackrestore.u32 %r0)"},
    {"Special", R"(
      mov.u32 %r0, %<tid|ntid|ctaid|nctaid>.<x|y|z>; mov.u32 %r0, %<tid|ntid|ctaid|nctaid>.w;
      mov.u32 %r0, %<laneid|warpid|nwarpid|smid|nsmid|lanemask_eq|lanemask_le|lanemask_lt|lanemask_ge|lanemask_gt>;
      mov.u32 %r0, %<clock|clock_hi|globaltimer_lo|globaltimer_hi|total_smem_size|aggr_smem_size|dynamic_smem_size>;
      mov.u64 %d0, %<clock64|globaltimer|gridid|current_graph_exec>; mov.b32 %r0, %envreg<0|31>;
      mov.u32 %r0, %pm<0|7>; mov.u64 %d0, %pm<0|7>_64; mov.b32 %r0, %reserved_smem_offset_<begin|end|cap|0|1>;
      mov.v4.u32 {%r0, %r1, %r2, %r3}, %tid; cvt.u64.u32 %d0, %ctaid.x)"},
};

class Executed : public ::testing::TestWithParam<Row> {};

TEST_P(Executed, Decodes) {
  for (const std::string& instruction : Expand(GetParam().instructions)) {
    EXPECT_EQ(Refusal(instruction), "") << instruction;
  }
}

// Refused with the name as it stands in the text: what needs other blocks of a cluster, the tensor units or the copy
// engine, and what no compiler emits.
constexpr char kRefused[] = R"(
      cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r0], [%d1], 64, [%r2];
      cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; cp.async.bulk.prefetch.L2.global [%d1], 64;
      mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r1];
      mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%r1], 8; ld.shared::cluster.u32 %r0, [%r1];
      st.shared::cluster.u32 [%r1], %r0; atom.shared::cluster.add.u32 %r0, [%r1], %r2; mapa.u64 %d0, %d1, 0;
      getctarank.u64 %r0, %d1; cvta.shared::cluster.u64 %d0, %d1; isspacep.shared::cluster %p0, %d1;
      barrier.cluster.arrive; barrier.cluster.wait; setmaxnreg.inc.sync.aligned.u32 64;
      st.async.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r1], %r2, [%r3];
      red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%r1], %r2, [%r3];
      multimem.ld_reduce.global.add.f32 %f0, [%d1]; prefetch.tensormap [%d1];
      fence.proxy.tensormap::generic.acquire.gpu [%d1], 128; wgmma.fence.sync.aligned;
      tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; fma.rn.oob.<relu|>.<f16|bf16> %h0, %h1, %h2, %h3;
      fma.rn.oob.<relu|>.<f16x2|bf16x2> %r0, %r1, %r2, %r3;
      cvt.rs.<relu|>.<satfinite|>.<f16x2|bf16x2>.f32 %r0, %f1, %f2, %r3;
      cvt.rs.<relu|>.satfinite.<e4m3x4|e5m2x4|e2m3x4|e3m2x4>.f32 %r0, {%f1, %f2, %f3, %f4}, %r5;
      cvt.rs.<relu|>.satfinite.e2m1x4.f32 %h0, {%f1, %f2, %f3, %f4}, %r5;
      <vadd|vsub|vabsdiff|vmin|vmax>.s32.s32.s32 %r0, %r1, %r2; vmad.s32.s32.s32 %r0, %r1, %r2, %r3;
      <vadd2|vavrg2|vadd4|vabsdiff4>.s32.s32.s32 %r0, %r1, %r2, %r3; vset.s32.s32.lt %r0, %r1, %r2;
      istypep.texref %p0, %d1; membar.proxy.tensormap)";

TEST(Coverage, RefusesByName) {
  for (const std::string& instruction : Expand(kRefused)) {
    EXPECT_THAT(Refusal(instruction), ::testing::StartsWith(instruction.substr(0, instruction.find(' '))))
        << instruction;
  }
}

// What the assembler would not take is no instruction here either.
TEST(Coverage, RefusesWrongForms) {
  for (const std::string& instruction : Expand(R"(
      cp.async.ca.shared.global [%r1], [%d1], <2|12|32|0|%r2>; cp.async.cg.shared.global [%r1], [%d1], <4|8>;
      cp.async.ca.shared.global [%r1], [%d1]; cp.async.ca.shared.global [l], [%d1], 4;
      cp.async.shared.global [%r1], [%d1], 4; cp.async.ca.global.shared [%d1], [%r1], 4;
      cp.async.ca.global.global [%d1], [%d1], 4; cp.async.wait_group %r1; cp.async.wait_group; cp.async.wait_all 1;
      cp.async.commit_group 1; cp.async.ca.shared.global [%h1], [%d1], 4;
      cp.async.ca.shared.global [%r1], [%d1], 4, %x1; cp.async.ca.shared.global.L2::cache_hint [%r1], [%d1], 4;
      cp.async.mbarrier.arrive.shared.b32 [%r1]; cp.async.mbarrier.arrive.shared.b64 %r1;
      mbarrier.init.shared.b64 [%r1]; mbarrier.init.shared.b32 [%r1], 1; mbarrier.shared.b64 [%r1], 1;
      mbarrier.init.global.b64 [%d1], 1; mbarrier.arrive.shared.b64 [%r1]; mbarrier.arrive.shared.b64 %r0, [%r1];
      mbarrier.arrive.noComplete.shared.b64 %d0, [%r1]; mbarrier.inval.shared.b64 [%r1], 1;
      mbarrier.test_wait.shared.b64 %p0, [%r1], %d1, 5; mbarrier.test_wait.shared.b64 %r0, [%r1], %d1;
      mbarrier.try_wait.parity.shared.b64 %p0, [%r1]; mbarrier.pending_count.b64 %h0, %d1;
      mbarrier.arrive.expect_tx.noComplete.shared.b64 %d0, [%r1], 4;
      mbarrier.test_wait.expect_tx.shared.b64 %p0, [%r1], %d1; mbarrier.init.shared.b64 [l], 1; mbarrier.b64;
      mbarrier; lop3.or.b32 %r0, %r1, %r2, %r3, 1, %p0; lop3.or.b32 %r0|%p0, %r1, %r2, %r3, 256, %p0;
      lop3.xor.b32 %r0|%p0, %r1, %r2, %r3, 1, %p0; add.f32x2 %d0, %d1; add.sat.f32x2 %d0, %d1, %d2;
      add.f32x2 %r0, %r1, %r2; div.rn.f32x2 %d0, %d1, %d2; cvt.f32x2.f32 %d0, %f1; setp.lt.f32x2 %p0, %d1, %d2;
      min.abs.f32 %f0, %f1, %f2; min.xorsign.f32 %f0, %f1, %f2; mul.rn.f32.f16 %f0, %h1, %f2;
      add.f32.f64 %f0, %e1, %f2; add.ftz.f32.f16 %f0, %h1, %f2; fma.rn.f32.f16 %f0, %h1, %f2;
      cvt.pack.sat.u4.s32 %r0, %r1, %r2; cvt.pack.u8.s32.b32 %r0, %r1, %r2, %r3; cvt.rn.ue8m0x2.f32 %h0, %f1, %f2;
      cvt.rz.relu.ue8m0x2.f32 %h0, %f1, %f2; cvt.rz.f16x2.ue8m0x2 %r0, %h1; cvt.rz.ue8m0x2.f32 %h0, %f1;
      redux.sync.add.f32 %f0, %f1, -1; redux.sync.min.f16x2 %r0, %r1, -1; redux.sync.min.abs.u32 %r0, %r1, -1;
      atom.add.b128 %x0, [%d1], %x1; red.exch.b128 [%d1], %x1; atom.exch.b128 %r0, [%d1], %x1;
      atom.cas.b128 %x0, [%d1], %x1, 5; atom.global.v2.f32.add %f0, [%d1], {%f1, %f2};
      atom.global.v2.f32.add {%f0}, [%d1], {%f1, %f2}; atom.global.v2.f32.add {%f0, %f1}, [%d1], {%f1, %f2, %f3};
      st.bulk.global [%d1], 8, 0; st.bulk [%d1], 8, 1; st.bulk [%d1], 8; alloca.u64 %d0, 8, 3; alloca.u64 %d0, 8, 0;
      alloca.u64 %d0, 8, 8192; alloca.b64 %d0, 8; alloca.u64 %d0; stacksave.u64 %d0, 1; stackrestore.u16 %h0;
      pmevent %r0; griddepcontrol; griddepcontrol.wait %r0; griddepcontrol.go; mov.v4.u32 {%r0, %r1}, %tid; mov.v4.u32 {%r0, %r1, %r2, %r3}, %laneid;
      mov.b128 {%h0, %h1, %h2, %h3, %h4, %h5, %h6, %h7}, %x0)")) {
    EXPECT_NE(Refusal(instruction), "") << instruction;
  }
}

INSTANTIATE_TEST_SUITE_P(Isa, Executed, ::testing::ValuesIn(kExecuted),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace solstice::device
