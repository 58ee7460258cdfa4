// Small text helpers over std types.
#pragma once

#include <charconv>
#include <concepts>
#include <string>
#include <string_view>
#include <vector>

namespace solstice::base {

namespace internal {
inline void Append(std::string& out, std::string_view text) { out.append(text); }
inline void Append(std::string& out, const char* text) { out.append(text); }
inline void Append(std::string& out, const std::string& text) { out.append(text); }
inline void Append(std::string& out, char c) { out.push_back(c); }
inline void Append(std::string& out, bool value) { out.append(value ? "true" : "false"); }
template <typename T>
requires std::integral<T> || std::floating_point<T>
void Append(std::string& out, T value) {
  char buffer[64];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, result.ptr);
}
}  // namespace internal

// Concatenates text, characters, integers and floating point (shortest form that reads back the same).
template <typename... Args>
std::string StrCat(const Args&... args) {
  std::string out;
  (internal::Append(out, args), ...);
  return out;
}

std::string_view Trim(std::string_view text);
std::vector<std::string_view> Split(std::string_view text, char separator);
std::string Join(const std::vector<std::string>& parts, std::string_view separator);
std::string Lower(std::string_view text);
bool IsValidUtf8(std::string_view text);
// `text` in double quotes with control characters and invalid bytes escaped, cut to `limit` bytes; safe in a message.
std::string Quote(std::string_view text, size_t limit = 80);
// The longest prefix of at most `bytes` bytes that ends on a UTF-8 boundary.
std::string_view Utf8Prefix(std::string_view text, size_t bytes);
// The element of `candidates` nearest to `word` by edit distance, or "" if none is near; for "did you mean".
std::string Nearest(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace solstice::base
