#include <algorithm>
#include <set>

#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"
#include "runtime/catalog/json_field.h"
#include "runtime/core/dtype.h"
#include "runtime/expr/formula.h"

namespace solstice::catalog {

using base::Quote;
using base::StrCat;
using core::Json;

namespace {

constexpr size_t kMaxDescriptionBytes = 64 << 10;
constexpr size_t kMaxAxes = 128;

bool IsDigits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

std::vector<std::string> AxisNames(const v1::Definition& definition) {
  std::vector<std::string> names;
  for (const v1::Axis& axis : definition.axes()) names.push_back(axis.name());
  return names;
}

// A formula over axes: its grammar and the names it uses.
Status CheckFormula(const Field& field, const std::string& text, const v1::Definition& definition) {
  auto formula = expr::Formula::Parse(text);
  if (!formula.ok()) {
    return field.Error(StrCat(Quote(text), " is no formula: ", base::MessageOf(formula.status())),
                       base::MendOf(formula.status()));
  }
  std::vector<std::string> axes = AxisNames(definition);
  for (const std::string& name : formula->names()) {
    if (std::find(axes.begin(), axes.end(), name) != axes.end()) continue;
    std::string near = base::Nearest(name, axes);
    return field.Error(StrCat(Quote(text), " uses ", Quote(name), ", which is no axis"),
                       near.empty() ? "declare it under \"axes\"" : StrCat("did you mean ", near, "?"));
  }
  return absl::OkStatus();
}

StatusOr<std::string> OptionalText(const Field& object, std::string_view key, size_t max_bytes) {
  Field field = object.Optional(key);
  if (!field.present()) return std::string();
  return field.String(max_bytes);
}

Status ReadAxis(const Field& field, v1::Axis& axis) {
  SOLSTICE_RETURN_IF_ERROR(field.NeedObject());
  SOLSTICE_ASSIGN_OR_RETURN(Field type_field, field.Member("type"));
  SOLSTICE_ASSIGN_OR_RETURN(std::string type, type_field.String());
  if (type == "var") {
    axis.set_variable(true);
  } else if (type == "const") {
    SOLSTICE_ASSIGN_OR_RETURN(Field value, field.Member("value"));
    SOLSTICE_ASSIGN_OR_RETURN(int64_t constant, value.Integer());
    if (constant < 0) return value.Error("must not be negative");
    axis.set_constant(constant);
  } else if (type == "expr") {
    SOLSTICE_ASSIGN_OR_RETURN(Field expression, field.Member("expression"));
    SOLSTICE_ASSIGN_OR_RETURN(*axis.mutable_expression(), expression.String());
  } else {
    return type_field.Error(StrCat("unknown kind of axis ", Quote(type)), "use \"var\", \"const\" or \"expr\"");
  }
  SOLSTICE_ASSIGN_OR_RETURN(*axis.mutable_description(), OptionalText(field, "description", kMaxDescriptionBytes));
  return absl::OkStatus();
}

// Names of axes, inputs and outputs share one space: plans and formulas refer to all of them.
Status TakeName(const Field& field, const std::string& name, std::set<std::string>& taken) {
  if (!IsIdentifier(name)) {
    return field.Error("is no usable name", "use letters, digits and underscores, not starting with a digit");
  }
  if (!taken.insert(name).second) return field.Error("the name is already that of an axis or tensor", "rename one");
  return absl::OkStatus();
}

Status ReadAxes(const Field& axes, std::set<std::string>& taken, v1::Definition& definition) {
  SOLSTICE_RETURN_IF_ERROR(axes.NeedObject());
  if (axes.json().object().size() > kMaxAxes) return axes.Error(StrCat("more than ", kMaxAxes, " axes"));
  for (const auto& member : axes.json().object()) {
    Field field = axes.Value(member);
    SOLSTICE_RETURN_IF_ERROR(TakeName(field, member.first, taken));
    v1::Axis& axis = *definition.add_axes();
    axis.set_name(member.first);
    SOLSTICE_RETURN_IF_ERROR(ReadAxis(field, axis));
  }
  for (const v1::Axis& axis : definition.axes()) {
    if (!axis.has_expression()) continue;
    SOLSTICE_ASSIGN_OR_RETURN(Field field, axes.Member(axis.name()));
    SOLSTICE_RETURN_IF_ERROR(CheckFormula(field.Optional("expression"), axis.expression(), definition));
  }
  return absl::OkStatus();
}

// An expression axis may refer to another one, but not in a circle.
Status CheckCycles(const Field& axes, const v1::Definition& definition) {
  std::set<std::string> known;
  for (const v1::Axis& axis : definition.axes()) {
    if (!axis.has_expression()) known.insert(axis.name());
  }
  std::string stuck;
  for (bool progress = true; progress;) {
    progress = false;
    stuck.clear();
    for (const v1::Axis& axis : definition.axes()) {
      if (known.count(axis.name()) > 0) continue;
      SOLSTICE_ASSIGN_OR_RETURN(expr::Formula formula, expr::Formula::Parse(axis.expression()));
      bool ready = std::all_of(formula.names().begin(), formula.names().end(),
                               [&](const std::string& name) { return known.count(name) > 0; });
      if (ready) {
        known.insert(axis.name());
        progress = true;
      } else if (stuck.empty()) {
        stuck = axis.name();
      }
    }
  }
  if (stuck.empty()) return absl::OkStatus();
  return axes.Optional(stuck).Error("the axis depends on itself", "break the circle of axis expressions");
}

Status ReadShape(const Field& shape, const v1::Definition& definition, v1::Tensor& tensor) {
  SOLSTICE_RETURN_IF_ERROR(shape.NeedArray());
  if (shape.json().array().size() > static_cast<size_t>(kMaxRank)) {
    return shape.Error(StrCat("more than ", kMaxRank, " dimensions"));
  }
  for (size_t i = 0; i < shape.json().array().size(); ++i) {
    Field entry = shape.Element(i);
    if (entry.json().is_integer() && entry.json().integer() >= 0) {
      tensor.add_shape(StrCat(entry.json().integer()));
      continue;
    }
    if (!entry.json().is_string()) return entry.WrongType("an axis name, a digit string or a formula over axes");
    SOLSTICE_ASSIGN_OR_RETURN(std::string text, entry.String());
    if (IsDigits(text)) {
      if (text.size() > 18) return entry.Error("the dimension is too large");
    } else {
      SOLSTICE_RETURN_IF_ERROR(CheckFormula(entry, text, definition));
    }
    tensor.add_shape(text);
  }
  return absl::OkStatus();
}

Status ReadTensor(const Field& field, const v1::Definition& definition, bool output, v1::Tensor& tensor) {
  SOLSTICE_RETURN_IF_ERROR(field.NeedObject());
  SOLSTICE_ASSIGN_OR_RETURN(Field dtype_field, field.Member("dtype"));
  SOLSTICE_ASSIGN_OR_RETURN(std::string dtype_name, dtype_field.String());
  auto dtype = core::ParseDType(dtype_name);
  if (!dtype.ok()) return dtype_field.Error(base::MessageOf(dtype.status()), base::MendOf(dtype.status()));
  tensor.set_dtype(*dtype);
  SOLSTICE_ASSIGN_OR_RETURN(Field shape, field.Member("shape"));
  if (shape.json().is_null()) {
    if (output) return shape.Error("an output is a tensor", "write [] for a tensor of one value");
    tensor.set_scalar(true);
  } else {
    SOLSTICE_RETURN_IF_ERROR(ReadShape(shape, definition, tensor));
  }
  SOLSTICE_ASSIGN_OR_RETURN(*tensor.mutable_description(), OptionalText(field, "description", kMaxDescriptionBytes));
  return absl::OkStatus();
}

Status ReadTensors(const Field& tensors, bool output, std::set<std::string>& taken, v1::Definition& definition) {
  SOLSTICE_RETURN_IF_ERROR(tensors.NeedObject());
  for (const auto& member : tensors.json().object()) {
    Field field = tensors.Value(member);
    if (definition.inputs_size() + definition.outputs_size() >= kMaxTensors) {
      return field.Error(StrCat("more than ", kMaxTensors, " inputs and outputs"));
    }
    SOLSTICE_RETURN_IF_ERROR(TakeName(field, member.first, taken));
    v1::Tensor& tensor = output ? *definition.add_outputs() : *definition.add_inputs();
    tensor.set_name(member.first);
    SOLSTICE_RETURN_IF_ERROR(ReadTensor(field, definition, output, tensor));
  }
  return absl::OkStatus();
}

}  // namespace

bool IsValidName(std::string_view name) {
  if (name.empty() || name.size() > 128) return false;
  for (size_t i = 0; i < name.size(); ++i) {
    char c = name[i];
    bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!word && !(i > 0 && (c == '.' || c == '-'))) return false;
  }
  return true;
}

