#include "runtime/core/json.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <iterator>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "runtime/base/strings.h"

namespace solstice::core {

using base::StrCat;

namespace {

// Feeds the parser and counts what it has taken, so that every value knows its line.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, const char** taken) : at_(at), taken_(taken) {}
  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    *taken_ = ++at_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator old = *this;
    ++*this;
    return old;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }
  bool operator!=(const CountingIterator& other) const { return at_ != other.at_; }

 private:
  const char* at_;
  const char** taken_;
};

}  // namespace

// The SAX handler: builds the document and refuses what RFC 8259 leaves open.
class JsonBuilder {
 public:
  JsonBuilder(std::string_view text, std::string_view file, int first_line)
      : text_(text),
        file_(file),
        taken_(text.data()),
        previous_(text.data()),
        line_start_(text.data()),
        line_(first_line) {}

  const char** taken() { return &taken_; }
  Status status() const { return status_; }
  Json TakeRoot() { return std::move(root_); }

  bool null() { return Add(Json()); }
  bool boolean(bool value) { return Add(Json(value)); }
  bool number_integer(int64_t value) { return Add(Json(value)); }
  bool number_unsigned(uint64_t value) {
    if (value <= static_cast<uint64_t>(INT64_MAX)) return Add(Json(static_cast<int64_t>(value)));
    return Add(Json(static_cast<double>(value)));
  }
  bool number_float(double value, const std::string&) { return Add(Json(value)); }
  bool string(std::string& value) { return Add(Json(std::move(value))); }
  bool binary(std::vector<uint8_t>&) { return false; }  // no such thing in text
  bool start_object(size_t) { return Open(Json(Json::Object())); }
  bool end_object() { return Close(); }
  bool start_array(size_t) { return Open(Json(Json::Array())); }
  bool end_array() { return Close(); }
  bool key(std::string& key) {
    Level& level = levels_.back();
    const char* start = TokenStart();
    bool added = level.keys.insert(key).second;
    level.key = std::move(key);
    return added || FailAt(start, "duplicate key", "keep one of the two");
  }

  bool parse_error(size_t position, const std::string& last_token, const nlohmann::detail::exception& error) {
    std::string_view what = error.what();
    // "[json.exception.parse_error.101] parse error at line 1, column 3: syntax error ...; last read: '...'"
    if (size_t at = what.find("column "); at != std::string_view::npos) {
      if (size_t colon = what.find(": ", at); colon != std::string_view::npos) what.remove_prefix(colon + 2);
    } else if (size_t bracket = what.find("] "); bracket != std::string_view::npos) {
      what.remove_prefix(bracket + 2);
    }
    what = what.substr(0, what.find("; last read"));
    if (what.starts_with("number overflow")) what = "the number overflows a double";
    const char* at = text_.data() + std::min(position == 0 ? 0 : position - 1, text_.size());
    const char* word = at;
    while (word > text_.data() && std::isalpha(static_cast<unsigned char>(word[-1]))) --word;
    std::string_view rest(word, static_cast<size_t>(text_.data() + text_.size() - word));
    std::string_view mend;
    if (rest.starts_with("NaN") || rest.starts_with("Inf")) mend = "NaN and infinities are not JSON";
    std::string_view token = last_token;
    if (token.size() > 24) token.remove_prefix(token.size() - 24);
    std::string near = token.empty() || !base::IsValidUtf8(token) ? "" : StrCat(", near ", base::Quote(token, 40));
    return FailAt(at, StrCat(base::Utf8Prefix(what, 200), near), mend);
  }

 private:
  struct Level {
    Json* container;
    std::string key;                       // of the member being read
    std::unordered_set<std::string> keys;  // of an object
  };

  Json* Place(Json value) {
    if (levels_.empty()) {
      root_ = std::move(value);
      return &root_;
    }
    Level& level = levels_.back();
    if (level.container->is_array()) return &level.container->array().emplace_back(std::move(value));
    return &level.container->object().emplace_back(level.key, std::move(value)).second;
  }

  bool Add(Json value) {
    SetPosition(value);
    if (++values_ > kMaxJsonValues) return FailAt(taken_, StrCat("more than ", kMaxJsonValues, " values"));
    Place(std::move(value));
    return true;
  }

  bool Open(Json value) {
    SetPosition(value);
    if (++values_ > kMaxJsonValues) return FailAt(taken_, StrCat("more than ", kMaxJsonValues, " values"));
    if (levels_.size() >= static_cast<size_t>(kMaxJsonDepth)) {
      return FailAt(taken_ - 1, StrCat("nested more than ", kMaxJsonDepth, " deep"));
    }
    // A container's address is stable while it is open: its parent grows only after it is closed.
    Json* placed = Place(std::move(value));
    levels_.push_back({placed, {}, {}});
    return true;
  }

