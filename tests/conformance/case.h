// A case: one form of one PTX instruction in a kernel of its own, with the operand tuples it is run on. One thread
// takes one tuple; what it stores is the tuple's answer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace solstice::conformance {

// By how much two answers of a case may differ. What a manual says of one device's error against the true value is
// doubled by comparing two of them, and each is rounded once: one unit in the last place comes on top.
struct Bound {
  enum class Kind {
    kExact,     // the same bits
    kRelative,  // |x - y| <= value * |y|
    kAbsolute,  // |x - y| <= value
    kUlps,      // units in the last place of y
    kEither,    // absolute or relative, whichever is larger
  };
  Kind kind = Kind::kExact;
  double value = 0;
  std::string meaning;  // where the number comes from
};

// A value that a tuple reads or stores, by the name of its PTX type; "pred" is a byte, "shift" a u32 with counts of
// shifts as edge values.
struct Value {
  std::string type;
  int offset = 0;  // in the tuple's input or answer
};

struct Case {
  std::string group;  // "integer", "conversion", ...
  std::string name;   // "integer/add.u32": unique
  std::string arch = "sm_90a";
  std::string entry;
  std::string ptx;  // the entry and what it needs, without the module's header
  int tuples = 0;   // threads of its one block
  std::vector<Value> operands, results;
  int input_stride = 0, answer_stride = 0;  // bytes of a tuple
  std::vector<uint8_t> input;
  Bound bound;

  size_t AnswerBytes() const { return static_cast<size_t>(tuples) * static_cast<size_t>(answer_stride); }
  // Over all that decides the answer.
  uint64_t Fingerprint() const;
};

// Bytes that a value of the type takes in a tuple; 0: no such type.
int BytesOf(const std::string& type);
// The module's first lines.
std::string ModuleHeader(const std::string& arch);
uint64_t Hash(const void* data, size_t bytes, uint64_t seed = 0xcbf29ce484222325u);

// Every case, in the order of the answer file; the same in every process.
std::vector<Case> AllCases();

}  // namespace solstice::conformance
