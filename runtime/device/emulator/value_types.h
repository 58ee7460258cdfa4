// Vocabulary of the decoded form: value types, rounding, comparisons, operations.
#pragma once

#include <cstdint>
#include <string_view>

namespace solstice::device {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kBf16,
  kF16x2,
  kBf16x2,
  kTf32,
  kF32,
  kF32x2,
  kF64,
  kU16x2,
  kS16x2,
  kE4m3x2,
  kE5m2x2,
  kE2m1x2,
  kE2m3x2,
  kE3m2x2,
  kUe8m0x2,
};

enum class Rounding : uint8_t { kNone, kNearest, kZero, kDown, kUp, kNearestInt, kZeroInt, kDownInt, kUpInt, kAway };

enum class Compare : uint8_t {
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,  // signed or ordered
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,  // true on NaN
  kNum,
  kNan,
};

enum class Combine : uint8_t { kNone, kAnd, kOr, kXor };

enum class Alu : uint8_t {
  kAdd,
  kSub,
  kMulLo,
  kMulHi,
  kMulWide,
  kMadLo,
  kMadHi,
  kMadWide,
  kMul24Lo,
  kMul24Hi,
  kMad24Lo,
  kMad24Hi,
  kSad,
  kDiv,
  kRem,
  kAbs,
  kNeg,
  kMin,
  kMax,
  kPopc,
  kClz,
  kBfind,
  kBrev,
  kBfe,
  kBfi,
  kBmsk,
  kFns,
  kSzext,
  kShfL,
  kShfR,
  kShl,
  kShr,
  kAnd,
  kOr,
  kXor,
  kNot,
  kCnot,
  kLop3,
  kPrmt,
  kDp4a,
  kDp2a,
  kAddCarry,
  kSubCarry,
  kMadCarryLo,
  kMadCarryHi,  // flags bit 0: reads the carry, bit 1: writes it
  kMul,
  kFma,
  kRcp,
  kSqrt,
  kRsqrt,
  kSin,
  kCos,
  kLg2,
  kEx2,
  kTanh,
  kCopysign,
  kTestp,
  kSetp,
  kSet,
  kSelp,
  kSlct,
  kMov,
  kCvt,
  kSplit,
  kJoin,
  kNarrow,
};

int TypeBytes(Type type);                  // 0 for kPred and kNone
Type TypeFromName(std::string_view name);  // kNone: unknown
constexpr bool IsSigned(Type type) { return (type >= Type::kS8 && type <= Type::kS64) || type == Type::kS16x2; }
constexpr bool IsInteger(Type type) { return type >= Type::kB8 && type <= Type::kS64; }
constexpr bool IsFloat(Type type) { return type >= Type::kF16 && type <= Type::kF64; }

}  // namespace solstice::device
