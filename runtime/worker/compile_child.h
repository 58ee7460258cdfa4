// One compile in a child of the zygote: limits, deadline, and what its death means.
#pragma once

#include <functional>

#include "runtime/base/status.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::worker {

// Zeros replaced by the defaults (30 s, 4 GiB, cubin 32 MiB, log 64 KiB), the rest clamped to sane ranges.
v1::internal::CompileLimits EffectiveLimits(const v1::internal::CompileLimits& limits);

// Forks; the child, under `limits`, calls `work` and hands its result over. What the source did to the compiler (time,
// memory, crash) is a Program with COMPILE_ERROR; Status is what `work` returned or a failure of ours. CANCELLED: the
// other end of `channel_fd` went away meanwhile. The caller must be single-threaded.
//
// With `scratch_bytes` the compiler works in a file of at most so many bytes, and a child that dies before its deadline
// is ABORTED: the compiler may just have found no room there.
StatusOr<v1::internal::Program> CompileInChild(const std::function<StatusOr<v1::internal::Program>()>& work,
                                               const v1::internal::CompileLimits& limits, int channel_fd,
                                               int64_t scratch_bytes = 0);

}  // namespace solstice::worker
