#include "server/state/evaluations.h"

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "server/state/event_log.h"
#include "server/state/keys.h"
#include "server/state/transition.h"
#include "server/state/watchers.h"

namespace solstice::state {
namespace {

constexpr char kSchemaText[] = "solstice-store 1";
constexpr int kDefaultPageSize = 50;
constexpr int kMaxPageSize = 1000;
// Evaluations that one List call looks at: a filter that matches nothing must not read the whole store.
constexpr int kMaxExamined = 20000;
constexpr char kStoppedReason[] = "the server stopped during this attempt";

// One mutex for each of a fixed number of key groups.
class Stripes {
 public:
  base::Mutex& Of(std::string_view key) { return mutexes_[std::hash<std::string_view>()(key) % mutexes_.size()]; }

 private:
  std::array<base::Mutex, 64> mutexes_;
};

google::protobuf::Timestamp Stamp(int64_t unix_ns) {
  google::protobuf::Timestamp stamp;
  stamp.set_seconds(unix_ns / 1000000000);
  stamp.set_nanos(static_cast<int32_t>(unix_ns % 1000000000));
  return stamp;
}

double Milliseconds(const google::protobuf::Timestamp& from, const google::protobuf::Timestamp& to) {
  return static_cast<double>(to.seconds() - from.seconds()) * 1e3 +
         static_cast<double>(to.nanos() - from.nanos()) * 1e-6;
}

Status CheckCreation(const Evaluations::Creation& creation) {
  if (!IsValidTenant(creation.tenant)) {
    return base::InvalidArgument(base::StrCat("tenant ", base::Quote(creation.tenant), " is not a valid name"),
                                 "use 1 to 64 of a-z, 0-9, _ and -");
  }
  const std::string& request = creation.client_request_id;
  if (!base::IsValidUtf8(request) || request.size() > kMaxClientRequestIdCharacters) {
    return base::InvalidArgument(base::StrCat("client_request_id has ", request.size(), " bytes, the limit is ",
                                              kMaxClientRequestIdCharacters, ", in UTF-8"),
                                 "use a UUID");
  }
  return absl::OkStatus();
}

// The record behind a client_request_id: evaluation id, NUL, request digest.
std::string EncodeIdempotency(const std::string& id, const std::string& request_digest) {
  return Frame(base::StrCat(id, '\0', request_digest));
}

class EvaluationsImpl : public Evaluations {
 public:
  EvaluationsImpl(store::Store* store, const base::Clock* clock) : store_(store), clock_(clock) {}

  StatusOr<Created> Create(const Creation& creation) override;
  StatusOr<v1::Evaluation> Get(const std::string& tenant, const std::string& id) const override;
  StatusOr<v1::StoredSubmission> Submission(const std::string& tenant, const std::string& id) const override;
  StatusOr<v1::DefinitionBundle> Bundle(const std::string& tenant, const std::string& digest) const override;
  StatusOr<v1::ListResponse> List(const std::string& tenant, const v1::ListRequest& request) const override;
  StatusOr<v1::Evaluation> Advance(const std::string& tenant, const std::string& id, int attempt,
                                   v1::EvaluationState to) override;
  Status AppendCompile(const std::string& tenant, const std::string& id, int attempt,
                       const v1::CompileReport& report) override;
  Status AppendWorkload(const std::string& tenant, const std::string& id, int attempt,
                        const v1::WorkloadResult& result) override;
  StatusOr<v1::Evaluation> Complete(const std::string& tenant, const std::string& id, int attempt,
                                    const v1::Evaluation& result, const std::string& cache_key) override;
  StatusOr<v1::Evaluation> GiveUpAttempt(const std::string& tenant, const std::string& id, int attempt,
                                         const v1::ErrorStatus& why, int max_attempts) override;
  StatusOr<v1::Evaluation> Cancel(const std::string& tenant, const std::string& id) override;
  void PublishProgress(const std::string& tenant, const std::string& id, const v1::Progress& progress) override;
  StatusOr<v1::Evaluation> CachedResult(const std::string& tenant, const std::string& cache_key) const override;
  StatusOr<std::vector<v1::Evaluation>> Recover(int max_attempts) override;
  StatusOr<std::vector<v1::Event>> Events(const std::string& tenant, const std::string& id, int64_t from,
                                          int limit) const override;
  std::unique_ptr<Subscription> Subscribe(const std::string& tenant, const std::string& id,
                                          std::function<void(const v1::Event* progress)> notify) override;

