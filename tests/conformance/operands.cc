#include "tests/conformance/operands.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/conformance/case.h"

namespace solstice::conformance {
namespace {

const FloatFormat kHalf{10, 5}, kBrain{7, 8}, kTf32{10, 8}, kFloat{23, 8}, kDouble{52, 11}, kE4m3{3, 4, false},
    kE5m2{2, 5}, kE2m1{1, 2, false}, kE2m3{3, 2, false}, kE3m2{2, 3, false};

bool IsPacked(const std::string& type) { return type.size() > 2 && type[type.size() - 2] == 'x'; }
// Of one element of a packed type.
int ElementStride(const std::string& type) { return BytesOf(type) * 8 / (type.back() - '0'); }

std::vector<uint64_t> FloatEdges(const FloatFormat& f) {
  const uint64_t sign = uint64_t{1} << (f.bits() - 1), one = static_cast<uint64_t>(f.bias()) << f.mantissa;
  const uint64_t infinity = ((uint64_t{1} << f.exponent) - 1) << f.mantissa, normal = uint64_t{1} << f.mantissa;
  const uint64_t half_bit = f.mantissa == 0 ? 0 : normal >> 1;
  return {0,
          sign,
          one,
          one | sign,
          infinity,
          infinity | sign,
          infinity | half_bit | 1,  // a quiet NaN with a payload
          1,
          normal - 1,
          normal,
          infinity - 1,
          (infinity - 1) | sign,
          one + 1,
          one | half_bit,
          (normal - 1) | sign,
          normal | sign,
          1 | sign,
          infinity | half_bit | sign,
          one - 1,
          one - normal,  // a half
          (one + normal) | half_bit,
          ((one + normal) | half_bit) | sign,
          one + static_cast<uint64_t>(f.mantissa) * normal,
          (one + static_cast<uint64_t>(f.mantissa + 1) * normal) | 1};
}

std::vector<uint64_t> IntegerEdges(int bits, bool is_signed) {
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1, top = uint64_t{1} << (bits - 1);
  std::vector<uint64_t> edges = {0,
                                 1,
                                 mask,
                                 top,
                                 top - 1,
                                 2,
                                 mask - 1,
                                 top + 1,
                                 7,
                                 mask >> (bits / 2),
                                 (mask >> (bits / 2)) + 1,
                                 uint64_t{0x5555'5555'5555'5555} & mask,
                                 3,
                                 uint64_t{0xaaaa'aaaa'aaaa'aaaa} & mask,
                                 31,
                                 32,
                                 33,
                                 63,
                                 100,
                                 uint64_t{0x0123'4567'89ab'cdef} & mask};
  if (is_signed) edges.push_back((0 - uint64_t{7}) & mask);
  // Where a narrower integer or a float's significand ends.
  for (const int power : {7, 8, 11, 15, 16, 24, 31, 53}) {
    if (power + 1 >= bits) continue;
    for (const int step : {-1, 0, 1}) edges.push_back((uint64_t{1} << power) + static_cast<uint64_t>(step));
    edges.push_back((0 - (uint64_t{1} << power)) & mask);
  }
  return edges;
}

}  // namespace

const FloatFormat* FormatOf(const std::string& type) {
  static const std::map<std::string, const FloatFormat*> kFormats = {
      {"f16", &kHalf},    {"bf16", &kBrain},  {"tf32", &kTf32},    {"f32", &kFloat},
      {"f64", &kDouble},  {"f16x2", &kHalf},  {"bf16x2", &kBrain}, {"e4m3x2", &kE4m3},
      {"e5m2x2", &kE5m2}, {"e2m1x2", &kE2m1}, {"e2m3x2", &kE2m3},  {"e3m2x2", &kE3m2},
      {"e4m3", &kE4m3},   {"e5m2", &kE5m2},   {"e4m3x4", &kE4m3},  {"e5m2x4", &kE5m2}};
  const auto found = kFormats.find(type);
  return found == kFormats.end() ? nullptr : found->second;
}

double DecodeValue(uint64_t code, const FloatFormat& f) {
  const uint64_t fraction = code & ((uint64_t{1} << f.mantissa) - 1);
  const int exponent = static_cast<int>((code >> f.mantissa) & ((uint64_t{1} << f.exponent) - 1));
  double value;
  if (f.has_infinity && exponent == (1 << f.exponent) - 1) {
    value = fraction == 0 ? HUGE_VAL : std::nan("");
  } else if (exponent == 0) {
    value = std::ldexp(static_cast<double>(fraction), 1 - f.bias() - f.mantissa);
  } else {
    value = std::ldexp(static_cast<double>(fraction | (uint64_t{1} << f.mantissa)), exponent - f.bias() - f.mantissa);
  }
  return (code >> (f.bits() - 1)) & 1 ? -value : value;
}

uint64_t EncodeValue(double value, const FloatFormat& f) {
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (f.bits() - 1) : 0;
  const double magnitude = std::fabs(value);
  if (magnitude == 0) return sign;
  const uint64_t infinity = ((uint64_t{1} << f.exponent) - 1) << f.mantissa;
  if (!std::isfinite(magnitude)) return sign | infinity | (std::isnan(value) ? uint64_t{1} << (f.mantissa - 1) : 0);
  const int exponent = std::max(std::ilogb(magnitude), 1 - f.bias());
  const uint64_t scaled = static_cast<uint64_t>(std::llround(std::ldexp(magnitude, f.mantissa - exponent)));
  const uint64_t code = (static_cast<uint64_t>(exponent + f.bias() - 1) << f.mantissa) + scaled;
  return sign | std::min(code, infinity);
}

std::vector<uint64_t> Edges(const std::string& type) {
  if (type == "shift") return {0, 1, 31, 32, 33, 63, 64, 255, 0xffffffff, 8, 16, 24, 15, 17, 5, 256};
  if (type == "pred") return {0, 1};
  if (const FloatFormat* format = FormatOf(type)) {
    std::vector<uint64_t> edges = FloatEdges(*format);
    if (type == "tf32") {
      for (uint64_t& edge : edges) edge <<= 13;
    }
    if (!IsPacked(type)) return edges;
    // Each edge beside another one, so that halves that are mixed up show.
    std::vector<uint64_t> packed;
    const int stride = ElementStride(type), elements = type.back() - '0';
    for (size_t i = 0; i < edges.size(); ++i) {
      uint64_t word = 0;
      for (int e = 0; e < elements; ++e) {
        word |= edges[(i + static_cast<size_t>(e) * 5) % edges.size()] << (e * stride);
      }
      packed.push_back(word);
    }
    return packed;
  }
  if (IsPacked(type)) {  // u16x2, s16x2
    std::vector<uint64_t> packed;
    const std::vector<uint64_t> edges = IntegerEdges(16, type[0] == 's');
    for (size_t i = 0; i < edges.size(); ++i) packed.push_back(edges[i] | edges[(i + 3) % edges.size()] << 16);
    return packed;
  }
  return IntegerEdges(BytesOf(type) * 8, type[0] == 's');
}

std::vector<uint64_t> HalfwayCases(const std::string& source, const std::string& target) {
  const FloatFormat* from = FormatOf(source);
  if (from == nullptr || IsPacked(source)) return {};
  std::vector<double> values;
  if (const FloatFormat* to = FormatOf(target)) {
    if (to->mantissa >= from->mantissa) return {};
    const int least = 1 - to->bias(), most = (1 << to->exponent) - 2 - to->bias();
    for (const int exponent : {0, least, most, most + 1, 3}) {
      for (const double step : {0.5, 1.5, 2.5}) {
        values.push_back(std::ldexp(1 + std::ldexp(step, -to->mantissa), exponent));
      }
    }
    // Between the subnormals, below the least of them, and at the overflow.
    for (const double step : {0.5, 1.5, 2.5, 0.25}) values.push_back(std::ldexp(step, least - to->mantissa));
    values.push_back(std::ldexp(2 - std::ldexp(0.5, -to->mantissa), most));
    values.push_back(std::ldexp(2 - std::ldexp(1.0, -to->mantissa), most));
  } else {
    values = {0.5,   1.5,   2.5,     3.5,     0.25,    0.75,         127.5,
              254.5, 255.5, 32767.5, 65534.5, 65535.5, 2147483647.5, 4294967295.5};
    for (const int power : {7, 8, 15, 16, 31, 32, 63, 64}) values.push_back(std::ldexp(1.0, power));
  }
  std::vector<uint64_t> codes;
  for (const double value : values) {
    const uint64_t code = EncodeValue(value, *from), sign = uint64_t{1} << (from->bits() - 1);
    for (const uint64_t near : {code, code - 1, code + 1}) codes.push_back(near);
    codes.push_back(code | sign);
  }
  return codes;
}

uint64_t RandomValue(const std::string& type, std::mt19937_64& random) {
  const uint64_t word = random();
  if (type == "pred") return word & 1;
  if (type == "shift") return word % 80;
  const int bits = BytesOf(type) * 8;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  const FloatFormat* format = FormatOf(type);
  if (type == "tf32") return (word & 0x7ffff) << 13;
  if (format == nullptr)
    return (random() % 3 == 0 ? word >> (64 - bits) >> (random() % static_cast<uint64_t>(bits)) : word) & mask;
  if (random() % 3 == 0) return word & mask;
  // Of moderate size, so that operands meet: the exponent within a few of the one of 1.
  const int elements = IsPacked(type) ? type.back() - '0' : 1, stride = bits / elements;
  uint64_t value = word & mask;
  for (int e = 0; e < elements; ++e) {
    const uint64_t field = ((uint64_t{1} << format->exponent) - 1) << format->mantissa;
    const int spread = std::min(format->bias() - 1, 6);
    const uint64_t exponent =
        static_cast<uint64_t>(format->bias() - spread) + random() % static_cast<uint64_t>(2 * spread + 1);
    value = (value & ~(field << (e * stride))) | exponent << (format->mantissa + e * stride);
  }
  return value;
}

std::vector<std::vector<uint64_t>> MakeTuples(const std::vector<std::string>& types, const std::string& target,
                                              int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::vector<uint64_t>> edges;
  for (const std::string& type : types) edges.push_back(Edges(type));
  std::vector<std::vector<uint64_t>> tuples;
  const size_t limit = static_cast<size_t>(count) * 3 / 4;
  if (types.size() == 1) {
    std::vector<uint64_t> all = HalfwayCases(types[0], target);
    all.insert(all.begin(), edges[0].begin(), edges[0].end());
    for (size_t i = 0; i < all.size() && i < limit; ++i) tuples.push_back({all[i]});
  } else if (types.size() > 1) {
    // As many edges of each as make all pairs of the first two, and (a Latin square) of either with the others.
    size_t side = 1;
    while ((side + 1) * (side + 1) <= limit) ++side;
    for (size_t i = 0; i < side * side; ++i) {
      std::vector<uint64_t> tuple;
      for (size_t operand = 0; operand < types.size(); ++operand) {
        const size_t at = operand == 0 ? i / side : operand == 1 ? i % side : i / side + (operand - 1) * (i % side);
        tuple.push_back(edges[operand][at % std::min(side, edges[operand].size())]);
      }
      tuples.push_back(std::move(tuple));
    }
  }
  while (tuples.size() < static_cast<size_t>(count)) {
    std::vector<uint64_t> tuple;
    for (const std::string& type : types) tuple.push_back(RandomValue(type, random));
    tuples.push_back(std::move(tuple));
  }
  return tuples;
}

}  // namespace solstice::conformance
