#include <charconv>

#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"
#include "runtime/core/dtype.h"
#include "runtime/expr/formula.h"

namespace solstice::catalog {

using base::Quote;
using base::StrCat;

namespace {

const v1::NamedInt* FindInt(const google::protobuf::RepeatedPtrField<v1::NamedInt>& list, std::string_view name) {
  for (const v1::NamedInt& entry : list) {
    if (entry.name() == name) return &entry;
  }
  return nullptr;
}

// An axis name, a digit string or a formula over axes.
StatusOr<int64_t> Dimension(const v1::Tensor& tensor, const std::string& entry, const std::vector<v1::NamedInt>& axes) {
  expr::ListScope scope;
  for (const v1::NamedInt& axis : axes) {
    if (axis.name() == entry) return axis.value();
    scope.Add(axis.name(), axis.value());
  }
  int64_t size = 0;
  auto [end, error] = std::from_chars(entry.data(), entry.data() + entry.size(), size);
  if (error == std::errc() && end == entry.data() + entry.size()) return size;
  auto formula = expr::Formula::Parse(entry);
  auto value = formula.ok() ? formula->EvaluateInteger(scope) : StatusOr<int64_t>(formula.status());
  if (!value.ok()) return base::Annotate(value.status(), StrCat("tensor ", Quote(tensor.name()), ", ", Quote(entry)));
  return value;
}

}  // namespace

StatusOr<std::vector<v1::NamedInt>> ResolveAxes(const v1::Definition& definition, const v1::Workload& workload) {
  std::vector<v1::NamedInt> axes(static_cast<size_t>(definition.axes_size()));
  std::vector<bool> known(axes.size(), false);
  expr::ListScope scope;
  auto set = [&](size_t i, int64_t value) {
    axes[i].set_value(value);
    known[i] = true;
    scope.Add(axes[i].name(), value);
  };
  size_t unknown = 0;
  for (size_t i = 0; i < axes.size(); ++i) {
    const v1::Axis& axis = definition.axes(static_cast<int>(i));
    axes[i].set_name(axis.name());
    if (axis.has_constant()) {
      set(i, axis.constant());
    } else if (axis.has_expression()) {
      ++unknown;
    } else {
      const v1::NamedInt* given = FindInt(workload.axes(), axis.name());
      if (given == nullptr) {
        return base::InvalidArgument(
            StrCat("axis ", Quote(axis.name()), " has no value in workload ", Quote(workload.uuid())));
      }
      if (given->value() < 0) return base::InvalidArgument(StrCat("axis ", Quote(axis.name()), " is negative"));
      set(i, given->value());
    }
  }
  // Expressions may refer to one another in any order: sweep until none is left or none can be evaluated.
  while (unknown > 0) {
    size_t before = unknown;
    for (size_t i = 0; i < axes.size(); ++i) {
      if (known[i]) continue;
      const std::string& text = definition.axes(static_cast<int>(i)).expression();
      SOLSTICE_ASSIGN_OR_RETURN(expr::Formula formula, expr::Formula::Parse(text));
      bool ready = true;
      for (const std::string& name : formula.names()) ready = ready && scope.Lookup(name).ok();
      if (!ready) continue;
      auto value = formula.EvaluateInteger(scope);
      if (!value.ok()) return base::Annotate(value.status(), StrCat("axis ", Quote(axes[i].name()), " = ", text));
      set(i, *value);
      --unknown;
    }
    if (unknown == before) {
      for (size_t i = 0; i < axes.size(); ++i) {
        if (known[i]) continue;
        return base::InvalidArgument(
            StrCat("axis ", Quote(axes[i].name()), " depends on itself or on a name that is no axis"));
      }
    }
  }
  return axes;
}

StatusOr<std::vector<int64_t>> ResolveShape(const v1::Tensor& tensor, const std::vector<v1::NamedInt>& axes) {
  std::vector<int64_t> shape;
  int64_t bytes = core::ElementBytes(tensor.dtype());
  bool empty = false;
  for (const std::string& entry : tensor.shape()) {
    SOLSTICE_ASSIGN_OR_RETURN(int64_t size, Dimension(tensor, entry, axes));
    if (size < 0) {
      return base::InvalidArgument(StrCat("tensor ", Quote(tensor.name()), ": dimension ", Quote(entry), " is ", size));
    }
    empty = empty || size == 0;
    shape.push_back(size);
  }
  for (int64_t size : shape) {
    // An empty tensor has no bytes, whatever its other dimensions are; each of them still has to be sane.
    if (size > kMaxTensorBytes || (!empty && __builtin_mul_overflow(bytes, size, &bytes)) ||
        (!empty && bytes > kMaxTensorBytes)) {
      return base::InvalidArgument(
          StrCat("tensor ", Quote(tensor.name()), " would be larger than ", kMaxTensorBytes, " bytes"));
    }
  }
  return shape;
}

StatusOr<int64_t> TensorBytes(const v1::Tensor& tensor, const std::vector<v1::NamedInt>& axes) {
  SOLSTICE_ASSIGN_OR_RETURN(std::vector<int64_t> shape, ResolveShape(tensor, axes));
  int64_t bytes = core::ElementBytes(tensor.dtype());
  for (int64_t size : shape) {
    if (size == 0) return 0;
  }
  for (int64_t size : shape) bytes *= size;
  return bytes;
}

}  // namespace solstice::catalog
