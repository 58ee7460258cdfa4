// A value of a public JSON file together with where it stands, so that every error can say file, line and path.
// Internal to the catalogue.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/core/json.h"

namespace solstice::catalog {

// Points into a document that outlives it. Cheap to copy.
class Field {
 public:
  Field(const core::Json& json, std::string_view file, std::string path = "$")
      : json_(&json), file_(file), path_(std::move(path)), line_(json.line()), column_(json.column()) {}

  const core::Json& json() const { return *json_; }
  const std::string& path() const { return path_; }
  std::string_view file() const { return file_; }

  // INVALID_ARGUMENT "<file>:<line>:<column>: <path>: <reason>".
  Status Error(std::string_view reason, std::string_view mend = {}) const;
  // "must be <what>, not a string".
  Status WrongType(std::string_view what, std::string_view mend = {}) const;

  // Member `key` of an object: missing is an error, or with Optional a null that is not present().
  StatusOr<Field> Member(std::string_view key) const;
  Field Optional(std::string_view key) const;
  bool present() const { return !json_->is_null(); }
  Field Element(size_t index) const;
  Field Value(const std::pair<std::string, core::Json>& member) const;

  Status NeedObject() const;
  Status NeedArray() const;
  StatusOr<std::string> String(size_t max_bytes = 4096) const;
  StatusOr<int64_t> Integer() const;
  StatusOr<double> Number() const;
  StatusOr<bool> Bool() const;

 private:
  // A value that may be missing stands where its parent does.
  Field(const core::Json& json, const Field& parent, std::string path);

  const core::Json* json_;
  std::string_view file_;
  std::string path_;
  int line_, column_;
};

// [A-Za-z_][A-Za-z0-9_]{0,127} and no word of the formula language.
bool IsIdentifier(std::string_view text);
// Relative, forward slashes, no ".." component, no backslash, control character, URL scheme or leading "~", no trailing
// slash, at most 1024 bytes. "./a" and "a//b" are plain. Returns why not, or "".
std::string WhyNotRelativePath(std::string_view path);
// "./a//b" as "a/b". `path` has passed WhyNotRelativePath.
std::string NormalPath(std::string_view path);

}  // namespace solstice::catalog
