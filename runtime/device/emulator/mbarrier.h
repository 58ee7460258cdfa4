// The 64-bit object of an mbarrier. It lies in the kernel's shared memory, so any bits may come: Load says whether they
// are an object.
#pragma once

#include <cstdint>
#include <string>

namespace solstice::device {

struct Mbarrier {
  static constexpr int64_t kMost = (1 << 20) - 1;  // of each count

  int64_t expected = 0, pending = 0;
  int64_t transactions = 0;  // bytes still to come; may go below 0 for a while
  bool phase = false;

  static bool Load(uint64_t word, Mbarrier* barrier);
  uint64_t Store() const;

  // Each returns "" or why it is wrong.
  std::string Arrive(int64_t count);
  std::string Drop(int64_t count);  // from the phases to come
  std::string Expect(int64_t bytes);
  std::string AddPending();

 private:
  void FinishPhase();
};

}  // namespace solstice::device
