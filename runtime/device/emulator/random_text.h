// Random PTX that repeats: what the fuzz tests of the emulator and of its agreement with hardware share.
#pragma once

#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "runtime/base/strings.h"

namespace solstice::device {

// Random choices that repeat.
class Dice {
 public:
  explicit Dice(uint64_t seed) : random_(seed) {}
  uint64_t Word() { return random_(); }
  size_t Below(size_t bound) { return random_() % bound; }
  bool Chance(int percent) { return Below(100) < static_cast<size_t>(percent); }
  template <typename T>
  const T& From(const std::vector<T>& list) {
    return list[Below(list.size())];
  }
  // Values at the edges of integer and float types, often small.
  uint64_t Edge() {
    static constexpr uint64_t kEdges[] = {0,
                                          1,
                                          2,
                                          7,
                                          8,
                                          15,
                                          16,
                                          31,
                                          32,
                                          33,
                                          63,
                                          64,
                                          255,
                                          256,
                                          0x7fff,
                                          0x8000,
                                          0xffff,
                                          0x7fffffff,
                                          0x80000000,
                                          0xffffffff,
                                          0x7f800000,
                                          0x7fc00000,
                                          0x3f800000,
                                          0x00000001'00000000,
                                          0x7fffffff'ffffffff,
                                          0x80000000'00000000,
                                          0xffffffff'ffffffff,
                                          0x7ff00000'00000000,
                                          0x7ff80000'00000000};
    return Chance(70) ? kEdges[Below(std::size(kEdges))] : Word() >> Below(64);
  }

 private:
  std::mt19937_64 random_;
};

// The text with alternatives chosen and registers put in: "{a|b}" is one of the alternatives, @p @h @r @q a predicate
// or a register of 16, 32 or 64 bits (%p0-3, %h0-5, ...), @i an immediate, ^ the '|' of a pair; braces of vectors stay.
inline std::string ExpandTemplate(const std::string& text, Dice& dice) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '{') {
      size_t depth = 1, end = i + 1;
      std::vector<std::string> choices(1);
      for (; depth > 0; ++end) {
        if (text[end] == '{') ++depth;
        if (text[end] == '}') --depth;
        if (depth == 0) continue;
        if (text[end] == '|' && depth == 1) {
          choices.emplace_back();
        } else {
          choices.back() += text[end];
        }
      }
      const bool vector = choices.size() == 1;
      out += vector ? "{" + ExpandTemplate(choices[0], dice) + "}" : ExpandTemplate(dice.From(choices), dice);
      i = end - 1;
    } else if (text[i] == '@' && i + 1 < text.size()) {
      const char kind = text[++i];
      if (kind == 'i') {
        out += base::StrCat(dice.Edge());
      } else {
        out += base::StrCat("%", std::string(1, kind), dice.Below(kind == 'p' ? 4 : 6));
      }
    } else {
      out += text[i] == '^' ? '|' : text[i];
    }
  }
  return out;
}

}  // namespace solstice::device
