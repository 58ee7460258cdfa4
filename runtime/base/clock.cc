#include "runtime/base/clock.h"

#include <chrono>

namespace solstice::base {
namespace {
class SystemClock : public Clock {
 public:
  int64_t NowUnixNs() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
        .count();
  }
  int64_t NowSteadyNs() const override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
};
}  // namespace

const Clock& Clock::System() {
  static const SystemClock* clock = new SystemClock;
  return *clock;
}

}  // namespace solstice::base
