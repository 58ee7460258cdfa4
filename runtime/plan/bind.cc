// Second half of planning, after linking: every number evaluated, and everything checked against the kernels and the
// device, so that a mistake is found before any launch.
#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/plan/name_expression.h"
#include "runtime/plan/occupancy.h"
#include "runtime/plan/parameters.h"
#include "runtime/plan/statement.h"

namespace solstice::plan {
namespace {

using base::InvalidArgument;
using base::Quote;
using base::StrCat;
using expr::Formula;
using v1::internal::BoundOperation;
using v1::internal::BoundPlan;
using v1::internal::SpecialisedLaunch;
using v1::internal::SpecialisedMemset;
using v1::internal::SpecialisedPlan;

constexpr int64_t kDefaultMaxGrid[3] = {2147483647, 65535, 65535};
constexpr int64_t kDefaultMaxBlock[3] = {1024, 1024, 64};

// By name expression first: two templates may share a linked name with nothing.
const v1::Kernel* FindKernel(const std::vector<v1::Kernel>& kernels, std::string_view name) {
  for (const v1::Kernel& kernel : kernels) {
    if (!kernel.name_expression().empty() && kernel.name_expression() == name) return &kernel;
  }
  for (const v1::Kernel& kernel : kernels) {
    if (kernel.name() == name) return &kernel;
  }
  return nullptr;
}

Status NoKernel(const std::vector<v1::Kernel>& kernels, std::string_view name) {
  std::vector<std::string> names;
  for (const v1::Kernel& kernel : kernels) {
    names.push_back(kernel.name_expression().empty() ? kernel.name() : kernel.name_expression());
  }
  std::string nearest = base::Nearest(name, names);
  if (names.size() > 16) names.resize(16);
  return base::NotFound(
      StrCat("the program has no kernel ", Quote(name), "; it has ", names.empty() ? "none" : base::Join(names, ", ")),
      nearest.empty() ? "" : StrCat("did you mean ", Quote(nearest), "?"));
}

// The plan's variables and occupancy(kernel, block, shared).
class BindScope : public expr::ListScope {
 public:
  BindScope(const SpecialisedPlan& plan, const std::vector<v1::Kernel>& kernels, const v1::DeviceProperties& device)
      : kernels_(kernels), device_(device) {
    for (const v1::NamedNumber& variable : plan.variables()) {
      if (variable.has_number()) {
        Add(variable.name(), variable.number());
      } else {
        Add(variable.name(), int64_t{variable.integer()});
      }
    }
  }

  StatusOr<expr::Value> Call(std::string_view function, const std::vector<std::string>& raw,
                             const std::vector<expr::Value>& arguments) const override {
    if (function != "occupancy") return ListScope::Call(function, raw, arguments);
    if (arguments.size() != 3) {
      return InvalidArgument(StrCat("occupancy() takes 3 arguments, not ", arguments.size()),
                             "write occupancy(kernel, threads_per_block, dynamic_shared_bytes)");
    }
    StatusOr<std::string> name = SpecialiseNameExpression(raw[0], *this);
    if (!name.ok()) return base::Annotate(name.status(), "occupancy()");
    const v1::Kernel* kernel = FindKernel(kernels_, *name);
    if (kernel == nullptr) {
      Status missing = NoKernel(kernels_, *name);
      return InvalidArgument(StrCat("occupancy(): ", base::MessageOf(missing)),
                             "name a kernel that this plan launches");
    }
    if (std::holds_alternative<double>(arguments[1]) || std::holds_alternative<double>(arguments[2])) {
      return InvalidArgument("occupancy() takes a whole number of threads and bytes", "use // instead of /");
    }
    auto integer = [](const expr::Value& value) {
      const bool* flag = std::get_if<bool>(&value);
      return flag != nullptr ? int64_t{*flag} : std::get<int64_t>(value);
    };
    int64_t threads = integer(arguments[1]), shared = integer(arguments[2]);
    // Larger numbers fit nowhere; refused before they enter sums.
    bool sane = threads >= 1 && threads <= int64_t{1} << 20 && shared >= 0 && shared <= int64_t{1} << 40;
    int64_t blocks = sane ? BlocksPerMultiprocessor(*kernel, threads, shared, device_) : 0;
    if (blocks > 0) return expr::Value(blocks);
    return InvalidArgument(StrCat("occupancy(): a block of ", threads, " threads with ", shared,
                                  " bytes of dynamic shared memory does not fit on a multiprocessor (kernel ", *name,
                                  ": ", kernel->registers(), " registers, ", kernel->static_shared_bytes(),
                                  " bytes of static shared memory)"));
  }

