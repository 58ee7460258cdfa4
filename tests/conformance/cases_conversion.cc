// Conversions between all types, in every rounding.
#include "tests/conformance/kernel.h"

namespace solstice::conformance {

void AddConversion(std::vector<Case>* cases) {
  const std::vector<Row> rows = {
      {"cvt.{u8|s8|u16|s16|u32|s32|u64|s64}.{s8|u16|s32|u64}", "[0]", "[1]"},
      {"cvt.sat.{u8|s8|u16|s16}.{u32|s32|s64}", "[0]", "[1]"},
      {"cvt.sat.{u32.s32|s32.u32}", "b32", "b32"},
      {"cvt.sat.{u32|s32}.{u64|s64}", "[0]", "[1]"},
      {"cvt.sat.{u64.s64|s64.u64}", "b64", "b64"},
      // To integers.
      {"cvt.{rni|rzi|rmi|rpi}.{u8|s8|u16|s16|u32|s32|u64|s64}.f32", "[1]", "f32"},
      {"cvt.{rni|rzi|rmi|rpi}.{u32|s32|u64|s64}.f64", "[1]", "f64"},
      {"cvt.{rni|rzi|rmi|rpi}.{u16|s16|s32|s64}.f16", "[1]", "f16"},
      {"cvt.{rni|rzi}.{u8|s8}.{f16|f64}", "[1]", "[2]"},
      {"cvt.{rni|rzi|rmi|rpi}.{s32|u16}.bf16", "[1]", "bf16"},
      {"cvt.{rni|rpi}.ftz.{s32|u64}.f32", "[1]", "f32"},
      {"cvt.rni.sat.{s32|u8}.f32", "[0]", "f32"},
      // From integers.
      {"cvt.{rn|rz|rm|rp}.f32.{u32|s32|u64|s64}", "f32", "[1]"},
      {"cvt.rn.f32.{u8|s8|u16|s16}", "f32", "[0]"},
      {"cvt.{rn|rz|rm|rp}.f64.{u64|s64}", "f64", "[1]"},
      {"cvt.rn.f64.{u8|s16|u32|s32}", "f64", "[0]"},
      {"cvt.{rn|rz|rm|rp}.f16.{u16|s32|u64}", "f16", "[1]"},
      {"cvt.rn.f16.{s8|s16|u32|s64}", "f16", "[0]"},
      {"cvt.{rn|rz|rm|rp}.bf16.{u16|s32}", "bf16", "[1]"},
      {"cvt.rn.bf16.{s16|u32|u64|s64}", "bf16", "[0]"},
      {"cvt.rn.sat.f32.{s32|u32}", "f32", "[0]"},
      // Between floats.
      {"cvt.{rn|rz|rm|rp}.f32.f64", "f32", "f64"},
      {"cvt.{rm|rp}.f16.f32", "f16", "f32"},
      {"cvt.{rn|rz|rm|rp}.f16.f64", "f16", "f64"},
      {"cvt.{rm|rp}.bf16.f32", "bf16", "f32"},
      {"cvt.{rn|rz|rm|rp}.bf16.{f16|f64}", "bf16", "[1]"},
      {"cvt.{f32|f64}.{f16|bf16}", "[0]", "[1]"},
      {"cvt.f64.f32", "f64", "f32"},
      {"cvt.rn.f16.bf16", "f16", "bf16"},
      {"cvt.{rni|rzi|rmi|rpi}.{f32.f32|f64.f64|f16.f16}", "[1]", "[1]"},
      {"cvt.rn{.ftz|.sat|.ftz.sat}.f32.f64", "f32", "f64"},
      {"cvt.rn{.ftz|.sat|.ftz.sat}.f16.f32", "f16", "f32"},
      {"cvt{.ftz|.sat|.ftz.sat}.f32.{f32|f16}", "f32", "[1]"},
      {"cvt.ftz.f64.f32", "f64", "f32"},
      {"cvt.{rn|rz}{|.relu}{|.satfinite}.{f16|bf16}.f32", "[3]", "f32"},
      {"cvt.rna{|.satfinite}.tf32.f32", "b32", "f32"},
      {"cvt.{rn|rz}{|.relu}.tf32.f32", "b32", "f32"},
      // Packed.
      {"cvt.{rn|rz}{|.relu}{|.satfinite}.{f16x2|bf16x2}.f32", "[3]", "f32 f32"},
      {"cvt.rn.satfinite{|.relu}.{e4m3x2|e5m2x2}.f32", "[1]", "f32 f32"},
      {"cvt.rn.satfinite{|.relu}.{e4m3x2|e5m2x2}.f16x2", "[1]", "f16x2"},
      {"cvt.rn{|.relu}.f16x2.{e4m3x2|e5m2x2}", "f16x2", "[1]"},
      {"cvt.pack.sat.{u16|s16}.s32", "b32", "s32 s32"},
      {"cvt.pack.sat.{u8|s8}.s32.b32", "b32", "s32 s32 b32"},
  };
  AddRows("conversion", rows, cases);
  // Later hardware's: the H200 does not have them.
  std::vector<Row> later = {
      {"cvt.rn.satfinite{|.relu}.{e2m3x2|e3m2x2}.f32", "[1]", "f32 f32"},
      {"cvt.rn{|.relu}.f16x2.{e2m3x2|e3m2x2}", "f16x2", "[1]"},
      {"cvt.rn.satfinite{|.relu}.e2m1x2.f32", "b16", "f32 f32",
       "{ .reg .b8 %packed; cvt.rn.satfinite[0].e2m1x2.f32 %packed, %i0, %i1; mov.b16 %o0, {%packed, 0}; }"},
      {"cvt.rn{|.relu}.f16x2.e2m1x2", "f16x2", "b16",
       "{ .reg .b8 %packed, %rest; mov.b16 {%packed, %rest}, %i0; cvt.rn[0].f16x2.e2m1x2 %o0, %packed; }"},
      {"cvt.{rn|rz}.satfinite{|.relu}.tf32.f32", "b32", "f32"},
  };
  for (Row& row : later) row.arch = "sm_100a";
  AddRows("conversion", later, cases);
}

}  // namespace solstice::conformance
