// What the lanes of a warp do together, and atomics.
#include "tests/conformance/kernel.h"

namespace solstice::conformance {
namespace {

// The instruction on the lower half of each warp only; the others' results are zero.
std::string LowerHalf(const std::string& instruction) {
  return "mov.u32 %r0, %laneid;\n  setp.lt.u32 %p0, %r0, 16;\n  mov.b32 %o0, 0;\n  @%p0 " + instruction;
}

}  // namespace

void AddWarp(std::vector<Case>* cases) {
  AddRows(
      "warp",
      {
          {"shfl.sync.{up|down|bfly|idx}.b32 {0|31|0x1c03|0x1800|0x101f}", "b32 pred", "b32 shift",
           "shfl.sync.[0].b32 %o0|%o1, %i0, %i1, [1], -1;"},
          {"shfl.sync.idx.b32 half", "b32", "b32 shift", LowerHalf("shfl.sync.idx.b32 %o0, %i0, %r0, 0x100f, 0xffff;")},
          {"vote.sync.{all|any|uni}.pred", "pred", "pred", "vote.sync.[0].pred %o0, %i0, -1;", 64},
          {"vote.sync.{all|any|uni}.pred negated", "pred", "pred", "vote.sync.[0].pred %o0, !%i0, -1;", 64},
          {"vote.sync.ballot.b32", "b32", "pred", "vote.sync.ballot.b32 %o0, %i0, -1;", 64},
          {"vote.sync.ballot.b32 half", "b32", "pred", LowerHalf("vote.sync.ballot.b32 %o0, %i0, 0xffff;"), 64},
          {"match.any.sync.b32", "b32", "shift", "and.b32 %r0, %i0, 7;\n  match.any.sync.b32 %o0, %r0, -1;"},
          {"match.any.sync.b64", "b32", "shift",
           "and.b32 %r0, %i0, 7;\n  mov.b64 %q0, {%r0, %r0};\n  match.any.sync.b64 %o0, %q0, -1;"},
          {"match.all.sync.b32", "b32 pred", "pred shift",
           "shr.u32 %r0, %t, 5;\n  and.b32 %r1, %i1, %r0;\n  min.u32 %r1, %r1, 1;\n  match.all.sync.b32 %o0|%o1, "
           "%r1, -1;"},
          {"match.all.sync.b64", "b32 pred", "shift",
           "shr.u32 %r0, %t, 5;\n  mov.b64 %q0, {%r0, %r0};\n  match.all.sync.b64 %o0|%o1, %q0, -1;"},
          {"redux.sync.{add|min|max}.{u32|s32}", "b32", "[1]", "redux.sync.[0].[1] %o0, %i0, -1;"},
          {"redux.sync.{and|or|xor}.b32", "b32", "b32", "redux.sync.[0].b32 %o0, %i0, -1;"},
          {"redux.sync.add.s32 half", "b32", "s32", LowerHalf("redux.sync.add.s32 %o0, %i0, 0xffff;")},
          {"elect.sync", "b32 pred", "b32", "elect.sync %o0|%o1, -1;", 64},
          {"activemask.b32", "b32", "b32", "activemask.b32 %o0;", 64},
          {"bar.warp.sync", "b32", "b32",
           "st.shared.b32 [%mine], %i0;\n  bar.warp.sync -1;\n  xor.b32 %r0, %t, 5;\n  shl.b32 %r0, %r0, 4;\n"
           "  mov.u32 %r1, $E_shared;\n  add.u32 %r0, %r0, %r1;\n  ld.shared.b32 %o0, [%r0];",
           64},
          {"mov.u32 {%laneid|%lanemask_eq|%lanemask_lt|%lanemask_le|%lanemask_gt|%lanemask_ge|%ntid.x|%ctaid.x|"
           "%nctaid.x|%tid.y}",
           "b32", "b32", "mov.u32 %o0, [0];", 64},
      },
      cases);
}

void AddAtomic(std::vector<Case>* cases) {
  // What was there, what is added, what was returned, what is there now.
  const auto text = [](const std::string& space, const std::string& at, const std::string& instruction,
                       const std::string& access) {
    return "st." + space + "." + access + " [" + at + "], %i0;\n  " + instruction + "\n  ld." + space + "." + access +
           " %o1, [" + at + "];";
  };
  const auto global = [&](const std::string& operation, const std::string& access) {
    return text("global", "%own", "atom.global." + operation + " %o0, [%own], %i1;", access);
  };
  const auto shared = [&](const std::string& operation, const std::string& access) {
    return text("shared", "%mine", "atom.shared." + operation + " %o0, [%mine], %i1;", access);
  };
  AddRows("atomic",
          {
              {"atom.global.{add|min|max}.{u32|s32|u64}", "[1] [1]", "[1] [1]", global("[0].[1]", "[1]")},
              {"atom.global.{min|max}.s64", "s64 s64", "s64 s64", global("[0].s64", "s64")},
              {"atom.global.{and|or|xor|exch}.{b32|b64}", "[1] [1]", "[1] [1]", global("[0].[1]", "[1]")},
              {"atom.global.{inc|dec}.u32", "u32 u32", "u32 u32", global("[0].u32", "u32")},
              {"atom.global.add.{f32|f64}", "[0] [0]", "[0] [0]", global("add.[0]", "[0]")},
              {"atom.global.add.noftz.{f16|bf16}", "b16 b16", "[0] [0]", global("add.noftz.[0]", "b16")},
              {"atom.global.add.noftz.{f16x2|bf16x2}", "b32 b32", "[0] [0]", global("add.noftz.[0]", "b32")},
              {"atom.global.cas.{b16|b32|b64}", "[0] [0]", "[0] [0] [0]",
               text("global", "%own", "atom.global.cas.[0] %o0, [%own], %i1, %i2;", "[0]")},
              {"atom.global.cas.{b32|b64} equal", "[0] [0]", "[0] [0]",
               text("global", "%own", "atom.global.cas.[0] %o0, [%own], %i0, %i1;", "[0]")},
              {"atom.shared.{add|min|max}.{u32|s32|u64}", "[1] [1]", "[1] [1]", shared("[0].[1]", "[1]")},
              {"atom.shared.{and|or|xor|exch}.{b32|b64}", "[1] [1]", "[1] [1]", shared("[0].[1]", "[1]")},
              {"atom.shared.{inc|dec}.u32", "u32 u32", "u32 u32", shared("[0].u32", "u32")},
              {"atom.shared.add.{f32|f64}", "[0] [0]", "[0] [0]", shared("add.[0]", "[0]")},
              {"atom.shared.add.noftz.{f16x2|bf16x2}", "b32 b32", "[0] [0]", shared("add.noftz.[0]", "b32")},
              {"atom.shared.cas.{b32|b64}", "[0] [0]", "[0] [0] [0]",
               text("shared", "%mine", "atom.shared.cas.[0] %o0, [%mine], %i1, %i2;", "[0]")},
              {"atom.global.v2.f32.add", "f32 f32 f32 f32", "f32 f32 f32 f32",
               "st.global.v2.f32 [%own], {%i0, %i1};\n  atom.global.v2.f32.add {%o0, %o1}, [%own], {%i2, %i3};\n"
               "  ld.global.v2.f32 {%o2, %o3}, [%own];"},
              {"red.global.{add|min|max}.{u32|s32|u64}", "[1]", "[1] [1]",
               "st.global.[1] [%own], %i0;\n  red.global.[0].[1] [%own], %i1;\n  ld.global.[1] %o0, [%own];"},
              {"red.global.{and|or|xor}.b32", "b32", "b32 b32",
               "st.global.b32 [%own], %i0;\n  red.global.[0].b32 [%own], %i1;\n  ld.global.b32 %o0, [%own];"},
              {"red.global.add.noftz.{f16x2|bf16x2}", "b32", "[0] [0]",
               "st.global.b32 [%own], %i0;\n  red.global.add.noftz.[0] [%own], %i1;\n  ld.global.b32 %o0, [%own];"},
              // All threads on one address; the result is the same in every order.
              {"red.global.{add.u32|max.s32|min.u32|xor.b32} all", "b32", "b32",
               "red.global.[0] [%common], %i0;\n  bar.sync 0;\n  ld.volatile.global.b32 %o0, [%common];"},
              {"atom.shared.add.u32 all", "u32", "u32",
               "mov.u32 %r0, 0;\n  st.shared.u32 [$E_shared], %r0;\n  bar.sync 0;\n  atom.shared.add.u32 %r1, "
               "[$E_shared], %i0;\n  bar.sync 0;\n  ld.volatile.shared.u32 %o0, [$E_shared];"},
              {"red.global.add.f32 all", "f32", "f32",
               "cvt.rn.f32.u32 %r0, %t;\n  red.global.add.f32 [%common], %r0;\n  bar.sync 0;\n"
               "  ld.volatile.global.f32 %o0, [%common];"},
          },
          cases);
}

}  // namespace solstice::conformance
