// Which function executes an arithmetic operation. Built several times, for plain x86-64 and for AVX2 with FMA; both
// give the same bits.
#pragma once

#include "runtime/device/emulator/matrix.h"
#include "runtime/device/emulator/program.h"

namespace solstice::device {

struct AluKey {
  Alu op = Alu::kMov;
  Type type = Type::kNone;
  Type source = Type::kNone;  // kCvt, kSet: of the operand
  Rounding rounding = Rounding::kNone;
  Compare compare = Compare::kEq;
  bool ftz = false, sat = false, approx = false, relu = false, nan = false, full = false, wrap = false,
       shift_amount = false, satfinite = false, second = false, xorsign = false, abs = false;
};

struct MemoryKey {
  Type memory = Type::kNone;  // element in memory
  int register_bytes = 0;     // of the register it goes to or comes from
  bool store = false;
};

struct IsaTable {
  ExecFn (*alu)(const AluKey&);  // nullptr: no such operation
  ExecFn (*memory)(const MemoryKey&);
  MultiplyFn (*multiply)(const MatrixPlan&);
};

const IsaTable& BaselineIsa();
const IsaTable& Avx2Isa();
// The best that this machine has.
const IsaTable& BestIsa();

}  // namespace solstice::device
