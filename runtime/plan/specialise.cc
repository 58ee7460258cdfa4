// First half of planning, before compiling: what depends on the workload's values alone.
#include <algorithm>
#include <cmath>

#include "runtime/base/strings.h"
#include "runtime/plan/name_expression.h"
#include "runtime/plan/statement.h"

namespace solstice::plan {
namespace {

using base::Quote;
using base::StrCat;
using v1::internal::SpecialisedLaunch;
using v1::internal::SpecialisedPlan;

// Inside this class INVALID_ARGUMENT and RESOURCE_EXHAUSTED are the submission's fault; any other code is ours.
class Specialiser {
 public:
  Specialiser(const v1::Definition& definition, const v1::Workload& workload, const v1::DeviceProperties& device)
      : definition_(definition), workload_(workload), device_(device) {}

  Status AddNames(const std::vector<v1::NamedInt>& axes, const std::vector<v1::NamedNumber>& parameters) {
    for (const auto& [name, value] : DeviceNames(device_)) AddVariable(name, value);
    for (const v1::NamedNumber& parameter : parameters) {
      AddVariable(parameter.name(),
                  parameter.has_number() ? expr::Value(parameter.number()) : expr::Value(int64_t{parameter.integer()}));
    }
    for (const v1::NamedInt& axis : axes) AddVariable(axis.name(), int64_t{axis.value()});
    for (const v1::Tensor& input : definition_.inputs()) {
      if (!input.scalar()) continue;
      for (const v1::InputSource& source : workload_.inputs()) {
        if (source.name() != input.name() || !source.has_scalar()) continue;
        const v1::ScalarValue& scalar = source.scalar();
        if (scalar.has_number()) {
          AddVariable(input.name(), scalar.number());
        } else {
          AddVariable(input.name(),
                      scalar.has_boolean() ? expr::Value(scalar.boolean()) : expr::Value(int64_t{scalar.integer()}));
        }
      }
    }
    return absl::OkStatus();
  }

  Status Run(const Plan& plan) {
    bool any_held = false, in_chain = false;
    for (const std::shared_ptr<const Statement>& statement : plan.statements()) {
      bool operation = statement->kind == Statement::Kind::kLaunch || statement->kind == Statement::Kind::kMemset;
      if (!operation) {
        SOLSTICE_RETURN_IF_ERROR(Declaration(*statement));
        continue;
      }
      bool runs = true;
      if (statement->when == Statement::When::kCondition) {
        // A condition after an `else` begins a new chain.
        if (!in_chain) any_held = false;
        in_chain = true;
        SOLSTICE_ASSIGN_OR_RETURN(expr::Value held, Evaluate(*statement, "when", *statement->condition));
        runs = expr::IsTrue(held);
        any_held |= runs;
      } else if (statement->when == Statement::When::kElse) {
        in_chain = false;
        runs = !any_held;
      } else {
        in_chain = false;
      }
      if (runs) SOLSTICE_RETURN_IF_ERROR(Operation(*statement));
    }
    return absl::OkStatus();
  }

  SpecialisedPlan Take() { return std::move(plan_); }

 private:
  void AddVariable(const std::string& name, const expr::Value& value) {
    scope_.Add(name, value);
    v1::NamedNumber* variable = plan_.add_variables();
    variable->set_name(name);
    if (const double* number = std::get_if<double>(&value)) {
      variable->set_number(*number);
    } else {
      const bool* flag = std::get_if<bool>(&value);
      variable->set_integer(flag != nullptr ? int64_t{*flag} : std::get<int64_t>(value));
    }
  }

  // "(M=4, K=0)"
  std::string AxesText() const {
    std::string text;
    for (const v1::NamedNumber& variable : plan_.variables()) {
      bool axis = std::any_of(definition_.axes().begin(), definition_.axes().end(),
                              [&](const v1::Axis& candidate) { return candidate.name() == variable.name(); });
      if (axis) text += StrCat(text.empty() ? " (" : ", ", variable.name(), "=", variable.integer());
    }
    return text.empty() ? text : text + ")";
  }

  Status Error(const Statement& statement, std::string_view what, const Status& status) const {
    return base::MakeStatus(status.code(),
                            StrCat(Where(statement), ": ", what, ": ", base::MessageOf(status), AxesText()),
                            base::MendOf(status));
  }

