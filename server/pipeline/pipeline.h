// Takes accepted evaluations through compile and run to a verdict: validate -> specialise -> compile -> (per workload:
// prepare -> run -> verify) -> store. Owns the worker processes. Thread-safe.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/base/clock.h"
#include "runtime/base/status.h"
#include "runtime/catalog/catalog.h"
#include "server/state/evaluations.h"
#include "server/store/store.h"
#include "solstice/v1/service.pb.h"

namespace solstice::pipeline {

inline constexpr char kProtocol[] = "solstice-v1";

// ---- Validation: what the request alone decides -------------------------------------------------------------------

struct ValidSubmission {
  v1::StoredSubmission submission;  // options normalised, request digest set
  v1::DefinitionBundle bundle;
  v1::Evaluation fields;  // for state::Evaluations::Creation
};
// INVALID_ARGUMENT (sizes, encoding, options, plan grammar, workload uuids, timeout), NOT_FOUND (definition),
// PERMISSION_DENIED (inline definitions not accepted here).
StatusOr<ValidSubmission> Validate(const v1::SubmitRequest& request, const catalog::Catalog& catalog,
                                   bool accept_inline_definitions);

// The parts of Validate that a compile-only request shares.
StatusOr<v1::Solution> CheckSolution(const v1::Solution& solution);
StatusOr<v1::DefinitionBundle> FindBundle(const v1::Solution& solution, bool has_files,
                                          const v1::DefinitionFiles& files, const catalog::Catalog& catalog,
                                          bool accept_inline_definitions);

// ---- The pipeline -------------------------------------------------------------------------------------------------

// In a request: every GPU that can be driven.
inline constexpr int kEveryOrdinal = -1;

struct DeviceSpec {
  v1::DeviceKind kind = v1::EMULATOR;
  int ordinal = 0;                      // among the visible GPUs
  std::string uuid;                     // of the GPU; set by ChooseDevices, as the next
  bool pageable_memory_access = false;  // results there are not ranked
};

struct Options {
  std::vector<DeviceSpec> devices;  // as asked for (server/pipeline/devices.h); empty: every GPU, else the emulator
  int compile_workers = 2;
  int queue_capacity = 1024;
  double default_timeout_s = 30;  // of one workload, all its variants
  double max_timeout_s = 600;
  double compile_timeout_s = 30;
  int max_attempts = 3;
  double instruction_budget = 4e10;  // emulator: estimate above it is SKIPPED
  std::string build_id;
  bool accept_inline_definitions = false;
  int debug_pointer_shift_bytes = 0;  // tests only
};

class Pipeline {
 public:
  // Looks at the host and starts spawner, compiler zygotes and judges. FAILED_PRECONDITION says what is missing
  // (bubblewrap, toolkit); NOT_FOUND: a device that was asked for.
  // The pointers must outlive it.
  static StatusOr<std::unique_ptr<Pipeline>> Start(const Options& options, const catalog::Catalog* catalog,
                                                   state::Evaluations* evaluations, store::Store* store,
                                                   const base::Clock* clock);
  virtual ~Pipeline() = default;

  // Ask before acknowledging a submission. RESOURCE_EXHAUSTED when the queue is full; FAILED_PRECONDITION when no
  // device here suits `options`; INVALID_ARGUMENT for a timeout above the server's maximum.
  virtual Status Admit(const v1::EvaluationOptions& options) = 0;
  // After Create or Recover; what was accepted is never refused.
  virtual void Enqueue(const v1::Evaluation& evaluation) = 0;
  // Drops it from the queues or kills its workers. The caller has already moved the state to CANCELLED.
  virtual void Cancel(const std::string& tenant, const std::string& id) = 0;
  // Synchronous; INVALID_ARGUMENT as Validate, a submission's failure is in the response.
  virtual StatusOr<v1::CompileResponse> Compile(const std::string& tenant, const v1::CompileRequest& request) = 0;

  // Devices, host, toolchain, environment, build id, counts. `probe`: looks at the host again, for a second or so,
  // unless an evaluation is under way or it was looked at a moment ago; what a probe does (no context, nothing changed)
  // hardly disturbs one that begins meanwhile.
  virtual v1::ServerInfo Info(bool probe) = 0;
  // Finishes nothing: kills workers; evaluations under way are recovered at the next start. Idempotent.
  virtual void Shutdown() = 0;
};

}  // namespace solstice::pipeline
