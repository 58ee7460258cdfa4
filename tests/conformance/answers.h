// What a device answered, case by case, and the file that holds it.
//
// The file, little-endian: "SOLCONF1", the device's name (u16 length, bytes), the number of cases (u32); then for each
// case its name (u16 length, bytes), fingerprint (u64), number of answer bytes (u32; 0: not executed); then the
// answers, in the same order. A tuple's answer is as Case::results says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "tests/conformance/case.h"

namespace solstice::conformance {

struct Answer {
  std::vector<uint8_t> bytes;  // empty: not executed
  std::string why_not;
  bool failed = false;  // it ran, and ended with a fault or a timeout
};

struct Answers {
  std::string device;
  std::map<std::string, Answer> by_name;
  std::map<std::string, uint64_t> fingerprints;
};

std::string Serialise(const std::vector<Case>& cases, const std::vector<Answer>& answers, const std::string& device);
// DATA_LOSS: no such file, or damaged.
StatusOr<Answers> Parse(const std::string& content);

// How one case came out.
struct Comparison {
  enum class Verdict { kEqual, kWithinBound, kDifferent, kNotExecuted, kNoAnswer };
  Verdict verdict = Verdict::kNoAnswer;
  int tuples = 0, equal = 0, within = 0, different = 0;
  std::vector<std::string> examples;  // the first tuples that differ: operands, got, expected
  std::string note;                   // why it was not executed or has no answer
};

Comparison Compare(const Case& c, const Answer& got, const Answer& expected, size_t most_examples = 4);
// Against a file: a case that it lacks, or has for another version of the case, has no answer.
std::vector<Comparison> CompareAll(const std::vector<Case>& cases, const std::vector<Answer>& got,
                                   const Answers& expected, size_t most_examples = 4);
bool AnyDifferent(const std::vector<Comparison>& comparisons);

// By group: cases, tuples, equal, within bound, different, not executed, no answer.
std::string Table(const std::vector<Case>& cases, const std::vector<Comparison>& comparisons);
std::string Json(const std::vector<Case>& cases, const std::vector<Comparison>& comparisons, const std::string& device);

}  // namespace solstice::conformance