  StatusOr<expr::Value> Evaluate(const Statement& statement, std::string_view what,
                                 const expr::Formula& formula) const {
    StatusOr<expr::Value> value = formula.Evaluate(scope_);
    if (value.ok()) return value;
    return Error(statement, StrCat(what, ": ", Quote(formula.text())), value.status());
  }

  Status Declaration(const Statement& statement) {
    if (statement.kind == Statement::Kind::kDefine) return Define(statement);
    if (statement.kind == Statement::Kind::kScratch) return Scratch(statement);
    if (scope_.Lookup(statement.name).ok()) {
      return Error(statement, StrCat("let ", statement.name),
                   base::InvalidArgument("the name is already taken", "choose another name"));
    }
    SOLSTICE_ASSIGN_OR_RETURN(expr::Value value, Evaluate(statement, StrCat("let ", statement.name), *statement.value));
    AddVariable(statement.name, value);
    return absl::OkStatus();
  }

  // A lone name without a value is a token for the preprocessor.
  Status Define(const Statement& statement) {
    const std::string& text = statement.value->text();
    std::string what = StrCat("define ", statement.name);
    if (expr::IsIdentifier(text) && absl::IsNotFound(scope_.Lookup(text).status())) {
      plan_.add_defines(StrCat(statement.name, "=", text));
      return absl::OkStatus();
    }
    SOLSTICE_ASSIGN_OR_RETURN(expr::Value value, Evaluate(statement, what, *statement.value));
    std::string token;
    if (const double* number = std::get_if<double>(&value)) {
      if (!std::isfinite(*number)) {
        return Error(statement, StrCat(what, ": ", Quote(text)),
                     base::InvalidArgument(StrCat("the result is ", expr::ToText(value))));
      }
      token = StrCat(*number);
      if (token.find_first_of(".e") == std::string::npos) token += ".0";
    } else {
      const bool* flag = std::get_if<bool>(&value);
      token = flag != nullptr ? (*flag ? "1" : "0") : expr::ToText(value);
    }
    plan_.add_defines(StrCat(statement.name, "=", token));
    return absl::OkStatus();
  }

