// What cp.async of a thread has still to do.
#pragma once

#include <cstdint>
#include <vector>

namespace solstice::device {

struct Op;

// One copy, or one arrival at an mbarrier that is due when the copies before it are done.
struct AsyncEntry {
  const Op* op = nullptr;
  uint8_t* to = nullptr;  // the mbarrier of an arrival
  const uint8_t* from = nullptr;
  uint32_t group = 0;
  uint8_t bytes = 0;  // 0: an arrival
  uint8_t source_bytes = 0;
  uint32_t issued = 0;  // the sanitizer's

  bool arrives() const { return bytes == 0; }
};

struct AsyncLane {
  std::vector<AsyncEntry> pending;  // oldest first
  uint32_t committed = 0;           // groups
};

struct AsyncLanes {
  AsyncLane lanes[32];
};

}  // namespace solstice::device
