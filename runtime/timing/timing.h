// Timed batches, protocol solstice-v1 (DESIGN section 7): what is enqueued, in which order, and what latencies are.
// Written over device::Device alone, so that the order is the same wherever it runs. Stateless functions; the device's
// own thread calls them.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::timing {

// Iterations before those that count: the first ones after another process had the device are slower.
inline constexpr int kDecoys = 3;

struct BatchShape {
  int decoys = 0;
  int slots = 0;
};
// How much of (kDecoys, `wanted` slots) fits behind a gate when an iteration has `operations` of the plan; at least one
// decoy and one slot.
BatchShape FitBatch(int64_t capacity, int64_t operations, int wanted);

// Enqueues one iteration's operations on slot `slot`.
using EnqueueIteration = std::function<Status(int slot)>;

struct Batch {
  BatchShape shape;
  v1::Timer timer = v1::TIMER_NONE;
  // What clears the L2 cache before each iteration, by reading.
  const device::Module* trusted = nullptr;
  device::LaunchParameters clear;
};

// First runs the clearing a few times and waits: another process's context may have had the device, and taking it over
// costs 100 us, which are none of the batch's. Then closes the gate and enqueues behind it: decoys on slots 0, 1, ...
// (clear, plan), then each slot once (clear, plan). Nothing runs before device.Synchronize(). After an error the
// device's queue holds part of a batch: Synchronize it, or end the process.
Status EnqueueBatch(device::Device& device, const Batch& batch, const EnqueueIteration& enqueue);

// Runs the clearing over and over until it gets no faster: an idle GPU's clocks are low and take some hundred
// milliseconds to rise. At most `at_most`.
Status WarmUp(device::Device& device, const Batch& batch, std::chrono::nanoseconds at_most);

// Latencies of the iterations, after Synchronize was OK. Missing records make `rejected`, not an error.
StatusOr<v1::internal::Times> TakeTimes(device::Device& device, const Batch& batch);

// Of an unsorted list; the lower one of two middle values. 0 for none.
int64_t Median(std::vector<int64_t> values);

}  // namespace solstice::timing