  Status Scratch(const Statement& statement) {
    std::string what = StrCat("scratch ", statement.name);
    StatusOr<int64_t> bytes = statement.value->EvaluateInteger(scope_);
    std::string where = StrCat(what, ": ", Quote(statement.value->text()));
    if (!bytes.ok()) return Error(statement, where, bytes.status());
    if (*bytes < 0) return Error(statement, where, base::InvalidArgument(StrCat("the size is ", *bytes, " bytes")));
    int64_t limit = kMaxScratchBytes;
    if (device_.memory_bytes() > 0) limit = std::min<int64_t>(limit, device_.memory_bytes());
    // Compared before adding, so that the sum cannot overflow.
    if (*bytes > limit - scratch_bytes_) {
      std::string before =
          scratch_bytes_ > 0 ? StrCat(" after ", scratch_bytes_, " bytes of other scratch") : std::string();
      return Error(
          statement, where,
          base::ResourceExhausted(StrCat(*bytes, " bytes", before, " are more than the limit of ", limit, " bytes"),
                                  "use less scratch memory"));
    }
    scratch_bytes_ += (*bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
    scratch_bytes_ = std::min(scratch_bytes_, limit);
    v1::internal::SpecialisedScratch* scratch = plan_.add_scratch();
    scratch->set_name(statement.name);
    scratch->set_bytes(*bytes);
    return absl::OkStatus();
  }

  // Bind evaluates `formula`; that it names only what exists is known now, before anything is compiled.
  Status CheckNames(const Statement& statement, std::string_view what, const expr::Formula& formula) const {
    for (const std::string& name : formula.names()) {
      if (scope_.Lookup(name).ok()) continue;
      bool scalar = std::any_of(definition_.inputs().begin(), definition_.inputs().end(),
                                [&](const v1::Tensor& input) { return input.scalar() && input.name() == name; });
      std::string nearest = base::Nearest(name, scope_.Names());
      Status unknown = scalar
                           ? base::InvalidArgument(StrCat("the workload gives scalar input ", Quote(name), " no value"))
                           : base::InvalidArgument(StrCat("unknown name ", Quote(name)),
                                                   nearest.empty() ? "" : StrCat("did you mean ", Quote(nearest), "?"));
      return Error(statement, StrCat(what, ": ", Quote(formula.text())), unknown);
    }
    return absl::OkStatus();
  }

  Status Operation(const Statement& statement) {
    v1::internal::SpecialisedOperation* operation = plan_.add_operations();
    operation->set_line(statement.line);
    operation->set_file(statement.file);
    if (statement.kind == Statement::Kind::kLaunch) return Launch(statement, operation->mutable_launch());
    std::string what = StrCat("memset ", statement.name);
    SOLSTICE_RETURN_IF_ERROR(CheckNames(statement, what, *statement.value));
    v1::internal::SpecialisedMemset* memset = operation->mutable_memset();
    memset->set_buffer(statement.name);
    memset->set_byte(statement.value->text());
    if (statement.bytes.has_value()) {
      SOLSTICE_RETURN_IF_ERROR(CheckNames(statement, what, *statement.bytes));
      memset->set_bytes(statement.bytes->text());
    }
    return absl::OkStatus();
  }

  Status Launch(const Statement& statement, SpecialisedLaunch* launch) {
    std::string what = StrCat("launch ", statement.name);
    StatusOr<std::string> name = SpecialiseNameExpression(statement.name, scope_);
    if (!name.ok()) return Error(statement, what, name.status());
    launch->set_name_expression(*name);
    auto& names = *plan_.mutable_name_expressions();
    if (std::find(names.begin(), names.end(), *name) == names.end()) plan_.add_name_expressions(*name);
    for (const expr::Formula& formula : statement.grid) {
      SOLSTICE_RETURN_IF_ERROR(CheckNames(statement, what + ": grid", formula));
      launch->add_grid(formula.text());
    }
    for (const expr::Formula& formula : statement.block) {
      SOLSTICE_RETURN_IF_ERROR(CheckNames(statement, what + ": block", formula));
      launch->add_block(formula.text());
    }
    if (statement.shared.has_value()) {
      SOLSTICE_RETURN_IF_ERROR(CheckNames(statement, what + ": shared", *statement.shared));
      launch->set_shared(statement.shared->text());
    }
    int number = 0;
    for (const Argument& argument : statement.args) {
      SOLSTICE_RETURN_IF_ERROR(AddArgument(statement, StrCat(what, ": argument ", ++number), argument, launch));
    }
    return absl::OkStatus();
  }

  Status AddArgument(const Statement& statement, const std::string& what, const Argument& argument,
                     SpecialisedLaunch* launch) {
    std::string type = argument.type;
    for (const v1::Tensor& input : definition_.inputs()) {
      if (!type.empty() || !input.scalar() || input.name() != argument.text) continue;
      // A bare scalar input is passed with its own dtype.
      const ScalarType* own = ScalarTypeOf(input.dtype());
      if (own == nullptr)
        return Error(statement, what, base::InvalidArgument("the scalar input's dtype cannot be passed by value"));
      type = std::string(own->name);
    }
    if (type.empty()) {
      launch->add_args()->set_buffer(argument.text);
      return absl::OkStatus();
    }
    StatusOr<expr::Formula> formula = expr::Formula::Parse(argument.text);
    if (!formula.ok()) return Error(statement, what, formula.status());
    SOLSTICE_RETURN_IF_ERROR(CheckNames(statement, what, *formula));
    v1::internal::SpecialisedScalar* scalar = launch->add_args()->mutable_scalar();
    scalar->set_type(type);
    scalar->set_formula(argument.text);
    return absl::OkStatus();
  }

  const v1::Definition& definition_;
  const v1::Workload& workload_;
  const v1::DeviceProperties& device_;
  expr::ListScope scope_;
  SpecialisedPlan plan_;
  int64_t scratch_bytes_ = 0;
};

}  // namespace

StatusOr<SpecialiseResult> Specialise(const Plan& plan, const v1::Definition& definition, const v1::Workload& workload,
                                      const std::vector<v1::NamedNumber>& parameters,
                                      const v1::DeviceProperties& device) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<v1::NamedInt> axes, catalog::ResolveAxes(definition, workload));
  Specialiser specialiser(definition, workload, device);
  SOLSTICE_RETURN_IF_ERROR(specialiser.AddNames(axes, parameters));
  Status status = specialiser.Run(plan);
  SpecialiseResult result;
  if (status.ok()) {
    result.plan = specialiser.Take();
    return result;
  }
  SOLSTICE_ASSIGN_OR_RETURN(result.rejection, RejectionFrom(status));
  return result;
}

}  // namespace solstice::plan