 private:
  const std::vector<v1::Kernel>& kernels_;
  const v1::DeviceProperties& device_;
};

// Inside this class statuses are as RejectionFrom reads them.
class Binder {
 public:
  Binder(const SpecialisedPlan& source, const std::vector<v1::Kernel>& kernels, const v1::DeviceProperties& device)
      : source_(source), kernels_(kernels), device_(device), scope_(source, kernels, device) {
    plan_.set_program(source.program());
  }

  void AddBuffer(v1::internal::BufferRole role, const std::string& name, int64_t bytes) {
    v1::internal::BufferPlacement* buffer = plan_.add_buffers();
    buffer->set_role(role);
    buffer->set_name(name);
    buffer->set_bytes(bytes);
  }

  Status Run() {
    for (const auto& operation : source_.operations()) {
      Status status =
          operation.has_memset() ? Memset(operation, operation.memset()) : Launch(operation, operation.launch());
      if (!status.ok()) return base::Annotate(status, StrCat(operation.file(), ":", operation.line()));
    }
    return absl::OkStatus();
  }

  BoundPlan Take() { return std::move(plan_); }

 private:
  // -1 if there is none.
  int FindBuffer(std::string_view name) const {
    for (int i = 0; i < plan_.buffers_size(); ++i) {
      if (plan_.buffers(i).name() == name) return i;
    }
    return -1;
  }

  static Status NoBuffer(std::string_view name) { return base::Internal(StrCat("no buffer ", Quote(name))); }

  StatusOr<int64_t> Integer(std::string_view what, const std::string& text) const {
    StatusOr<Formula> formula = Formula::Parse(text);
    StatusOr<int64_t> value = formula.ok() ? formula->EvaluateInteger(scope_) : StatusOr<int64_t>(formula.status());
    if (value.ok()) return value;
    return base::Annotate(value.status(), StrCat(what, ": ", Quote(text)));
  }

  Status Memset(const v1::internal::SpecialisedOperation& source, const SpecialisedMemset& memset) {
    std::string what = StrCat("memset ", memset.buffer());
    int buffer = FindBuffer(memset.buffer());
    if (buffer < 0) return NoBuffer(memset.buffer());
    int64_t capacity = plan_.buffers(buffer).bytes();
    SOLSTICE_ASSIGN_OR_RETURN(int64_t byte, Integer(what, memset.byte()));
    if (byte < 0 || byte > 255) return InvalidArgument(StrCat(what, ": the byte is ", byte), "give 0 to 255");
    int64_t bytes = capacity;
    if (!memset.bytes().empty()) {
      SOLSTICE_ASSIGN_OR_RETURN(bytes, Integer(StrCat(what, ": bytes"), memset.bytes()));
    }
    if (bytes < 0 || bytes > capacity) {
      return InvalidArgument(StrCat(what, ": ", bytes, " bytes of a buffer of ", capacity),
                             "give 0 to the buffer's size");
    }
    if (bytes == 0) return absl::OkStatus();
    BoundOperation* operation = plan_.add_operations();
    operation->set_line(source.line());
    operation->set_file(source.file());
    operation->mutable_memset()->set_buffer(buffer);
    operation->mutable_memset()->set_bytes(bytes);
    operation->mutable_memset()->set_byte(static_cast<int32_t>(byte));
    return absl::OkStatus();
  }

