#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "runtime/base/strings.h"
#include "tests/conformance/answers.h"
#include "tests/conformance/operands.h"

namespace solstice::conformance {
namespace {

using base::StrCat;
using Verdict = Comparison::Verdict;

std::string Hex(uint64_t value, int bytes) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%0*llx", bytes * 2, static_cast<unsigned long long>(value));
  return text;
}

uint64_t Bits(const uint8_t* tuple, const Value& value) {
  uint64_t bits = 0;
  std::memcpy(&bits, tuple + value.offset, static_cast<size_t>(BytesOf(value.type)));
  return bits;
}

std::string Describe(const uint8_t* tuple, const std::vector<Value>& values) {
  std::string text;
  for (const Value& value : values) {
    text += StrCat(text.empty() ? "" : " ", Hex(Bits(tuple, value), BytesOf(value.type)));
  }
  return text;
}

// One unit in the last place of `value`.
double Ulp(double value, const FloatFormat& format) {
  const int exponent = value == 0 ? 1 - format.bias() : std::max(std::ilogb(value), 1 - format.bias());
  return std::ldexp(1.0, exponent - format.mantissa);
}

// Special values must be the same bits; of finite ones each was within the bound of the true value, and rounded.
bool ElementWithin(uint64_t got, uint64_t expected, const FloatFormat& format, const Bound& bound) {
  const double x = DecodeValue(got, format), y = DecodeValue(expected, format);
  if (!std::isfinite(x) || !std::isfinite(y)) return got == expected;
  const double ulp = Ulp(y, format);
  double allowed = 0;
  switch (bound.kind) {
    case Bound::Kind::kExact:
      return got == expected;
    case Bound::Kind::kRelative:
      allowed = 2 * bound.value * std::fabs(y);
      break;
    case Bound::Kind::kAbsolute:
      allowed = 2 * bound.value;
      break;
    case Bound::Kind::kUlps:
      allowed = 2 * bound.value * ulp;
      break;
    case Bound::Kind::kEither:
      allowed = 2 * bound.value * std::max(1.0, std::fabs(y));
      break;
  }
  return std::fabs(x - y) <= allowed + ulp;
}

bool ValueWithin(uint64_t got, uint64_t expected, const std::string& type, const Bound& bound) {
  if (got == expected) return true;
  const FloatFormat* format = FormatOf(type);
  if (format == nullptr || bound.kind == Bound::Kind::kExact) return false;
  const int bits = BytesOf(type) * 8, stride = std::min(bits, format->bits());
  for (int at = 0; at < bits; at += stride) {
    const uint64_t mask = stride == 64 ? ~uint64_t{0} : (uint64_t{1} << stride) - 1;
    if (!ElementWithin(got >> at & mask, expected >> at & mask, *format, bound)) return false;
  }
  return true;
}

std::string Escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return StrCat("\"", out, "\"");
}

const char* Name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kEqual:
      return "equal";
    case Verdict::kWithinBound:
      return "within bound";
    case Verdict::kDifferent:
      return "different";
    case Verdict::kNotExecuted:
      return "not executed";
    case Verdict::kNoAnswer:
      return "no answer";
  }
  return "";
}

struct Totals {
  int cases = 0, tuples = 0, equal = 0, within = 0, different = 0, not_executed = 0, no_answer = 0;
  void Add(const Comparison& c) {
    ++cases;
    tuples += c.tuples;
    equal += c.equal;
    within += c.within;
    different += c.different;
    not_executed += c.verdict == Verdict::kNotExecuted;
    no_answer += c.verdict == Verdict::kNoAnswer;
  }
};

}  // namespace

