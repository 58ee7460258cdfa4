// Operand values: the edges of a type, and random ones that come again.
#pragma once

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace solstice::conformance {

// A binary floating-point format by its fields.
struct FloatFormat {
  int mantissa = 0;  // bits, the hidden one apart
  int exponent = 0;  // bits
  bool has_infinity = true;
  int bias() const { return (1 << (exponent - 1)) - 1; }
  int bits() const { return 1 + exponent + mantissa; }
};
// nullptr: no scalar floating-point type. For a packed type, the format of an element.
const FloatFormat* FormatOf(const std::string& type);
// The value of a code; NaN and infinities included.
double DecodeValue(uint64_t code, const FloatFormat& format);
// The code nearest to a value, ties away; infinity above the largest.
uint64_t EncodeValue(double value, const FloatFormat& format);

// The most telling first.
std::vector<uint64_t> Edges(const std::string& type);
// Values of `source` around the halves between neighbours of `target`, and around its limits; empty where none are.
std::vector<uint64_t> HalfwayCases(const std::string& source, const std::string& target);
uint64_t RandomValue(const std::string& type, std::mt19937_64& random);

// `count` tuples: edges crossed pairwise (no more than three quarters of them), then random ones. `target` is the type
// that a single operand is converted to, or empty.
std::vector<std::vector<uint64_t>> MakeTuples(const std::vector<std::string>& types, const std::string& target,
                                              int count, uint64_t seed);

}  // namespace solstice::conformance