  Status Launch(const v1::internal::SpecialisedOperation& source, const SpecialisedLaunch& launch) {
    std::string what = StrCat("launch ", launch.name_expression());
    const v1::Kernel* kernel = FindKernel(kernels_, launch.name_expression());
    if (kernel == nullptr) return base::Annotate(NoKernel(kernels_, launch.name_expression()), what);
    // Before anything is evaluated, so that a wrong argument list is found even if this launch has nothing to do.
    SOLSTICE_RETURN_IF_ERROR(CheckParameters(launch, *kernel));
    BoundOperation bound;
    bound.set_line(source.line());
    bound.set_file(source.file());
    bound.mutable_launch()->set_entry(kernel->name());
    SOLSTICE_RETURN_IF_ERROR(Grid(what, launch, bound.mutable_launch()));
    const auto& grid = bound.launch().grid();
    if (std::find(grid.begin(), grid.end(), 0) != grid.end()) return absl::OkStatus();
    SOLSTICE_RETURN_IF_ERROR(Block(what, launch, *kernel, bound.mutable_launch()));
    SOLSTICE_RETURN_IF_ERROR(Shared(what, launch, *kernel, bound.mutable_launch()));
    for (int i = 0; i < launch.args_size(); ++i) {
      SOLSTICE_RETURN_IF_ERROR(AddArgument(StrCat(what, ": argument ", i + 1), launch.args(i), bound.mutable_launch()));
    }
    *plan_.add_operations() = std::move(bound);
    return absl::OkStatus();
  }

  Status Grid(const std::string& what, const SpecialisedLaunch& launch, v1::internal::BoundLaunch* bound) const {
    for (int i = 0; i < 3; ++i) {
      int64_t value = 1;
      if (i < launch.grid_size()) {
        SOLSTICE_ASSIGN_OR_RETURN(value, Integer(StrCat(what, ": grid"), launch.grid(i)));
      }
      int64_t limit = i < device_.max_grid_size() ? device_.max_grid(i) : kDefaultMaxGrid[i];
      if (value < 0 || value > limit) {
        return InvalidArgument(
            StrCat(what, ": grid.", "xyz"[i], " is ", value, ", allowed are 0 to ", limit),
            value < 0 ? "a grid cannot be negative" : "loop inside the kernel, or use another dimension");
      }
      bound->add_grid(value);
    }
    return absl::OkStatus();
  }

  Status Block(const std::string& what, const SpecialisedLaunch& launch, const v1::Kernel& kernel,
               v1::internal::BoundLaunch* bound) const {
    int64_t threads = 1;
    for (int i = 0; i < 3; ++i) {
      int64_t value = 1;
      if (i < launch.block_size()) {
        SOLSTICE_ASSIGN_OR_RETURN(value, Integer(StrCat(what, ": block"), launch.block(i)));
      }
      int64_t limit = i < device_.max_block_size() ? device_.max_block(i) : kDefaultMaxBlock[i];
      if (value < 1 || value > limit) {
        return InvalidArgument(StrCat(what, ": block.", "xyz"[i], " is ", value, ", allowed are 1 to ", limit));
      }
      bound->add_block(value);
      threads *= value;  // at most (2^10)^3, or a device's limits, which are as small
    }
    if (threads > MaxThreadsPerBlock(device_)) {
      return InvalidArgument(
          StrCat(what, ": a block of ", threads, " threads, the device allows ", MaxThreadsPerBlock(device_)));
    }
    if (kernel.max_threads() > 0 && threads > kernel.max_threads()) {
      return InvalidArgument(
          StrCat(what, ": a block of ", threads, " threads, the kernel was compiled for ", kernel.max_threads()),
          "raise __launch_bounds__ or use a smaller block");
    }
    int64_t registers = RegistersPerBlock(kernel, threads);
    if (registers > MaxRegistersPerBlock(device_)) {
      return InvalidArgument(
          StrCat(what, ": a block of ", threads, " threads with ", kernel.registers(), " registers each takes ",
                 registers, " registers, the device has ", MaxRegistersPerBlock(device_), " for a block"),
          StrCat("add __launch_bounds__(", threads, ") to the kernel or use a smaller block"));
    }
    return absl::OkStatus();
  }

