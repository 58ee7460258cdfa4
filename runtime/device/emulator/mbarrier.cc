#include "runtime/device/emulator/mbarrier.h"

#include "runtime/base/strings.h"

namespace solstice::device {
namespace {

// From the lowest bit: phase, mark, pending and expected arrivals, transactions plus kMost. Neither fresh shared
// memory, which is all ones, nor zeros carry the mark.
constexpr int kMarkShift = 1, kPendingShift = 3, kExpectedShift = 23, kTransactionShift = 43;
constexpr uint64_t kMark = 2, kMarkMask = 3, kCountMask = Mbarrier::kMost, kTransactionMask = (1 << 21) - 1;

}  // namespace

bool Mbarrier::Load(uint64_t word, Mbarrier* barrier) {
  barrier->phase = word & 1;
  barrier->pending = static_cast<int64_t>(word >> kPendingShift & kCountMask);
  barrier->expected = static_cast<int64_t>(word >> kExpectedShift & kCountMask);
  barrier->transactions = static_cast<int64_t>(word >> kTransactionShift) - kMost;
  return (word >> kMarkShift & kMarkMask) == kMark && barrier->transactions <= kMost;
}

uint64_t Mbarrier::Store() const {
  return uint64_t{phase} | kMark << kMarkShift | static_cast<uint64_t>(pending) << kPendingShift |
         static_cast<uint64_t>(expected) << kExpectedShift |
         (static_cast<uint64_t>(transactions + kMost) & kTransactionMask) << kTransactionShift;
}

std::string Mbarrier::Arrive(int64_t count) {
  if (count < 1 || count > pending) {
    return base::StrCat("arrives ", count, " times at an mbarrier that waits for ", pending, " more arrivals");
  }
  pending -= count;
  FinishPhase();
  return {};
}

std::string Mbarrier::Drop(int64_t count) {
  if (count < 1 || count > expected) {
    return base::StrCat("drops ", count, " of the ", expected, " arrivals that an mbarrier expects");
  }
  expected -= count;
  return {};
}

std::string Mbarrier::Expect(int64_t bytes) {
  if (bytes < -kMost || bytes > kMost || transactions + bytes < -kMost || transactions + bytes > kMost) {
    return base::StrCat("changes the transactions of an mbarrier, now ", transactions, ", by ", bytes, "; at most ",
                        kMost, " may be pending");
  }
  transactions += bytes;
  FinishPhase();
  return {};
}

std::string Mbarrier::AddPending() {
  if (pending >= kMost) return base::StrCat("makes an mbarrier wait for more than ", kMost, " arrivals");
  ++pending;
  return {};
}

void Mbarrier::FinishPhase() {
  if (pending != 0 || transactions != 0) return;
  phase = !phase;
  pending = expected;
}

}  // namespace solstice::device
