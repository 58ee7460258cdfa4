#include "runtime/catalog/json_field.h"

#include <cmath>

#include "runtime/base/strings.h"

namespace solstice::catalog {

using base::StrCat;
using core::Json;

namespace {
const Json& Null() {
  static const Json* null = new Json();
  return *null;
}
}  // namespace

Field::Field(const Json& json, const Field& parent, std::string path) : Field(json, parent.file_, std::move(path)) {
  if (line_ > 0) return;
  line_ = parent.line_;
  column_ = parent.column_;
}

Status Field::Error(std::string_view reason, std::string_view mend) const {
  return base::InvalidArgument(StrCat(file_, ":", line_, ":", column_, ": ", path_, ": ", reason), mend);
}

Status Field::WrongType(std::string_view what, std::string_view mend) const {
  std::string_view type = json_->type_name();
  bool vowel = type.starts_with('a') || type.starts_with('i') || type.starts_with('o');
  return Error(StrCat("must be ", what, ", not ", json_->is_null() ? "" : vowel ? "an " : "a ", type), mend);
}

StatusOr<Field> Field::Member(std::string_view key) const {
  SOLSTICE_RETURN_IF_ERROR(NeedObject());
  const Json* value = json_->Find(key);
  if (value == nullptr) return Error(StrCat("needs ", base::Quote(key)));
  return Field(*value, *this, path_ + core::JsonPathStep(key));
}

Field Field::Optional(std::string_view key) const {
  const Json* value = json_->Find(key);
  return Field(value == nullptr ? Null() : *value, *this, path_ + core::JsonPathStep(key));
}

Field Field::Element(size_t index) const { return Field(json_->array()[index], *this, StrCat(path_, "[", index, "]")); }

Field Field::Value(const std::pair<std::string, Json>& member) const {
  return Field(member.second, *this, path_ + core::JsonPathStep(member.first));
}

Status Field::NeedObject() const { return json_->is_object() ? absl::OkStatus() : WrongType("an object"); }
Status Field::NeedArray() const { return json_->is_array() ? absl::OkStatus() : WrongType("an array"); }

StatusOr<std::string> Field::String(size_t max_bytes) const {
  if (!json_->is_string()) return WrongType("a string");
  if (json_->string().size() > max_bytes) {
    return Error(StrCat("is ", json_->string().size(), " bytes long, the limit is ", max_bytes));
  }
  return json_->string();
}

StatusOr<int64_t> Field::Integer() const {
  if (json_->is_integer()) return json_->integer();
  if (json_->is_number()) {
    double value = json_->number();
    if (std::fabs(value) >= 9223372036854775808.0) return Error("does not fit 64 bits");
    return Error("must be an integer without fraction or exponent",
                 value == std::floor(value) ? "write 16, not 16.0" : "");
  }
  return WrongType("an integer");
}

StatusOr<double> Field::Number() const {
  if (!json_->is_number()) return WrongType("a number");
  return json_->number();
}

StatusOr<bool> Field::Bool() const {
  if (!json_->is_bool()) return WrongType("true or false");
  return json_->boolean();
}

bool IsIdentifier(std::string_view text) {
  if (text.empty() || text.size() > 128) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
    if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
  }
  for (std::string_view word : {"and", "or", "not", "if", "else", "True", "False"}) {
    if (text == word) return false;
  }
  return true;
}

std::string WhyNotRelativePath(std::string_view path) {
  if (path.empty()) return "is empty";
  if (path.size() > 1024) return "is longer than 1024 bytes";
  for (char c : path) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return "holds a control character";
  }
  if (path.find('\\') != std::string_view::npos) return "holds a backslash";
  if (path.find("://") != std::string_view::npos) return "is a URL";
  if (path.front() == '/') return "is absolute";
  if (path.front() == '~') return "starts with \"~\"";
  if (path.back() == '/') return "ends in a slash";
  bool names_a_file = false;
  for (std::string_view part : base::Split(path, '/')) {
    if (part == "..") return "holds \"..\"";
    if (part.size() > 255) return "holds a name longer than 255 bytes";
    names_a_file = !part.empty() && part != ".";
  }
  return names_a_file ? "" : "names no file";
}

std::string NormalPath(std::string_view path) {
  std::string out;
  for (std::string_view part : base::Split(path, '/')) {
    if (part.empty() || part == ".") continue;
    if (!out.empty()) out += '/';
    out.append(part);
  }
  return out;
}

}  // namespace solstice::catalog