StatusOr<v1::Definition> ParseDefinition(std::string_view text, std::string_view file) {
  if (text.size() > static_cast<size_t>(kMaxDefinitionBytes)) {
    return base::InvalidArgument(StrCat(file, ": ", text.size(), " bytes, the limit is ", kMaxDefinitionBytes));
  }
  SOLSTICE_ASSIGN_OR_RETURN(Json json, core::ParseJson(text, file));
  Field root(json, file);
  SOLSTICE_RETURN_IF_ERROR(root.NeedObject());
  v1::Definition definition;
  SOLSTICE_ASSIGN_OR_RETURN(Field name, root.Member("name"));
  SOLSTICE_ASSIGN_OR_RETURN(*definition.mutable_name(), name.String());
  if (!IsValidName(definition.name())) {
    return name.Error(StrCat(Quote(definition.name()), " is no name of a definition"),
                      "use up to 128 letters, digits, \"_\", \".\" and \"-\", starting with a letter, digit or \"_\"");
  }
  SOLSTICE_ASSIGN_OR_RETURN(*definition.mutable_op_type(), OptionalText(root, "op_type", 256));
  SOLSTICE_ASSIGN_OR_RETURN(*definition.mutable_description(), OptionalText(root, "description", kMaxDescriptionBytes));
  SOLSTICE_ASSIGN_OR_RETURN(Field reference, root.Member("reference"));
  SOLSTICE_ASSIGN_OR_RETURN(*definition.mutable_reference(), reference.String(kMaxSourceBytes));
  SOLSTICE_ASSIGN_OR_RETURN(*definition.mutable_custom_inputs_entrypoint(),
                            OptionalText(root, "custom_inputs_entrypoint", 256));

  std::set<std::string> taken;
  SOLSTICE_ASSIGN_OR_RETURN(Field axes, root.Member("axes"));
  SOLSTICE_RETURN_IF_ERROR(ReadAxes(axes, taken, definition));
  SOLSTICE_RETURN_IF_ERROR(CheckCycles(axes, definition));
  SOLSTICE_ASSIGN_OR_RETURN(Field inputs, root.Member("inputs"));
  SOLSTICE_RETURN_IF_ERROR(ReadTensors(inputs, false, taken, definition));
  SOLSTICE_ASSIGN_OR_RETURN(Field outputs, root.Member("outputs"));
  SOLSTICE_RETURN_IF_ERROR(ReadTensors(outputs, true, taken, definition));
  if (definition.outputs_size() == 0) return outputs.Error("needs at least one output");
  return definition;
}

}  // namespace solstice::catalog