  bool Close() {
    previous_ = taken_;
    levels_.pop_back();
    return true;
  }

  // The first character of the token just read: what follows the previous one but white space and separators.
  const char* TokenStart() {
    const char* start = previous_;
    while (start < taken_ && std::string_view(" \t\r\n,:").find(*start) != std::string_view::npos) {
      if (*start++ != '\n') continue;
      ++line_;
      line_start_ = start;
    }
    previous_ = taken_;
    return start;
  }

  void SetPosition(Json& value) {
    const char* start = TokenStart();
    value.line_ = line_;
    value.column_ = static_cast<int>(start - line_start_) + 1;
  }

  std::string Path() const {
    std::string path = "$";
    for (size_t i = 0; i < levels_.size(); ++i) {
      const Level& level = levels_[i];
      if (level.container->is_array()) {
        // An open container within is already its last element.
        path += StrCat("[", level.container->array().size() - (i + 1 < levels_.size() ? 1 : 0), "]");
      } else if (!level.keys.empty()) {
        path += JsonPathStep(level.key);
      }
      if (path.size() > 200) return path + "...";
    }
    return path;
  }

  bool FailAt(const char* at, std::string_view reason, std::string_view mend = {}) {
    std::string_view before(text_.data(), static_cast<size_t>(at - text_.data()));
    int64_t line = first_line_ + std::count(before.begin(), before.end(), '\n');
    size_t start = before.rfind('\n');
    size_t column = start == std::string_view::npos ? before.size() + 1 : before.size() - start;
    status_ = base::InvalidArgument(StrCat(file_, ":", line, ":", column, ": ", Path(), ": ", reason), mend);
    return false;
  }

  std::string_view text_, file_;
  const char* taken_;       // one past what the parser has read; after a number, one past the character that ended it
  const char* previous_;    // taken_ when the previous token ended
  const char* line_start_;  // of line_
  int line_;
  const int first_line_ = line_;
  int64_t values_ = 0;
  Json root_;
  std::vector<Level> levels_;
  Status status_;
};

StatusOr<Json> ParseJson(std::string_view text, std::string_view file, int first_line) {
  constexpr std::string_view kBom = "\xEF\xBB\xBF";
  if (text.starts_with(kBom)) text.remove_prefix(kBom.size());
  // The library would take a second mark for the first.
  if (text.starts_with(kBom)) {
    return base::InvalidArgument(StrCat(file, ":", first_line, ":1: $: a second byte order mark"));
  }
  JsonBuilder builder(text, file, first_line);
  CountingIterator begin(text.data(), builder.taken()), end(text.data() + text.size(), builder.taken());
  bool parsed = nlohmann::json::sax_parse(begin, end, &builder);
  if (!builder.status().ok()) return builder.status();
  if (!parsed) return base::InvalidArgument(StrCat(file, ":", first_line, ":1: $: not JSON"));
  return builder.TakeRoot();
}

