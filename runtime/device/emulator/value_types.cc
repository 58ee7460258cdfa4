#include "runtime/device/emulator/value_types.h"

#include <array>
#include <utility>

namespace solstice::device {
namespace {

struct TypeRow {
  std::string_view name;
  Type type;
  int bytes;
};

constexpr std::array<TypeRow, 30> kTypes = {{
    {"pred", Type::kPred, 0},     {"b8", Type::kB8, 1},           {"b16", Type::kB16, 2},
    {"b32", Type::kB32, 4},       {"b64", Type::kB64, 8},         {"b128", Type::kB128, 16},
    {"u8", Type::kU8, 1},         {"u16", Type::kU16, 2},         {"u32", Type::kU32, 4},
    {"u64", Type::kU64, 8},       {"s8", Type::kS8, 1},           {"s16", Type::kS16, 2},
    {"s32", Type::kS32, 4},       {"s64", Type::kS64, 8},         {"f16", Type::kF16, 2},
    {"bf16", Type::kBf16, 2},     {"f16x2", Type::kF16x2, 4},     {"bf16x2", Type::kBf16x2, 4},
    {"tf32", Type::kTf32, 4},     {"f32", Type::kF32, 4},         {"f64", Type::kF64, 8},
    {"f32x2", Type::kF32x2, 8},   {"ue8m0x2", Type::kUe8m0x2, 2}, {"u16x2", Type::kU16x2, 4},
    {"s16x2", Type::kS16x2, 4},   {"e4m3x2", Type::kE4m3x2, 2},   {"e5m2x2", Type::kE5m2x2, 2},
    {"e2m1x2", Type::kE2m1x2, 1}, {"e2m3x2", Type::kE2m3x2, 2},   {"e3m2x2", Type::kE3m2x2, 2},
}};

}  // namespace

int TypeBytes(Type type) {
  for (const TypeRow& row : kTypes) {
    if (row.type == type) return row.bytes;
  }
  return 0;
}

Type TypeFromName(std::string_view name) {
  for (const TypeRow& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return Type::kNone;
}

}  // namespace solstice::device