 private:
  // One change of one evaluation: header and new events, written together.
  struct Change {
    v1::Evaluation header;
    store::Batch batch;
  };
  base::Mutex& LockOf(const std::string& tenant, const std::string& id) {
    return evaluation_locks_.Of(keys::Evaluation(tenant, id));
  }
  StatusOr<Created> CreateLocked(const Creation& creation);
  StatusOr<Created> CommitCreation(const Creation& creation, const std::string& digest, Change* change);
  // The stored record of a bundle and whether it must be written. Its key differs from the plain digest's only when
  // another list of workloads came with the same digest.
  StatusOr<std::string> PlaceBundle(const Creation& creation, std::optional<std::string>* value);
  // The header, if `attempt` is the current one.
  StatusOr<Change> Begin(const std::string& tenant, const std::string& id, int attempt) const;
  void PutEvent(Change* change, const v1::Event& event) const;
  // Adds the final event and ends `whole`; the change is then ready to be written.
  void End(v1::Evaluation* whole, Change* change) const;
  Status Commit(Change* change);
  Status Append(const std::string& tenant, const std::string& id, int attempt, v1::Event event);

  store::Store* const store_;
  const base::Clock* const clock_;
  Stripes evaluation_locks_;
  // Taken before a bundle lock, never after; no evaluation lock is held then.
  Stripes idempotency_locks_;
  Stripes bundle_locks_;
  Watchers watchers_;
};

// ---- Creating ------------------------------------------------------------------------------------------------------

StatusOr<Evaluations::Created> EvaluationsImpl::Create(const Creation& creation) {
  SOLSTICE_RETURN_IF_ERROR(CheckCreation(creation));
  if (creation.client_request_id.empty()) return CreateLocked(creation);
  const std::string key = keys::Idempotency(creation.tenant, creation.client_request_id);
  base::MutexLock lock(idempotency_locks_.Of(key));
  StatusOr<std::string> value = store_->Get(key);
  if (value.status().code() == absl::StatusCode::kNotFound) return CreateLocked(creation);
  if (!value.ok()) return value.status();
  SOLSTICE_ASSIGN_OR_RETURN(std::string_view record, Unframe(*value, key));
  size_t nul = record.find('\0');
  if (nul == std::string_view::npos) return base::DataLoss(base::StrCat("store: damaged value of ", base::Quote(key)));
  if (record.substr(nul + 1) != creation.submission.request_digest()) {
    return base::AlreadyExists(base::StrCat("client_request_id ", base::Quote(creation.client_request_id),
                                            " was used for another submission, ", record.substr(0, nul)),
                               "use a new client_request_id for other content");
  }
  Created created;
  created.duplicate = true;
  SOLSTICE_ASSIGN_OR_RETURN(created.evaluation, Get(creation.tenant, std::string(record.substr(0, nul))));
  return created;
}

StatusOr<std::string> EvaluationsImpl::PlaceBundle(const Creation& creation, std::optional<std::string>* value) {
  std::string framed = Frame(creation.bundle);
  std::string digest = creation.bundle.digest();
  for (bool plain : {true, false}) {
    // The digest leaves workloads out, so a folder with the same definition and other workloads gets a place of its
    // own.
    if (!plain) digest = base::StrCat(digest, "+", base::Hex(base::Sha256(framed)).substr(0, 16));
    StatusOr<std::string> known = store_->Get(keys::Bundle(creation.tenant, digest));
    if (known.ok() && *known == framed) return digest;
    if (known.status().code() == absl::StatusCode::kNotFound) {
      *value = std::move(framed);
      return digest;
    }
    if (!known.ok()) return known.status();
  }
  return base::DataLoss(base::StrCat("store: the bundle ", digest, " is not what its name says"));
}

StatusOr<Evaluations::Created> EvaluationsImpl::CreateLocked(const Creation& creation) {
  const std::string& tenant = creation.tenant;
  const int64_t now = clock_->NowUnixNs();
  v1::Evaluation header;
  header.set_id("ev_" + base::NewUlid(now / 1000000));
  header.set_tenant(tenant);
  header.set_client_request_id(creation.client_request_id);
  header.set_definition(creation.fields.definition());
  header.set_solution(creation.fields.solution());
  header.set_solution_digest(creation.fields.solution_digest());
  header.set_protocol(creation.fields.protocol());
  header.set_state(v1::QUEUED);
  header.set_attempt(1);
  *header.mutable_created() = Stamp(now);

  Change change{header, {}};
  v1::Event queued;
  queued.set_state(v1::QUEUED);
  PutEvent(&change, queued);
  change.batch.Put(keys::NewestFirst(tenant, header.id()), Frame(""));
  change.batch.Put(keys::Unfinished(tenant, header.id()), Frame(""));
  if (!creation.client_request_id.empty()) {
    change.batch.Put(keys::Idempotency(tenant, creation.client_request_id),
                     EncodeIdempotency(header.id(), creation.submission.request_digest()));
  }
  std::optional<std::string> bundle;
  SOLSTICE_ASSIGN_OR_RETURN(std::string digest, PlaceBundle(creation, &bundle));
  if (!bundle) return CommitCreation(creation, digest, &change);
  // Held until the bundle is written: another one with this digest must see it.
  base::MutexLock lock(bundle_locks_.Of(keys::Bundle(tenant, creation.bundle.digest())));
  bundle.reset();
  SOLSTICE_ASSIGN_OR_RETURN(digest, PlaceBundle(creation, &bundle));
  if (bundle) change.batch.Put(keys::Bundle(tenant, digest), *std::move(bundle));
  return CommitCreation(creation, digest, &change);
}

StatusOr<Evaluations::Created> EvaluationsImpl::CommitCreation(const Creation& creation, const std::string& digest,
                                                               Change* change) {
  v1::StoredSubmission submission = creation.submission;
  submission.set_schema_version(kSchemaVersion);
  submission.set_definition_digest(digest);
  change->batch.Put(keys::Submission(creation.tenant, change->header.id()), Frame(submission));
  SOLSTICE_RETURN_IF_ERROR(Commit(change));
  return Created{change->header, false};
}

// ---- Reading -------------------------------------------------------------------------------------------------------

StatusOr<v1::Evaluation> EvaluationsImpl::Get(const std::string& tenant, const std::string& id) const {
  SOLSTICE_ASSIGN_OR_RETURN(v1::Evaluation header, ReadHeader(*store_, tenant, id));
  return ReadWhole(*store_, header);
}

StatusOr<v1::StoredSubmission> EvaluationsImpl::Submission(const std::string& tenant, const std::string& id) const {
  SOLSTICE_ASSIGN_OR_RETURN(v1::Evaluation header, ReadHeader(*store_, tenant, id));
  const std::string key = keys::Submission(tenant, id);
  SOLSTICE_ASSIGN_OR_RETURN(std::string value, store_->Get(key));
  v1::StoredSubmission submission;
  SOLSTICE_RETURN_IF_ERROR(Unframe(value, key, &submission));
  if (submission.schema_version() != kSchemaVersion) {
    return base::FailedPrecondition(
        base::StrCat("the submission of ", id, " has schema ", submission.schema_version()));
  }
  return submission;
}

StatusOr<v1::DefinitionBundle> EvaluationsImpl::Bundle(const std::string& tenant, const std::string& digest) const {
  const std::string key = keys::Bundle(tenant, digest);
  StatusOr<std::string> value = store_->Get(key);
  if (value.status().code() == absl::StatusCode::kNotFound) {
    return base::NotFound(base::StrCat("no definition ", base::Quote(digest), " is stored"));
  }
  if (!value.ok()) return value.status();
  v1::DefinitionBundle bundle;
  SOLSTICE_RETURN_IF_ERROR(Unframe(*value, key, &bundle));
  return bundle;
}

bool Matches(const v1::Evaluation& header, const v1::ListRequest& request) {
  if (request.state() != v1::EVALUATION_STATE_UNSPECIFIED && header.state() != request.state()) return false;
  const std::string& wanted = request.definition();
  return wanted.empty() || header.definition() == wanted ||
         header.definition().substr(0, header.definition().find('@')) == wanted;
}

StatusOr<v1::ListResponse> EvaluationsImpl::List(const std::string& tenant, const v1::ListRequest& request) const {
  if (request.page_size() < 0 || request.page_size() > kMaxPageSize) {
    return base::InvalidArgument(base::StrCat("page_size ", request.page_size(), " is out of range"),
                                 base::StrCat("use 1 to ", kMaxPageSize, ", or 0 for ", kDefaultPageSize));
  }
  if (!request.page_token().empty() && !IsEvaluationId(request.page_token())) {
    return base::InvalidArgument(base::StrCat("page_token ", base::Quote(request.page_token()), " is not valid"),
                                 "pass the next_page_token of the answer before, or none");
  }
  if (!v1::EvaluationState_IsValid(request.state())) {
    return base::InvalidArgument(base::StrCat("state ", static_cast<int>(request.state()), " does not exist"));
  }
  const int wanted = request.page_size() == 0 ? kDefaultPageSize : request.page_size();
  const std::string after = request.page_token().empty() ? "" : keys::NewestFirst(tenant, request.page_token());
  std::vector<std::string> ids;
  // One more than is looked at tells whether there is another page.
  SOLSTICE_RETURN_IF_ERROR(
      store_->Scan(keys::NewestFirstPrefix(tenant), after, false, [&](std::string_view key, std::string_view) {
        if (key == after) return true;
        auto parts = keys::Parse(key);
        if (parts) ids.push_back(keys::ComplementId(parts->rest));
        return static_cast<int>(ids.size()) <= kMaxExamined;
      }));
  v1::ListResponse response;
  for (size_t i = 0; i < ids.size(); ++i) {
    if (response.evaluations_size() == wanted || static_cast<int>(i) == kMaxExamined) {
      response.set_next_page_token(ids[i - 1]);
      break;
    }
    SOLSTICE_ASSIGN_OR_RETURN(v1::Evaluation header, ReadHeader(*store_, tenant, ids[i]));
    if (Matches(header, request)) *response.add_evaluations() = std::move(header);
  }
  return response;
}

// ---- Changing ------------------------------------------------------------------------------------------------------

StatusOr<EvaluationsImpl::Change> EvaluationsImpl::Begin(const std::string& tenant, const std::string& id,
                                                         int attempt) const {
  Change change;
  SOLSTICE_ASSIGN_OR_RETURN(change.header, ReadHeader(*store_, tenant, id));
  if (attempt != change.header.attempt()) {
    return base::FailedPrecondition(
        base::StrCat(id, ": attempt ", attempt, " is not the current one, ", change.header.attempt()));
  }
  return change;
}

void EvaluationsImpl::PutEvent(Change* change, const v1::Event& event) const {
  v1::Event stored = event;
  stored.set_seq(change->header.last_seq() + 1);
  if (!stored.has_time()) *stored.mutable_time() = Stamp(clock_->NowUnixNs());
  if (stored.attempt() == 0) stored.set_attempt(change->header.attempt());
  change->header.set_last_seq(stored.seq());
  change->batch.Put(keys::Event(change->header.tenant(), change->header.id(), stored.seq()), Frame(stored));
}

Status EvaluationsImpl::Commit(Change* change) {
  const v1::Evaluation& header = change->header;
  change->batch.Put(keys::Evaluation(header.tenant(), header.id()), Frame(header));
  SOLSTICE_RETURN_IF_ERROR(store_->Write(change->batch, store::Durability::kSynced));
  watchers_.Tell(header.tenant(), header.id(), nullptr);
  return absl::OkStatus();
}

void EvaluationsImpl::End(v1::Evaluation* whole, Change* change) const {
  *whole->mutable_finished() = Stamp(clock_->NowUnixNs());
  whole->set_last_seq(change->header.last_seq() + 1);
  if (whole->phases().total_ms() == 0) {
    whole->mutable_phases()->set_total_ms(Milliseconds(whole->created(), whole->finished()));
  }
  FitInMessage(whole);
  v1::Event event;
  *event.mutable_time() = whole->finished();
  event.set_attempt(whole->attempt());
  *event.mutable_final() = *whole;
  PutEvent(change, event);
  change->header = HeaderOf(*whole);
  change->batch.Delete(keys::Unfinished(whole->tenant(), whole->id()));
}

StatusOr<v1::Evaluation> EvaluationsImpl::Advance(const std::string& tenant, const std::string& id, int attempt,
                                                  v1::EvaluationState to) {
  if (to != v1::COMPILING && to != v1::WAITING && to != v1::RUNNING) {
    return base::Internal("Advance moves to COMPILING, WAITING or RUNNING only");
  }
  base::MutexLock lock(LockOf(tenant, id));
  SOLSTICE_ASSIGN_OR_RETURN(Change change, Begin(tenant, id, attempt));
  SOLSTICE_RETURN_IF_ERROR(CheckTransition(change.header.state(), to));
  change.header.set_state(to);
  v1::Event event;
  event.set_state(to);
  PutEvent(&change, event);
  SOLSTICE_RETURN_IF_ERROR(Commit(&change));
  return change.header;
}

Status EvaluationsImpl::Append(const std::string& tenant, const std::string& id, int attempt, v1::Event event) {
  base::MutexLock lock(LockOf(tenant, id));
  SOLSTICE_ASSIGN_OR_RETURN(Change change, Begin(tenant, id, attempt));
  v1::EvaluationState state = change.header.state();
  if (state == v1::QUEUED || IsFinal(state)) {
    return base::FailedPrecondition(
        base::StrCat(id, ": nothing can be added in state ", v1::EvaluationState_Name(state)));
  }
  PutEvent(&change, event);
  return Commit(&change);
}

Status EvaluationsImpl::AppendCompile(const std::string& tenant, const std::string& id, int attempt,
                                      const v1::CompileReport& report) {
  v1::Event event;
  *event.mutable_compile() = report;
  return Append(tenant, id, attempt, std::move(event));
}

Status EvaluationsImpl::AppendWorkload(const std::string& tenant, const std::string& id, int attempt,
                                       const v1::WorkloadResult& result) {
  v1::Event event;
  *event.mutable_workload() = result;
  return Append(tenant, id, attempt, std::move(event));
}

StatusOr<v1::Evaluation> EvaluationsImpl::Complete(const std::string& tenant, const std::string& id, int attempt,
                                                   const v1::Evaluation& result, const std::string& cache_key) {
  if (result.verdict() == v1::VERDICT_UNSPECIFIED) return base::Internal("a completed evaluation needs a verdict");
  base::MutexLock lock(LockOf(tenant, id));
  SOLSTICE_ASSIGN_OR_RETURN(Change change, Begin(tenant, id, attempt));
  SOLSTICE_RETURN_IF_ERROR(CheckTransition(change.header.state(), v1::COMPLETED));
  SOLSTICE_ASSIGN_OR_RETURN(v1::Evaluation known, ReadWhole(*store_, change.header));
  v1::Evaluation whole = result;
  whole.set_id(id);
  whole.set_tenant(tenant);
  whole.set_client_request_id(known.client_request_id());
  whole.set_attempt(attempt);
  *whole.mutable_created() = known.created();
  whole.set_state(v1::COMPLETED);
  whole.clear_error();
  if (whole.definition().empty()) whole.set_definition(known.definition());
  if (whole.solution().empty()) whole.set_solution(known.solution());
  if (whole.solution_digest().empty()) whole.set_solution_digest(known.solution_digest());
  if (whole.protocol().empty()) whole.set_protocol(known.protocol());
  if (whole.workloads_size() == 0) whole.mutable_workloads()->Swap(known.mutable_workloads());
  if (!whole.has_compile() && known.has_compile()) whole.mutable_compile()->Swap(known.mutable_compile());
  End(&whole, &change);
  if (!cache_key.empty()) change.batch.Put(keys::CachedResult(tenant, cache_key), Frame(id));
  SOLSTICE_RETURN_IF_ERROR(Commit(&change));
  return whole;
}

StatusOr<v1::Evaluation> EvaluationsImpl::GiveUpAttempt(const std::string& tenant, const std::string& id, int attempt,
                                                        const v1::ErrorStatus& why, int max_attempts) {
  base::MutexLock lock(LockOf(tenant, id));
  SOLSTICE_ASSIGN_OR_RETURN(Change change, Begin(tenant, id, attempt));
  const v1::EvaluationState to = attempt >= max_attempts ? v1::FAILED : v1::QUEUED;
  SOLSTICE_RETURN_IF_ERROR(CheckTransition(change.header.state(), to));
  if (to == v1::FAILED) {
    v1::Evaluation whole = change.header;
    whole.set_state(v1::FAILED);
    *whole.mutable_error() = why;
    End(&whole, &change);
  } else {
    v1::Event retry;
    *retry.mutable_retry() = why;
    PutEvent(&change, retry);
    change.header.set_state(v1::QUEUED);
    change.header.set_attempt(attempt + 1);
    v1::Event queued;
    queued.set_state(v1::QUEUED);
    PutEvent(&change, queued);
  }
  SOLSTICE_RETURN_IF_ERROR(Commit(&change));
  return change.header;
}

StatusOr<v1::Evaluation> EvaluationsImpl::Cancel(const std::string& tenant, const std::string& id) {
  base::MutexLock lock(LockOf(tenant, id));
  Change change;
  SOLSTICE_ASSIGN_OR_RETURN(change.header, ReadHeader(*store_, tenant, id));
  SOLSTICE_ASSIGN_OR_RETURN(v1::Evaluation whole, ReadWhole(*store_, change.header));
  if (whole.state() == v1::CANCELLED) return whole;
  if (IsFinal(whole.state())) {
    return base::FailedPrecondition(base::StrCat(id, " has ended already: ", v1::EvaluationState_Name(whole.state())));
  }
  SOLSTICE_RETURN_IF_ERROR(CheckTransition(whole.state(), v1::CANCELLED));
  whole.set_state(v1::CANCELLED);
  End(&whole, &change);
  SOLSTICE_RETURN_IF_ERROR(Commit(&change));
  return whole;
}

StatusOr<v1::Evaluation> EvaluationsImpl::CachedResult(const std::string& tenant, const std::string& cache_key) const {
  const std::string key = keys::CachedResult(tenant, cache_key);
  SOLSTICE_ASSIGN_OR_RETURN(std::string value, store_->Get(key));
  SOLSTICE_ASSIGN_OR_RETURN(std::string_view id, Unframe(value, key));
  return Get(tenant, std::string(id));
}

StatusOr<std::vector<v1::Evaluation>> EvaluationsImpl::Recover(int max_attempts) {
  std::vector<keys::TenantAndRest> unfinished;
  SOLSTICE_RETURN_IF_ERROR(
      store_->Scan(keys::kUnfinishedPrefix, "", false, [&](std::string_view key, std::string_view) {
        if (auto parts = keys::Parse(key)) unfinished.push_back(*std::move(parts));
        return true;
      }));
  v1::ErrorStatus why;
  why.set_code(static_cast<int>(absl::StatusCode::kUnavailable));
  why.set_reason(kStoppedReason);
  why.set_mend("submit it again");
  std::vector<v1::Evaluation> queued;
  for (const auto& [tenant, id] : unfinished) {
    SOLSTICE_ASSIGN_OR_RETURN(v1::Evaluation header, ReadHeader(*store_, tenant, id));
    if (header.state() != v1::QUEUED) {
      SOLSTICE_ASSIGN_OR_RETURN(header, GiveUpAttempt(tenant, id, header.attempt(), why, max_attempts));
    }
    if (header.state() == v1::QUEUED) queued.push_back(std::move(header));
  }
  // Ids sort by time, across tenants too.
  std::sort(queued.begin(), queued.end(), [](const auto& a, const auto& b) { return a.id() < b.id(); });
  return queued;
}

// ---- Watching ------------------------------------------------------------------------------------------------------

void EvaluationsImpl::PublishProgress(const std::string& tenant, const std::string& id, const v1::Progress& progress) {
  v1::Event event;
  *event.mutable_time() = Stamp(clock_->NowUnixNs());
  *event.mutable_progress() = progress;
  watchers_.Tell(tenant, id, &event);
}

StatusOr<std::vector<v1::Event>> EvaluationsImpl::Events(const std::string& tenant, const std::string& id, int64_t from,
                                                         int limit) const {
  SOLSTICE_ASSIGN_OR_RETURN(v1::Evaluation header, ReadHeader(*store_, tenant, id));
  return ReadEvents(*store_, tenant, id, from, limit);
}

std::unique_ptr<Evaluations::Subscription> EvaluationsImpl::Subscribe(
    const std::string& tenant, const std::string& id, std::function<void(const v1::Event* progress)> notify) {
  return watchers_.Subscribe(tenant, id, std::move(notify));
}

}  // namespace

// ---- Opening -------------------------------------------------------------------------------------------------------

StatusOr<std::unique_ptr<Evaluations>> Evaluations::Open(store::Store* store, const base::Clock* clock) {
  StatusOr<std::string> schema = store->Get(keys::kSchema);
  if (schema.status().code() == absl::StatusCode::kNotFound) {
    bool empty = true;
    SOLSTICE_RETURN_IF_ERROR(store->Scan("", "", false, [&](std::string_view, std::string_view) {
      empty = false;
      return false;
    }));
    if (!empty) {
      return base::FailedPrecondition("the store holds data but no schema version: it is not Solstice's",
                                      "give --data-dir an empty or a Solstice folder");
    }
    store::Batch batch;
    batch.Put(keys::kSchema, kSchemaText);
    SOLSTICE_RETURN_IF_ERROR(store->Write(batch, store::Durability::kSynced));
  } else if (!schema.ok()) {
    return schema.status();
  } else if (*schema != kSchemaText) {
    return base::FailedPrecondition(
        base::StrCat("the store has schema ", base::Quote(*schema), ", this build knows ", base::Quote(kSchemaText)),
        "use the build that wrote this data folder, or a newer one");
  }
  return std::unique_ptr<Evaluations>(new EvaluationsImpl(store, clock));
}

}  // namespace solstice::state
