// Makes cases of rows: a form's name, what it reads and stores, and the instruction.
//
// Names and texts have alternatives in braces: "{add|sub}.{u32|s32}" is four forms, and "[0]", "[1]" in the types or
// the text stand for what the first, second, ... pair of braces of the name became. In a text, %o0.. are the results,
// %i0.. the operands, loaded and stored by the kernel; besides there are
//   %src    address of the tuple's input          %own    address of 16 zeroed bytes of the thread's own
//   %common address of 4096 zeroed bytes of all   %mine   address of 16 bytes of shared memory of the thread's own
//   %t      the thread's index                    $E      the entry's name, for names of the module
// and registers %p0-7 (predicates), %h0-7, %r0-15, %q0-7 (16, 32, 64 bits). Shared memory is `$E_shared` (8192 bytes),
// local memory `near` (64 bytes), constants `$E_table` (64 bytes, byte i is 3 i + 128), the parameter `extra` (32
// bytes, byte i is 7 i + 120).
#pragma once

#include <string>
#include <vector>

#include "tests/conformance/case.h"

namespace solstice::conformance {

struct Row {
  std::string name;
  std::string results;      // types, separated by blanks
  std::string operands;     // types, separated by blanks
  std::string text = "";    // empty: the name as the instruction, results and operands in order
  int tuples = 0;           // 0: 256, or 128 for a single operand
  std::string prefix = "";  // declarations of the module before the entry
  Bound bound = {};
  std::string arch = "sm_90a";
};

inline constexpr int kOwnBytes = 16, kCommonBytes = 4096;
inline constexpr int kMostTuples = 256;
inline constexpr int kExtraBytes = 32;

// The text with each choice of alternatives; `chosen` gets what the braces became, in order.
struct Expanded {
  std::string text;
  std::vector<std::string> chosen;
};
std::vector<Expanded> Alternatives(const std::string& text);

// One case a combination of alternatives. With `input`, one vector a tuple, instead of values made from the types.
void AddRow(const std::string& group, const Row& row, std::vector<Case>* cases,
            const std::vector<std::vector<uint64_t>>& input = {});
void AddRows(const std::string& group, const std::vector<Row>& rows, std::vector<Case>* cases);

// The groups, a file or two each.
void AddInteger(std::vector<Case>* cases);
void AddBits(std::vector<Case>* cases);
void AddComparison(std::vector<Case>* cases);
void AddConversion(std::vector<Case>* cases);
void AddFloat(std::vector<Case>* cases);
void AddApproximate(std::vector<Case>* cases);
void AddWarp(std::vector<Case>* cases);
void AddAtomic(std::vector<Case>* cases);
void AddMemory(std::vector<Case>* cases);
void AddControl(std::vector<Case>* cases);
void AddMatrix(std::vector<Case>* cases);
void AddAsync(std::vector<Case>* cases);

}  // namespace solstice::conformance
