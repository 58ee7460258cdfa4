// Loads and stores in every state space, control flow, barriers.
#include "tests/conformance/kernel.h"

namespace solstice::conformance {

void AddMemory(std::vector<Case>* cases) {
  constexpr int kTuples = 64;
  const char* const kWords = "b32 b32 b32 b32";
  const auto row = [&](const char* name, const char* results, const char* text) {
    return Row{name, results, kWords, text, kTuples};
  };
  AddRows(
      "memory",
      {
          row("ld.global.{u8|s8|u16|s16|b32}", "b32", "ld.global.[0] %o0, [%src+4];"),
          row("ld.global.{s8|u16|s32|u32} wide", "b64", "ld.global.[0] %o0, [%src+4];"),
          row("ld.global{.nc|.ca|.cg|.volatile|.relaxed.gpu|.acquire.sys}.b32", "b32",
              "ld.global[0].b32 %o0, [%src+8];"),
          row("ld.global.v2.{u8|s8|u16|s16|b32|f32}", "b32 b32", "ld.global.v2.[0] {%o0, %o1}, [%src+8];"),
          row("ld.global.v4.{u8|s8|u16|s16|b32|f32}", kWords, "ld.global.v4.[0] {%o0, %o1, %o2, %o3}, [%src];"),
          row("ld.global.v2.{b64|f64|u64}", "b64 b64", "ld.global.v2.[0] {%o0, %o1}, [%src];"),
          row("ld.global.nc.v4.f32", kWords, "ld.global.nc.v4.f32 {%o0, %o1, %o2, %o3}, [%src];"),
          row("ld.global.v4.b32 sinks", "b32 b32", "ld.global.v4.b32 {%o0, _, %o1, _}, [%src];"),
          row("ld.global.b128", "b64 b64", "{ .reg .b128 %x; ld.global.b128 %x, [%src]; mov.b128 {%o0, %o1}, %x; }"),
          row("st.global.{u8|u16|b32}", "b64", "st.global.[0] [%own+4], %i1;\n  ld.global.b64 %o0, [%own];"),
          row("st.global.v2.{b8|b16|b32}", "b64", "st.global.v2.[0] [%own], {%i0, %i1};\n  ld.global.b64 %o0, [%own];"),
          row("st.global.v4.{b8|b16|b32}", "b64 b64",
              "st.global.v4.[0] [%own], {%i0, %i1, %i2, %i3};\n  ld.global.v2.b64 {%o0, %o1}, [%own];"),
          row("st.global.b128", "b64 b64",
              "{ .reg .b128 %x; mov.b64 %q0, {%i0, %i1}; mov.b64 %q1, {%i2, %i3}; mov.b128 %x, {%q0, %q1}; "
              "st.global.b128 [%own], %x; }\n  ld.global.v2.b64 {%o0, %o1}, [%own];"),
          row("ld.shared.{u8|s8|u16|s16|b32}", "b32",
              "st.shared.v2.b32 [%mine], {%i0, %i1};\n  ld.shared.[0] %o0, [%mine+4];"),
          row("ld.shared.v{2|4}.b16 window", "b64",
              "st.shared.v4.b32 [%mine], {%i0, %i1, %i2, %i3};\n  cvta.shared.u64 %q0, %mine;\n  ld.b64 %o0, [%q0+8];"),
          row("st.shared.v4.b32", kWords,
              "st.shared.v4.b32 [%mine], {%i3, %i2, %i1, %i0};\n  ld.shared.v4.b32 {%o0, %o1, %o2, %o3}, [%mine];"),
          row("ld.local.{u8|s8|u16|s16|b32}", "b32",
              "st.local.v2.b32 [near+8], {%i0, %i1};\n  and.b32 %r0, %i2, 1;\n  shl.b32 %r0, %r0, 2;\n  mov.u32 %r1, "
              "near;\n"
              "  add.u32 %r1, %r1, %r0;\n  ld.local.[0] %o0, [%r1+8];"),
          row("st.local.v4.b32 window", kWords,
              "st.local.v4.b32 [near+16], {%i3, %i2, %i1, %i0};\n  mov.u64 %q0, near;\n  cvta.local.u64 %q0, %q0;\n"
              "  ld.v4.b32 {%o0, %o1, %o2, %o3}, [%q0+16];"),
          row("ld.const.{u8|s8|u16|s16|b32}", "b32",
              "and.b32 %r0, %t, 12;\n  cvt.u64.u32 %q0, %r0;\n  mov.u64 %q1, $E_table;\n  add.s64 %q0, %q0, %q1;\n  "
              "ld.const.[0] %o0, [%q0+4];"),
          row("ld.const.v2.b32", "b32 b32", "ld.const.v2.b32 {%o0, %o1}, [$E_table+8];"),
          row("ld.param.{u8|s8|u16|s16|b32}", "b32", "ld.param.[0] %o0, [extra+4];"),
          row("ld.param.v4.b32", kWords, "ld.param.v4.b32 {%o0, %o1, %o2, %o3}, [extra+16];"),
          row("isspacep.{global|shared|local|const}", "pred pred pred",
              "st.local.b32 [near], %i0;\n  mov.u64 %q0, near;\n  cvta.local.u64 %q0, %q0;\n  cvta.shared.u64 %q1, "
              "%mine;\n"
              "  isspacep.[0] %o0, %src;\n  isspacep.[0] %o1, %q0;\n  isspacep.[0] %o2, %q1;"),
          row("cvta.to.{shared}.u64", "b32",
              "st.shared.b32 [%mine], %i0;\n  cvta.shared.u64 %q0, %mine;\n  cvta.to.shared.u64 %q1, %q0;\n"
              "  ld.shared.b32 %o0, [%q1];"),
          row("{membar.gl|membar.cta|fence.acq_rel.gpu|fence.sc.cta}", "b32",
              "st.global.b32 [%own], %i0;\n  [0];\n  ld.global.b32 %o0, [%own];"),
          row("{prefetch.global.L2|prefetch.global.L1}", "b32", "[0] [%src];\n  ld.global.b32 %o0, [%src];"),
      },
      cases);
}

void AddControl(std::vector<Case>* cases) {
  const std::string functions = R"(.func (.param .b32 r) $E_twice(.param .b32 a)
{
  .reg .b32 %x;
  ld.param.b32 %x, [a];
  add.u32 %x, %x, %x;
  st.param.b32 [r], %x;
  ret;
}
.func (.param .b32 r) $E_invert(.param .b32 a)
{
  .reg .b32 %x;
  ld.param.b32 %x, [a];
  not.b32 %x, %x;
  st.param.b32 [r], %x;
  ret;
}
.func (.param .b32 r) $E_sum(.param .align 8 .b8 a[16])
{
  .reg .b32 %x<4>;
  ld.param.v2.b32 {%x0, %x1}, [a];
  ld.param.v2.b32 {%x2, %x3}, [a+8];
  add.u32 %x0, %x0, %x1;
  sub.u32 %x2, %x2, %x3;
  xor.b32 %x0, %x0, %x2;
  st.param.b32 [r], %x0;
  ret;
}
)";
  const std::string table = ".global .align 8 .u64 $E_functions[2] = {$E_twice, $E_invert};\n";
  const std::string indirect = R"({
  .param .b32 given, returned;
  and.b32 %r0, %i1, 1;
  mul.wide.u32 %q0, %r0, 8;
  mov.u64 %q1, $E_functions;
  add.s64 %q1, %q1, %q0;
  ld.global.u64 %q2, [%q1];
  st.param.b32 [given], %i0;
  shape: .callprototype (.param .b32 _) _ (.param .b32 _);
  call (returned), %q2, (given), shape;
  ld.param.b32 %o0, [returned];
  })";
  AddRows("control",
          {
              {"brx.idx", "b32", "b32 b32", R"(and.b32 %r0, %i1, 3;
  targets: .branchtargets first, second, third, fourth;
  brx.idx %r0, targets;
first: add.u32 %o0, %i0, 1;
  bra done;
second: mul.lo.u32 %o0, %i0, 3;
  bra done;
third: not.b32 %o0, %i0;
fourth: xor.b32 %o0, %i0, 255;
done:)"},
              {"bra loop", "b32", "b32 b32", R"(and.b32 %r0, %i1, 31;
  mov.b32 %o0, %i0;
again: setp.eq.u32 %p0, %r0, 0;
  @%p0 bra done;
  mad.lo.u32 %o0, %o0, 1664525, 1013904223;
  sub.u32 %r0, %r0, 1;
  bra again;
done:)"},
              {"bra nested", "b32", "b32 b32", R"(mov.b32 %o0, %i0;
  and.b32 %r0, %i1, 7;
  mov.u32 %r1, 0;
outer: setp.ge.u32 %p0, %r1, %r0;
  @%p0 bra done;
  and.b32 %r2, %o0, 1;
  setp.ne.u32 %p1, %r2, 0;
  @!%p1 bra even;
  mad.lo.u32 %o0, %o0, 3, 1;
  bra next;
even: shr.u32 %o0, %o0, 1;
next: add.u32 %r1, %r1, 1;
  bra outer;
done:)"},
              {"predication", "b32 b32", "b32 b32", R"(setp.lt.s32 %p0, %i0, %i1;
  mov.b32 %o0, 1;
  mov.b32 %o1, 2;
  @%p0 add.u32 %o0, %i0, %i1;
  @!%p0 sub.u32 %o0, %i0, %i1;
  @%p0 setp.ne.b32 %p0, %i1, 0;
  @%p0 mov.b32 %o1, %i1;)"},
              {"call direct", "b32", "b32 b32", R"({
  .param .b32 given, returned;
  st.param.b32 [given], %i0;
  call (returned), $E_invert, (given);
  ld.param.b32 %o0, [returned];
  })",
               0, functions},
              {"call aggregate", "b32", "b32 b32 b32 b32", R"({
  .param .align 8 .b8 given[16];
  .param .b32 returned;
  st.param.v2.b32 [given], {%i0, %i1};
  st.param.v2.b32 [given+8], {%i2, %i3};
  call.uni (returned), $E_sum, (given);
  ld.param.b32 %o0, [returned];
  })",
               0, functions},
              {"call indirect", "b32", "b32 b32", indirect, 0, functions + table},
              {"call divergent", "b32", "b32 b32", R"(setp.lt.u32 %p0, %i0, %i1;
  mov.b32 %o0, 5;
  @!%p0 bra done;
  )" + indirect + R"(
done:)",
               0, functions + table},
              {"exit of some", "b32", "b32 b32", R"(and.b32 %r0, %t, 3;
  setp.ne.u32 %p0, %r0, 0;
  add.u32 %o0, %i0, %i1;
  ld.param.u64 %q0, [out];
  mul.wide.u32 %q1, %t, 4;
  add.s64 %q0, %q0, %q1;
  st.global.b32 [%q0], %i1;
  @%p0 exit;)"},
          },
          cases);
  AddRows(
      "barrier",
      {
          {"bar.sync exchange", "b32", "b32", R"(st.shared.b32 [%mine], %i0;
  bar.sync 0;
  xor.b32 %r0, %t, 37;
  shl.b32 %r0, %r0, 4;
  mov.u32 %r1, $E_shared;
  add.u32 %r0, %r0, %r1;
  ld.shared.b32 %o0, [%r0];)"},
          {"barrier.cta.red.popc.u32", "b32", "pred", "barrier.cta.red.popc.u32 %o0, 0, %i0;", 128},
          {"barrier.cta.red.{and|or}.pred", "pred", "pred", "barrier.cta.red.[0].pred %o0, 1, %i0;", 128},
          {"barrier.cta.red.{and|or}.pred uniform", "pred", "pred",
           "setp.lt.u32 %p0, %t, 1000;\n  @!%i0 setp.lt.u32 %p0, %t, 2000;\n  barrier.cta.red.[0].pred %o0, 1, %p0;",
           128},
          // Half of the block each on a barrier of its own.
          {"bar.sync half", "b32", "b32", R"(st.shared.b32 [%mine], %i0;
  shr.u32 %r2, %t, 6;
  bar.sync %r2, 64;
  xor.b32 %r0, %t, 33;
  shl.b32 %r0, %r0, 4;
  mov.u32 %r1, $E_shared;
  add.u32 %r0, %r0, %r1;
  ld.shared.b32 %o0, [%r0];)",
           128},
          // The first two warps make what the last two wait for.
          {"bar.arrive", "b32", "b32", R"(setp.ge.u32 %p0, %t, 64;
  mov.b32 %o0, %i0;
  @%p0 bra wait;
  st.shared.b32 [%mine], %i0;
  membar.cta;
  bar.arrive 3, 128;
  bra done;
wait: bar.sync 3, 128;
  ld.shared.b32 %o0, [%mine+-1024];
done:)",
           128},
      },
      cases);
}

}  // namespace solstice::conformance
