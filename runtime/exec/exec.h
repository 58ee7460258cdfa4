// Running a bound plan on a device, and placing tensors in mappings. Used by the judge for the reference and by the
// runner for a submission. Stateless functions; the device's own thread calls them.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::exec {

// Every tensor's address is a multiple of it.
inline constexpr int64_t kAlignment = 256;
// At least so many guard bytes stand before a tensor.
inline constexpr int64_t kLeadingGuardBytes = 256;
// Placements differ by a secret multiple of kAlignment from 0 to this many.
inline constexpr int kMaxSlack = 15;

// ---- Placement ---------------------------------------------------------------------------------------------------

// Where a tensor lies in its mapping: base = mapped - round_up(bytes, 256) - 256 * slack. All other bytes of the
// mapping are guards.
struct Placement {
  int64_t bytes = 0;         // of the tensor
  int64_t mapped_bytes = 0;  // multiple of the device's granularity
  int64_t offset = 0;        // of the tensor, multiple of kAlignment

  int64_t end() const { return offset + bytes; }
};

// `slack` from 0 to kMaxSlack. RESOURCE_EXHAUSTED when the size overflows.
StatusOr<Placement> Place(int64_t bytes, int64_t granularity, int slack);
// For placements from another process. INVALID_ARGUMENT unless the tensor lies inside its mapping, aligned.
StatusOr<Placement> CheckPlacement(const v1::internal::BufferPlacement& buffer, int64_t granularity);

// ---- Running -----------------------------------------------------------------------------------------------------

// INVALID_ARGUMENT if the plan is not one that Bind can have made: indexes out of range, memsets outside their buffer,
// sizes that are not positive. A runner checks what it is sent before it touches the device.
Status CheckPlan(const v1::internal::BoundPlan& plan);

// Enqueues the operations in order. INVALID_ARGUMENT as CheckPlan, or when `tensors` are not one for each buffer.
Status EnqueuePlan(device::Device& device, const device::Module& module, const v1::internal::BoundPlan& plan,
                   const std::vector<device::Address>& tensors);

// Does so and waits. `tensors[i]` is the address of plan.buffers(i)'s tensor. The outcome's
// messages name the operation's plan line where it is known. Status: our failure, or a plan that fails CheckPlan.
StatusOr<v1::internal::RunOutcome> RunPlan(device::Device& device, const device::Module& module,
                                           const v1::internal::BoundPlan& plan,
                                           const std::vector<device::Address>& tensors,
                                           const device::RunLimits& limits);

}  // namespace solstice::exec
