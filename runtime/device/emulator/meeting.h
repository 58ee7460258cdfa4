// How the lanes of a warp operation meet. Groups that arrive early wait; the last one executes it for all, also when
// they stand at different places of the program.
#pragma once

#include <vector>

#include "runtime/device/emulator/warp.h"

namespace solstice::device {

template <typename F>
void ForMask(uint32_t mask, F f) {
  for (; mask != 0; mask &= mask - 1) f(__builtin_ctz(mask));
}

// Lanes that take part at one place.
struct Part {
  uint32_t mask;
  const Op* op;
  Frame* frame;
};

template <typename T>
const T* Read(const Warp& w, const Part& part, uint32_t operand) {
  const uint8_t* base = operand & kConstantBit ? w.bases[1] : part.frame->registers;
  return reinterpret_cast<const T*>(base + (operand & ~kConstantBit));
}
template <typename T>
T* Write(const Part& part, uint32_t operand) {
  return reinterpret_cast<T*>(part.frame->registers + operand);
}
inline uint32_t ReadPredicate(const Warp& w, const Part& part, uint32_t operand) {
  return *Read<uint32_t>(w, part, operand);
}
inline void WritePredicate(const Part& part, uint32_t operand, uint32_t value) {
  uint32_t* p = Write<uint32_t>(part, operand);
  *p = (*p & ~part.mask) | (value & part.mask);
}

// The parts of a warp operation that is complete now; not complete: the group waits.
struct Meeting {
  std::vector<Part> parts;
  uint32_t lanes = 0;
  bool complete = false;
};

// The running group arrives at `op`, for which the live ones of `members` meet.
Meeting Arrive(Warp& w, const Op& op, uint32_t members);

}  // namespace solstice::device
