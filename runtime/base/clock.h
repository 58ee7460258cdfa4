// Time that tests can set. Thread-safe.
#pragma once

#include <cstdint>

namespace solstice::base {

class Clock {
 public:
  virtual ~Clock() = default;
  // Wall clock, nanoseconds since 1970.
  virtual int64_t NowUnixNs() const = 0;
  // Monotonic, nanoseconds from an arbitrary start.
  virtual int64_t NowSteadyNs() const = 0;

  // The system's clocks; never destroyed.
  static const Clock& System();
};

// Milliseconds of the monotonic clock since construction.
class Stopwatch {
 public:
  explicit Stopwatch(const Clock& clock = Clock::System()) : clock_(clock), start_ns_(clock.NowSteadyNs()) {}
  double milliseconds() const { return static_cast<double>(clock_.NowSteadyNs() - start_ns_) * 1e-6; }

 private:
  const Clock& clock_;
  int64_t start_ns_;
};

}  // namespace solstice::base
