// An order-keeping JSON document, its strict reader, RFC 8785 canonical text, and a writer.
//
// The reader is for hostile text: RFC 8259, UTF-8 only (a leading BOM is stripped), duplicate keys refused, NaN and
// Infinity refused, nesting at most kMaxJsonDepth, at most kMaxJsonValues values, numbers that overflow a double
// refused, lone surrogates refused. Integers without fraction or exponent that fit are exact int64; everything else
// numeric is a double. Errors are INVALID_ARGUMENT "<file>:<line>:<column>: <JSON path>: <reason>" (1-based, columns
// count bytes). json.cc is the only translation unit that includes the JSON library.
//
// A Json is a value: copies are deep, a const one may be read from several threads.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "runtime/base/status.h"

namespace solstice::core {

inline constexpr int kMaxJsonDepth = 64;
inline constexpr int64_t kMaxJsonValues = 1'000'000;

class Json {
 public:
  using Array = std::vector<Json>;
  using Object = std::vector<std::pair<std::string, Json>>;  // in the order of the text

  Json() = default;  // null
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(int value) : value_(static_cast<int64_t>(value)) {}
  Json(int64_t value) : value_(value) {}
  Json(double value) : value_(value) {}
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(Array value) : value_(std::move(value)) {}
  Json(Object value) : value_(std::move(value)) {}

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_integer() const { return std::holds_alternative<int64_t>(value_); }
  bool is_number() const { return is_integer() || std::holds_alternative<double>(value_); }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Each needs the matching is_*().
  bool boolean() const { return std::get<bool>(value_); }
  int64_t integer() const { return std::get<int64_t>(value_); }
  double number() const { return is_integer() ? static_cast<double>(integer()) : std::get<double>(value_); }
  const std::string& string() const { return std::get<std::string>(value_); }
  const Array& array() const { return std::get<Array>(value_); }
  Array& array() { return std::get<Array>(value_); }
  const Object& object() const { return std::get<Object>(value_); }
  Object& object() { return std::get<Object>(value_); }

  // Member `key` of an object; nullptr if there is none or this is no object.
  const Json* Find(std::string_view key) const;
  // Appends or replaces a member; makes a null an object.
  Json& Set(std::string key, Json value);

  // Where this value starts in its text, 1-based, the column in bytes; 0 if it was not parsed.
  int line() const { return line_; }
  int column() const { return column_; }

  // "null", "boolean", "integer", "number", "string", "array", "object".
  std::string_view type_name() const;

  // Compact or indented text in member order. Doubles print in the shortest form that reads back; NaN and infinities,
  // which JSON lacks, print as null.
  std::string Text(int indent = 0) const;
  // RFC 8785 (JCS): sorted keys, ECMAScript numbers. One deliberate difference: an integer beyond 2^53 keeps all its
  // digits instead of being rounded to a double, so that equal text means equal values.
  std::string Canonical() const;

 private:
  friend class JsonBuilder;

  std::variant<std::monostate, bool, int64_t, double, std::string, Array, Object> value_;
  int line_ = 0, column_ = 0;
};

// `key` as a step of a JSON path: ".name", or ["two words"].
std::string JsonPathStep(std::string_view key);

// `file` names the text in errors; `first_line` is the line number of its first line (JSON Lines).
StatusOr<Json> ParseJson(std::string_view text, std::string_view file, int first_line = 1);

}  // namespace solstice::core
