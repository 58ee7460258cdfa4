// Launch plans: which kernels run, in what order, with which grid, block, shared memory and arguments, as formulas.
// The language is docs/launch-plans.md. Planning happens twice: Specialise (before compiling) and Bind (after linking).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/catalog/catalog.h"
#include "runtime/expr/formula.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::plan {

inline constexpr int kMaxLaunches = 256;
inline constexpr int kMaxPlanLines = 1024;
inline constexpr int64_t kMaxScratchBytes = int64_t{64} << 30;

// A line of a plan with where it stood.
struct PlanLine {
  std::string file;  // "kernel.cu" or "launch_plan"
  int line = 0;
  std::string text;  // without "//@"
};

// The `//@` lines of a source, continuation lines joined to the statement they belong to by Parse.
std::vector<PlanLine> ExtractPlanLines(std::string_view file, std::string_view source);
// The plan of a solution: solution.launch_plan, or the `//@` lines of its sources. INVALID_ARGUMENT if there is none.
StatusOr<std::vector<PlanLine>> PlanLines(const v1::Solution& solution);

struct Statement;

// A parsed plan: immutable, cheap to copy.
class Plan {
 public:
  // INVALID_ARGUMENT "<file>:<line>: ..." for grammar, unknown buffer names when `definition` is given, bad name
  // expressions, too many launches.
  static StatusOr<Plan> Parse(const std::vector<PlanLine>& lines, const v1::Definition* definition);

  const std::vector<std::shared_ptr<const Statement>>& statements() const { return statements_; }

 private:
  std::vector<std::shared_ptr<const Statement>> statements_;
};

// A verdict about the submission, not our failure.
struct Rejection {
  v1::Verdict verdict = v1::VERDICT_UNSPECIFIED;  // unspecified: accepted
  std::string reason, mend;
  bool rejected() const { return verdict != v1::VERDICT_UNSPECIFIED; }
};

struct SpecialiseResult {
  Rejection rejection;  // INVALID_SUBMISSION or RESOURCE_EXCEEDED
  v1::internal::SpecialisedPlan plan;
};

// Evaluates lets, when= and alternatives, defines, template arguments, scratch sizes for one workload.
// `parameters` are further names (the reference's solstice.json parameters). Status only for our own failures.
StatusOr<SpecialiseResult> Specialise(const Plan& plan, const v1::Definition& definition, const v1::Workload& workload,
                                      const std::vector<v1::NamedNumber>& parameters,
                                      const v1::DeviceProperties& device);

struct BindResult {
  Rejection rejection;
  v1::internal::BoundPlan plan;  // buffers: role, name, bytes; offsets and mapped_bytes left to the judge
};

// Evaluates grids, blocks, shared memory and arguments; checks them against the kernels' parameters (count, size,
// int-for-float) and the device's limits. A launch with a zero in its grid is left out.
StatusOr<BindResult> Bind(const v1::internal::SpecialisedPlan& plan, const v1::Definition& definition,
                          const v1::Workload& workload, const std::vector<v1::Kernel>& kernels,
                          const v1::DeviceProperties& device);

// Grammar of name expressions: identifiers with ::, template arguments of types, integers and further names; no line
// breaks, semicolons, parentheses, quotes. Returns the normalised text (single spaces, no leading &).
StatusOr<std::string> NormaliseNameExpression(std::string_view text);

}  // namespace solstice::plan
