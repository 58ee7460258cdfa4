#include "server/state/event_log.h"

#include "runtime/base/strings.h"
#include "server/state/keys.h"
#include "server/state/transition.h"

namespace solstice::state {
namespace {

constexpr size_t kMaxReadBytes = 8 << 20;
constexpr size_t kKeptLogBytes = 256 << 10;
constexpr char kCutWarning[] = "printed text and failing elements were left out: the whole result exceeds a message";

}  // namespace

StatusOr<v1::Evaluation> ReadHeader(const store::Store& store, const std::string& tenant, const std::string& id) {
  // A malformed id never reaches a key: it could hold anything.
  if (!IsValidTenant(tenant) || !IsEvaluationId(id)) {
    return base::NotFound(base::StrCat("no evaluation ", base::Quote(id)), "`solstice list` shows evaluations");
  }
  const std::string key = keys::Evaluation(tenant, id);
  StatusOr<std::string> value = store.Get(key);
  if (value.status().code() == absl::StatusCode::kNotFound) {
    return base::NotFound(base::StrCat("no evaluation ", base::Quote(id)), "`solstice list` shows evaluations");
  }
  if (!value.ok()) return value.status();
  v1::Evaluation header;
  SOLSTICE_RETURN_IF_ERROR(Unframe(*value, key, &header));
  return header;
}

StatusOr<std::vector<v1::Event>> ReadEvents(const store::Store& store, const std::string& tenant, const std::string& id,
                                            int64_t from, int limit) {
  std::vector<v1::Event> events;
  size_t bytes = 0;
  Status parsed;
  Status scanned = store.Scan(keys::EventPrefix(tenant, id), keys::Event(tenant, id, std::max<int64_t>(from, 1)), false,
                              [&](std::string_view key, std::string_view value) {
                                if (static_cast<int>(events.size()) >= limit || bytes > kMaxReadBytes) return false;
                                bytes += value.size();
                                parsed = Unframe(value, key, &events.emplace_back());
                                return parsed.ok();
                              });
  SOLSTICE_RETURN_IF_ERROR(scanned);
  SOLSTICE_RETURN_IF_ERROR(parsed);
  return events;
}

StatusOr<v1::Evaluation> ReadWhole(const store::Store& store, const v1::Evaluation& header) {
  const std::string &tenant = header.tenant(), &id = header.id();
  if (IsFinal(header.state())) {
    const std::string key = keys::Event(tenant, id, header.last_seq());
    SOLSTICE_ASSIGN_OR_RETURN(std::string value, store.Get(key));
    v1::Event last;
    SOLSTICE_RETURN_IF_ERROR(Unframe(value, key, &last));
    if (!last.has_final()) return base::DataLoss(base::StrCat("store: the log of ", id, " lacks its final event"));
    return last.final();
  }
  v1::Evaluation whole = header;
  for (int64_t next = 1; next <= header.last_seq();) {
    SOLSTICE_ASSIGN_OR_RETURN(std::vector<v1::Event> events, ReadEvents(store, tenant, id, next, 256));
    if (events.empty()) return base::DataLoss(base::StrCat("store: the log of ", id, " ends before ", next));
    for (const v1::Event& event : events) {
      if (event.seq() > header.last_seq()) break;
      if (event.attempt() != header.attempt()) continue;
      if (event.has_compile()) *whole.mutable_compile() = event.compile();
      if (event.has_workload()) PutWorkload(event.workload(), &whole);
    }
    next = events.back().seq() + 1;
  }
  return whole;
}

v1::Evaluation HeaderOf(v1::Evaluation whole) {
  whole.clear_workloads();
  if (whole.has_compile()) whole.mutable_compile()->clear_log();
  return whole;
}

void PutWorkload(const v1::WorkloadResult& result, v1::Evaluation* evaluation) {
  for (v1::WorkloadResult& known : *evaluation->mutable_workloads()) {
    if (known.uuid() == result.uuid()) {
      known = result;
      return;
    }
  }
  *evaluation->add_workloads() = result;
}

void FitInMessage(v1::Evaluation* evaluation) {
  if (evaluation->ByteSizeLong() <= kMaxEventBytes) return;
  for (v1::WorkloadResult& workload : *evaluation->mutable_workloads()) {
    workload.clear_device_output();
    workload.clear_warnings();
    for (v1::OutputComparison& output : *workload.mutable_outputs()) output.clear_first_failures();
  }
  if (evaluation->workloads_size() > 0) evaluation->mutable_workloads(0)->add_warnings(kCutWarning);
  if (evaluation->compile().log().size() > kKeptLogBytes) {
    v1::CompileReport* compile = evaluation->mutable_compile();
    std::string_view kept = base::Utf8Prefix(compile->log(), kKeptLogBytes);
    compile->set_log_dropped_bytes(compile->log_dropped_bytes() +
                                   static_cast<int64_t>(compile->log().size() - kept.size()));
    compile->set_log(std::string(kept));
  }
  if (evaluation->ByteSizeLong() <= kMaxEventBytes) return;
  for (v1::WorkloadResult& workload : *evaluation->mutable_workloads()) workload.clear_outputs();
}

}  // namespace solstice::state
