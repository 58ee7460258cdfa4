// Differential fuzzing: random straight-line kernels of integer and floating-point instructions, each run on two
// devices, whose registers at the end must be the same bits.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tests/conformance/runner.h"

namespace solstice::conformance {

// One of the two that are compared.
struct Side {
  Bench* bench = nullptr;
  Assembler* assembler = nullptr;  // of a GPU
  // What the text is changed to before it is loaded; tests make a side wrong with it.
  std::function<std::string(std::string)> rewrite = {};
};

struct RandomKernel {
  std::string entry;
  std::vector<std::string> lines;  // instructions
  std::vector<uint8_t> input;

  std::string Ptx() const;
};
inline constexpr int kFuzzThreads = 64;

RandomKernel MakeRandomKernel(uint64_t seed);
// Whether the sides disagree. `seen` gets words on the first register that differs.
StatusOr<bool> Disagree(const RandomKernel& kernel, const Side& one, const Side& other, std::string* seen);
// Drops instructions as long as the sides disagree.
StatusOr<RandomKernel> Minimise(RandomKernel kernel, const Side& one, const Side& other);

// The program's part: GPU `ordinal` (-1: the emulator as it is) against the emulator (-1: its baseline build), for so
// many seconds. Prints differences, minimised. 1: there were some.
StatusOr<int> Fuzz(int ordinal, double seconds, uint64_t seed);

}  // namespace solstice::conformance