  Status Shared(const std::string& what, const SpecialisedLaunch& launch, const v1::Kernel& kernel,
                v1::internal::BoundLaunch* bound) const {
    int64_t bytes = 0;
    if (!launch.shared().empty()) {
      SOLSTICE_ASSIGN_OR_RETURN(bytes, Integer(StrCat(what, ": shared"), launch.shared()));
    }
    if (bytes < 0) return InvalidArgument(StrCat(what, ": shared is ", bytes, " bytes"), "give 0 or more bytes");
    int64_t maximum = MaxSharedBytes(device_);
    if (bytes > maximum - kernel.static_shared_bytes()) {
      return InvalidArgument(
          StrCat(what, ": requested ", bytes, " bytes of dynamic shared memory beside ", kernel.static_shared_bytes(),
                 " bytes of static, the device's maximum for a block is ", maximum),
          "use smaller tiles or fewer pipeline stages");
    }
    bound->set_dynamic_shared_bytes(bytes);
    return absl::OkStatus();
  }

  Status AddArgument(const std::string& what, const v1::internal::SpecialisedArgument& argument,
                     v1::internal::BoundLaunch* bound) const {
    if (!argument.has_scalar()) {
      int buffer = FindBuffer(argument.buffer());
      if (buffer < 0) return NoBuffer(argument.buffer());
      bound->add_args()->set_buffer(buffer);
      return absl::OkStatus();
    }
    const ScalarType* type = FindScalarType(argument.scalar().type());
    if (type == nullptr) return base::Internal(StrCat("no scalar type ", Quote(argument.scalar().type())));
    const std::string& text = argument.scalar().formula();
    StatusOr<Formula> formula = Formula::Parse(text);
    StatusOr<expr::Value> value = formula.ok() ? formula->Evaluate(scope_) : StatusOr<expr::Value>(formula.status());
    StatusOr<std::string> bytes = value.ok() ? EncodeScalar(*type, *value) : StatusOr<std::string>(value.status());
    if (!bytes.ok()) return base::Annotate(bytes.status(), StrCat(what, ": ", type->name, "(", text, ")"));
    bound->add_args()->set_value(*bytes);
    return absl::OkStatus();
  }

  const SpecialisedPlan& source_;
  const std::vector<v1::Kernel>& kernels_;
  const v1::DeviceProperties& device_;
  BindScope scope_;
  BoundPlan plan_;
};

}  // namespace

StatusOr<BindResult> Bind(const SpecialisedPlan& plan, const v1::Definition& definition, const v1::Workload& workload,
                          const std::vector<v1::Kernel>& kernels, const v1::DeviceProperties& device) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<v1::NamedInt> axes, catalog::ResolveAxes(definition, workload));
  Binder binder(plan, kernels, device);
  for (const v1::Tensor& input : definition.inputs()) {
    if (input.scalar()) continue;
    SOLSTICE_ASSIGN_OR_RETURN(int64_t bytes, catalog::TensorBytes(input, axes));
    binder.AddBuffer(v1::internal::INPUT, input.name(), bytes);
  }
  for (const v1::Tensor& output : definition.outputs()) {
    SOLSTICE_ASSIGN_OR_RETURN(int64_t bytes, catalog::TensorBytes(output, axes));
    binder.AddBuffer(v1::internal::OUTPUT, output.name(), bytes);
  }
  for (const auto& scratch : plan.scratch()) binder.AddBuffer(v1::internal::SCRATCH, scratch.name(), scratch.bytes());
  Status status = binder.Run();
  BindResult result;
  if (status.ok()) {
    result.plan = binder.Take();
    return result;
  }
  SOLSTICE_ASSIGN_OR_RETURN(result.rejection, RejectionFrom(status));
  return result;
}

}  // namespace solstice::plan
