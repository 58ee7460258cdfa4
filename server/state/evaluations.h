// Evaluations and their event logs over a Store: what is acknowledged is here, and nowhere else. Thread-safe.
//
// Every key carries the tenant. A state change and its event are one synced batch; the final state, the final event and
// the result-cache entry too. docs/formats/store.md lists the keys.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/mutex.h"
#include "runtime/base/status.h"
#include "server/store/store.h"
#include "solstice/v1/service.pb.h"

namespace solstice::state {

inline constexpr int kSchemaVersion = 1;

class Evaluations {
 public:
  // Checks the schema version (FAILED_PRECONDITION for another), writes it into an empty store.
  static StatusOr<std::unique_ptr<Evaluations>> Open(store::Store* store, const base::Clock* clock);
  virtual ~Evaluations() = default;

  struct Creation {
    std::string tenant;
    std::string client_request_id;  // may be empty
    v1::StoredSubmission submission;
    v1::DefinitionBundle bundle;  // stored once per tenant and digest
    v1::Evaluation fields;        // definition, solution, solution_digest, protocol: copied into the new evaluation
  };
  struct Created {
    v1::Evaluation evaluation;  // state QUEUED, attempt 1, id "ev_<ULID>"
    bool duplicate = false;     // client_request_id was known with the same request digest
  };
  // Durable when it returns. ALREADY_EXISTS: client_request_id known with another request digest.
  virtual StatusOr<Created> Create(const Creation& creation) = 0;

  // NOT_FOUND for unknown ids and for those of another tenant alike.
  virtual StatusOr<v1::Evaluation> Get(const std::string& tenant, const std::string& id) const = 0;
  virtual StatusOr<v1::StoredSubmission> Submission(const std::string& tenant, const std::string& id) const = 0;
  virtual StatusOr<v1::DefinitionBundle> Bundle(const std::string& tenant, const std::string& digest) const = 0;
  // Newest first. INVALID_ARGUMENT for a bad page token or size.
  virtual StatusOr<v1::ListResponse> List(const std::string& tenant, const v1::ListRequest& request) const = 0;

  // ---- For the pipeline. Each checks that `attempt` is the current one and the move is legal; FAILED_PRECONDITION
  // otherwise (cancelled meanwhile, say), and then nothing was written. --------------------------------------------

  virtual StatusOr<v1::Evaluation> Advance(const std::string& tenant, const std::string& id, int attempt,
                                           v1::EvaluationState to) = 0;
  // Appends a compile report or a workload result, to the log and to the evaluation.
  virtual Status AppendCompile(const std::string& tenant, const std::string& id, int attempt,
                               const v1::CompileReport& report) = 0;
  virtual Status AppendWorkload(const std::string& tenant, const std::string& id, int attempt,
                                const v1::WorkloadResult& result) = 0;
  // COMPLETED with the verdict and everything else of `result` (id, tenant, created, attempt are kept). With
  // `cache_key` the result is also stored for CachedResult.
  virtual StatusOr<v1::Evaluation> Complete(const std::string& tenant, const std::string& id, int attempt,
                                            const v1::Evaluation& result, const std::string& cache_key) = 0;
  // An infrastructure failure: back to QUEUED with attempt + 1, or FAILED when `attempt` >= max_attempts. Results of
  // the given-up attempt are dropped from the evaluation; its events stay in the log.
  virtual StatusOr<v1::Evaluation> GiveUpAttempt(const std::string& tenant, const std::string& id, int attempt,
                                                 const v1::ErrorStatus& why, int max_attempts) = 0;
  // Idempotent. FAILED_PRECONDITION when it ended otherwise.
  virtual StatusOr<v1::Evaluation> Cancel(const std::string& tenant, const std::string& id) = 0;
  // Sent to current watchers only; never stored.
  virtual void PublishProgress(const std::string& tenant, const std::string& id, const v1::Progress& progress) = 0;

  // A completed evaluation with this result key. NOT_FOUND if there is none.
  virtual StatusOr<v1::Evaluation> CachedResult(const std::string& tenant, const std::string& cache_key) const = 0;

  // After a restart: gives up the attempts that were under way and returns everything that is QUEUED, oldest first.
  virtual StatusOr<std::vector<v1::Evaluation>> Recover(int max_attempts) = 0;

  // ---- Watching --------------------------------------------------------------------------------------------------

  // Stored events with seq >= from, at most `limit`.
  virtual StatusOr<std::vector<v1::Event>> Events(const std::string& tenant, const std::string& id, int64_t from,
                                                  int limit) const = 0;
  // `notify` runs on some thread after each stored event (nullptr argument) and for each progress event, until the
  // returned handle is destroyed; it must be quick and must not call back into this class.
  class Subscription {
   public:
    virtual ~Subscription() = default;
  };
  virtual std::unique_ptr<Subscription> Subscribe(const std::string& tenant, const std::string& id,
                                                  std::function<void(const v1::Event* progress)> notify) = 0;
};

// A server's secret of 32 bytes, made at first use and kept in the store: seeds derive from it.
StatusOr<std::string> ServerKey(store::Store* store);

}  // namespace solstice::state
