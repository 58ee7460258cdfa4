// What the sanitizer has found, one entry a kind and place of the program.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "solstice/v1/evaluation.pb.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::device {

// Kind and operation: what is found again there counts and is not told again.
using FindingKey = std::pair<int, const void*>;

struct FindingEntry {
  v1::Finding finding;
  uint64_t block = 0;  // number of the block that it is of
};

// Of one Synchronize. Thread-safe. The entry of the lowest block is kept, so that runs repeat.
class Findings {
 public:
  static constexpr size_t kMost = 64;

  void Merge(std::map<FindingKey, FindingEntry> entries);
  void Report(v1::internal::RunOutcome* outcome) const;

 private:
  mutable std::mutex mutex_;
  std::map<FindingKey, FindingEntry> entries_;
};

}  // namespace solstice::device