Comparison Compare(const Case& c, const Answer& got, const Answer& expected, size_t most_examples) {
  Comparison result;
  if (got.failed) {
    result.verdict = Verdict::kDifferent;
    result.tuples = result.different = c.tuples;
    result.examples = {got.why_not};
    return result;
  }
  if (got.bytes.empty()) {
    result.verdict = Verdict::kNotExecuted;
    result.note = got.why_not;
    return result;
  }
  if (expected.bytes.size() != got.bytes.size()) {
    result.note = expected.bytes.empty() ? expected.why_not : "the recorded answer has another size";
    return result;
  }
  for (int i = 0; i < c.tuples; ++i) {
    const uint8_t* mine = got.bytes.data() + i * c.answer_stride;
    const uint8_t* theirs = expected.bytes.data() + i * c.answer_stride;
    ++result.tuples;
    bool same = true, within = true;
    for (const Value& value : c.results) {
      const uint64_t x = Bits(mine, value), y = Bits(theirs, value);
      same &= x == y;
      within &= ValueWithin(x, y, value.type, c.bound);
    }
    if (same) {
      ++result.equal;
    } else if (within) {
      ++result.within;
    } else {
      ++result.different;
      if (result.examples.size() < most_examples) {
        result.examples.push_back(StrCat("tuple ", i, ": ", Describe(c.input.data() + i * c.input_stride, c.operands),
                                         " -> ", Describe(mine, c.results), ", expected ",
                                         Describe(theirs, c.results)));
      }
    }
  }
  result.verdict = result.different > 0 ? Verdict::kDifferent
                   : result.within > 0  ? Verdict::kWithinBound
                                        : Verdict::kEqual;
  return result;
}

std::vector<Comparison> CompareAll(const std::vector<Case>& cases, const std::vector<Answer>& got,
                                   const Answers& expected, size_t most_examples) {
  std::vector<Comparison> comparisons;
  for (size_t i = 0; i < cases.size(); ++i) {
    const auto found = expected.by_name.find(cases[i].name);
    Answer none;
    if (found == expected.by_name.end()) {
      none.why_not = "the file has no such case: record it anew";
    } else if (expected.fingerprints.at(cases[i].name) != cases[i].Fingerprint()) {
      none.why_not = "the case has changed since: record it anew";
    }
    comparisons.push_back(Compare(cases[i], got[i], none.why_not.empty() ? found->second : none, most_examples));
  }
  return comparisons;
}

bool AnyDifferent(const std::vector<Comparison>& comparisons) {
  return std::any_of(comparisons.begin(), comparisons.end(),
                     [](const Comparison& c) { return c.verdict == Verdict::kDifferent; });
}

std::string Table(const std::vector<Case>& cases, const std::vector<Comparison>& comparisons) {
  std::vector<std::pair<std::string, Totals>> rows;
  Totals all;
  for (size_t i = 0; i < cases.size(); ++i) {
    if (rows.empty() || rows.back().first != cases[i].group) rows.push_back({cases[i].group, {}});
    rows.back().second.Add(comparisons[i]);
    all.Add(comparisons[i]);
  }
  rows.push_back({"all", all});
  char line[160];
  const char* const kFormat = "%-12s %7s %8s %8s %12s %10s %13s %10s\n";
  std::snprintf(line, sizeof line, kFormat, "class", "cases", "tuples", "equal", "within bound", "different",
                "not executed", "no answer");
  std::string text = line;
  for (const auto& [name, t] : rows) {
    std::snprintf(line, sizeof line, "%-12s %7d %8d %8d %12d %10d %13d %10d\n", name.c_str(), t.cases, t.tuples,
                  t.equal, t.within, t.different, t.not_executed, t.no_answer);
    text += line;
  }
  return text;
}

std::string Json(const std::vector<Case>& cases, const std::vector<Comparison>& comparisons,
                 const std::string& device) {
  std::string text = StrCat("{\"device\": ", Escaped(device), ", \"cases\": [");
  for (size_t i = 0; i < cases.size(); ++i) {
    const Comparison& c = comparisons[i];
    text += StrCat(i == 0 ? "\n" : ",\n", "  {\"name\": ", Escaped(cases[i].name),
                   ", \"verdict\": ", Escaped(Name(c.verdict)), ", \"tuples\": ", c.tuples, ", \"equal\": ", c.equal,
                   ", \"within\": ", c.within, ", \"different\": ", c.different);
    if (!c.note.empty()) text += StrCat(", \"note\": ", Escaped(c.note));
    if (!cases[i].bound.meaning.empty()) text += StrCat(", \"bound\": ", Escaped(cases[i].bound.meaning));
    if (!c.examples.empty()) {
      std::vector<std::string> quoted;
      for (const std::string& example : c.examples) quoted.push_back(Escaped(example));
      text += StrCat(", \"examples\": [", base::Join(quoted, ", "), "]");
    }
    text += "}";
  }
  return text + "\n]}\n";
}

}  // namespace solstice::conformance
