// Reading an evaluation's record and log. An evaluation is stored as a small header (no workloads, no compile log) and
// its log; a header fixes `last_seq`, and events up to it never change, so the two need no common snapshot.
#pragma once

#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "server/store/store.h"
#include "solstice/v1/evaluation.pb.h"

namespace solstice::state {

// NOT_FOUND ("no evaluation ...") for unknown ids and other tenants' alike.
StatusOr<v1::Evaluation> ReadHeader(const store::Store& store, const std::string& tenant, const std::string& id);
// The header with workloads and compile report: from the final event, or folded from the current attempt's events.
StatusOr<v1::Evaluation> ReadWhole(const store::Store& store, const v1::Evaluation& header);
// Events with seq >= from, at most `limit`, and no more than about 8 MiB beyond the first.
StatusOr<std::vector<v1::Event>> ReadEvents(const store::Store& store, const std::string& tenant, const std::string& id,
                                            int64_t from, int limit);

// The header of `whole`.
v1::Evaluation HeaderOf(v1::Evaluation whole);
// Puts `result` where the result of the same uuid stands, or at the end.
void PutWorkload(const v1::WorkloadResult& result, v1::Evaluation* evaluation);
// Drops what explains least (device output, failed elements, the middle of the log) until an event that holds
// `evaluation` fits in one message.
void FitInMessage(v1::Evaluation* evaluation);
// Most bytes of a stored event: a message is at most 16 MiB.
inline constexpr size_t kMaxEventBytes = 15 << 20;

}  // namespace solstice::state