std::string JsonPathStep(std::string_view key) {
  bool plain = !key.empty() && key.size() <= 128;
  for (char c : key) plain = plain && (std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-');
  return plain ? StrCat(".", key) : StrCat("[", base::Quote(key), "]");
}

namespace {

void AppendString(std::string& out, std::string_view text) {
  out += '"';
  while (!text.empty()) {
    unsigned char c = static_cast<unsigned char>(text[0]);
    size_t length = 1;
    if (c == '"' || c == '\\') {
      out += '\\';
      out += static_cast<char>(c);
    } else if (c < 0x20) {
      constexpr std::string_view kShort = "\b\t\n\f\r", kLetters = "btnfr";
      if (size_t at = kShort.find(static_cast<char>(c)); at != std::string_view::npos) {
        out += '\\';
        out += kLetters[at];
      } else {
        constexpr char kHex[] = "0123456789abcdef";
        out += "\\u00";
        out += kHex[c >> 4];
        out += kHex[c & 15];
      }
    } else if (c < 0x80) {
      out += static_cast<char>(c);
    } else {
      // A well-formed sequence of 2 to 4 bytes, else the replacement character: what we write is always UTF-8.
      for (length = 2; length <= 4 && length <= text.size(); ++length) {
        if (base::IsValidUtf8(text.substr(0, length))) break;
      }
      if (length <= 4 && length <= text.size()) {
        out.append(text.substr(0, length));
      } else {
        out += "\xEF\xBF\xBD";
        length = 1;
      }
    }
    text.remove_prefix(length);
  }
  out += '"';
}

// ECMAScript's Number::toString (ECMA-262, 6.1.6.1.20): the shortest digits that read back, its own layout.
void AppendNumber(std::string& out, double value) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  if (value == 0) {
    out += '0';
    return;
  }
  if (value < 0) out += '-';
  char buffer[40];
  auto end = std::to_chars(buffer, buffer + sizeof buffer, std::fabs(value), std::chars_format::scientific).ptr;
  std::string_view text(buffer, static_cast<size_t>(end - buffer));
  size_t e = text.find('e');
  int exponent = 0;
  std::string_view power = text.substr(e + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  std::from_chars(power.data(), power.data() + power.size(), exponent);
  std::string digits(1, text[0]);
  if (e > 1) digits.append(text.substr(2, e - 2));
  int count = static_cast<int>(digits.size()), point = exponent + 1;  // the value is 0.digits * 10^point
  if (count <= point && point <= 21) {
    out += digits;
    out.append(static_cast<size_t>(point - count), '0');
  } else if (0 < point && point <= 21) {
    out.append(digits, 0, static_cast<size_t>(point));
    out += '.';
    out.append(digits, static_cast<size_t>(point));
  } else if (-6 < point && point <= 0) {
    out += "0.";
    out.append(static_cast<size_t>(-point), '0');
    out += digits;
  } else {
    out += digits[0];
    if (count > 1) {
      out += '.';
      out.append(digits, 1);
    }
    out += StrCat(exponent < 0 ? "e-" : "e+", std::abs(exponent));
  }
}

// RFC 8785 sorts by UTF-16 code units. UTF-8 order differs from it only in that a surrogate pair (four bytes) comes
// before U+E000 to U+FFFF (lead bytes EE and EF).
bool KeyLess(std::string_view a, std::string_view b) {
  size_t common = 0, shorter = std::min(a.size(), b.size());
  while (common < shorter && a[common] == b[common]) ++common;
  if (common == shorter) return a.size() < b.size();
  auto rank = [](char c) {
    int byte = static_cast<unsigned char>(c);
    return byte >= 0xF0 ? 0xED * 2 + 1 : byte * 2;
  };
  int left = rank(a[common]), right = rank(b[common]);
  return left != right ? left < right : static_cast<unsigned char>(a[common]) < static_cast<unsigned char>(b[common]);
}

// `indent` < 0: canonical; 0: compact in member order; else indented.
void Append(std::string& out, const Json& json, int indent, int depth) {
  auto line_break = [&](int levels) {
    if (indent <= 0) return;
    out += '\n';
    out.append(static_cast<size_t>(indent) * static_cast<size_t>(levels), ' ');
  };
  if (json.is_null()) {
    out += "null";
  } else if (json.is_bool()) {
    out += json.boolean() ? "true" : "false";
  } else if (json.is_integer()) {
    out += StrCat(json.integer());
  } else if (json.is_number()) {
    AppendNumber(out, json.number());
  } else if (json.is_string()) {
    AppendString(out, json.string());
  } else if (json.is_array()) {
    out += '[';
    for (size_t i = 0; i < json.array().size(); ++i) {
      if (i > 0) out += ',';
      line_break(depth + 1);
      Append(out, json.array()[i], indent, depth + 1);
    }
    if (!json.array().empty()) line_break(depth);
    out += ']';
  } else {
    std::vector<const std::pair<std::string, Json>*> members;
    for (const auto& member : json.object()) members.push_back(&member);
    if (indent < 0) {
      std::sort(members.begin(), members.end(), [](auto* a, auto* b) { return KeyLess(a->first, b->first); });
    }
    out += '{';
    for (size_t i = 0; i < members.size(); ++i) {
      if (i > 0) out += ',';
      line_break(depth + 1);
      AppendString(out, members[i]->first);
      out += indent > 0 ? ": " : ":";
      Append(out, members[i]->second, indent, depth + 1);
    }
    if (!members.empty()) line_break(depth);
    out += '}';
  }
}

}  // namespace

const Json* Json::Find(std::string_view key) const {
  if (!is_object()) return nullptr;
  for (const auto& [name, value] : object()) {
    if (name == key) return &value;
  }
  return nullptr;
}

Json& Json::Set(std::string key, Json value) {
  if (is_null()) value_ = Object();
  for (auto& [name, old] : object()) {
    if (name == key) return old = std::move(value);
  }
  return object().emplace_back(std::move(key), std::move(value)).second;
}

std::string_view Json::type_name() const {
  constexpr std::string_view kNames[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
  return kNames[value_.index()];
}

std::string Json::Text(int indent) const {
  std::string out;
  Append(out, *this, std::max(indent, 0), 0);
  return out;
}

std::string Json::Canonical() const {
  std::string out;
  Append(out, *this, -1, 0);
  return out;
}

}  // namespace solstice::core
