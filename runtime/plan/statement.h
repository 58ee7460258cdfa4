// Statements of a parsed plan. Internal to this folder.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "runtime/plan/plan.h"

namespace solstice::plan {

inline constexpr int kMaxLets = 64;
inline constexpr int kMaxDefines = 64;
inline constexpr int kMaxScratch = 32;
inline constexpr int kMaxArguments = 256;
inline constexpr int64_t kBufferAlignment = 256;

struct Argument {
  std::string type;  // scalar type; "" for a bare name
  std::string text;  // the name, or the formula inside the parentheses
  std::optional<expr::Formula> formula;
};

struct Statement {
  enum class Kind { kLet, kScratch, kDefine, kMemset, kLaunch };
  enum class When { kAlways, kCondition, kElse };

  Kind kind = Kind::kLet;
  std::string file;
  int line = 0;
  std::string name;  // let, scratch, define: the name; memset: the buffer; launch: the kernel as written
  std::optional<expr::Formula> value;  // let, scratch, define; memset: the byte
  std::optional<expr::Formula> bytes;  // memset
  When when = When::kAlways;
  std::optional<expr::Formula> condition;
  std::vector<expr::Formula> grid, block;  // launch: 1 to 3 each
  std::optional<expr::Formula> shared;
  std::vector<Argument> args;
};

// "kernel.cu:12".
std::string Where(const Statement& statement);

// What a status inside planning means: INVALID_ARGUMENT is INVALID_SUBMISSION, RESOURCE_EXHAUSTED is RESOURCE_EXCEEDED,
// NOT_FOUND (a kernel) is COMPILE_ERROR. Any other code is our own failure and is returned as it is.
StatusOr<Rejection> RejectionFrom(const Status& status);

// i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64 bool.
struct ScalarType {
  std::string_view name;
  int bytes;
  bool is_float;
};
const ScalarType* FindScalarType(std::string_view name);
std::vector<std::string> ScalarTypeNames();
// The scalar type that carries a definition's scalar input; nullptr for those with none (float8, float4).
const ScalarType* ScalarTypeOf(v1::DType dtype);
// `value` as the bytes of a parameter, little endian. INVALID_ARGUMENT if it does not fit.
StatusOr<std::string> EncodeScalar(const ScalarType& type, const expr::Value& value);

// Names that every formula can use: sm_count, max_shared, l2_bytes, arch.
std::vector<std::pair<std::string, int64_t>> DeviceNames(const v1::DeviceProperties& device);
bool IsDeviceName(std::string_view name);

}  // namespace solstice::plan
