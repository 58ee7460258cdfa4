#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "runtime/base/strings.h"
#include "runtime/catalog/catalog.h"
#include "runtime/catalog/workload_reader.h"
#include "runtime/core/dtype.h"

namespace solstice::catalog {

using base::Quote;
using base::StrCat;
using core::Json;

namespace {

constexpr size_t kMaxUuidBytes = 128;

void Note(std::vector<std::string>* notes, std::string note) {
  // Sets repeat the same surplus name in every line: one note each.
  if (notes == nullptr || notes->size() >= 32) return;
  if (std::find(notes->begin(), notes->end(), note) == notes->end()) notes->push_back(std::move(note));
}

StatusOr<std::string> ReadUuid(const Field& object) {
  SOLSTICE_ASSIGN_OR_RETURN(Field field, object.Member("uuid"));
  SOLSTICE_ASSIGN_OR_RETURN(std::string uuid, field.String());
  std::string_view mend = "use 1 to 128 printable bytes without leading or trailing space; letter case counts";
  if (uuid.empty()) return field.Error("is empty", mend);
  if (uuid.size() > kMaxUuidBytes) return field.Error(StrCat("is longer than ", kMaxUuidBytes, " bytes"), mend);
  for (size_t i = 0; i < uuid.size(); ++i) {
    unsigned char c = static_cast<unsigned char>(uuid[i]);
    // U+0080 to U+009F are control characters too.
    bool c1 = c == 0xC2 && i + 1 < uuid.size() && static_cast<unsigned char>(uuid[i + 1]) < 0xA0;
    if (c < 0x20 || c == 0x7F || c1) return field.Error("holds a control character", mend);
  }
  if (uuid.front() == ' ' || uuid.back() == ' ') return field.Error("starts or ends with a space", mend);
  return uuid;
}

Status ReadAxes(const Field& object, const v1::Definition& definition, std::vector<std::string>* notes,
                v1::Workload& workload) {
  SOLSTICE_ASSIGN_OR_RETURN(Field axes, object.Member("axes"));
  SOLSTICE_RETURN_IF_ERROR(axes.NeedObject());
  std::vector<std::string> names;
  for (const v1::Axis& axis : definition.axes()) {
    names.push_back(axis.name());
    if (axes.json().Find(axis.name()) == nullptr) {
      if (axis.variable()) return axes.Error(StrCat("needs axis ", Quote(axis.name())));
      continue;
    }
    Field field = axes.Optional(axis.name());
    SOLSTICE_ASSIGN_OR_RETURN(int64_t value, field.Integer());
    if (value < 0) return field.Error("must not be negative");
    // A constant may be repeated (an expression is compared below, when it has a value).
    if (axis.has_constant() && value != axis.constant()) {
      return field.Error(StrCat("the definition fixes this axis at ", axis.constant()), "leave the axis out");
    }
    if (!axis.variable()) continue;
    v1::NamedInt& entry = *workload.add_axes();
    entry.set_name(axis.name());
    entry.set_value(value);
  }
  for (const auto& member : axes.json().object()) {
    if (std::find(names.begin(), names.end(), member.first) != names.end()) continue;
    Note(notes, StrCat(object.file(), ": axis ", Quote(member.first), " is none of the definition's: ignored"));
  }
  return absl::OkStatus();
}

Status ReadScalar(const Field& source, const v1::Tensor& input, v1::ScalarValue& scalar) {
  SOLSTICE_ASSIGN_OR_RETURN(Field value, source.Member("value"));
  if (input.dtype() == v1::BOOL) {
    SOLSTICE_ASSIGN_OR_RETURN(bool boolean, value.Bool());
    scalar.set_boolean(boolean);
    return absl::OkStatus();
  }
  if (core::IsFloating(input.dtype())) {
    SOLSTICE_ASSIGN_OR_RETURN(double number, value.Number());
    scalar.set_number(number);
    return absl::OkStatus();
  }
  SOLSTICE_ASSIGN_OR_RETURN(int64_t integer, value.Integer());
  int64_t bits = core::ElementBytes(input.dtype()) * 8;
  bool is_unsigned = input.dtype() == v1::UINT8;
  if (bits < 64) {
    int64_t low = is_unsigned ? 0 : -(int64_t{1} << (bits - 1));
    int64_t high = is_unsigned ? (int64_t{1} << bits) - 1 : (int64_t{1} << (bits - 1)) - 1;
    if (integer < low || integer > high) {
      return value.Error(StrCat("does not fit ", core::DTypeName(input.dtype())));
    }
  }
  scalar.set_integer(integer);
  return absl::OkStatus();
}

Status ReadSafetensors(const Field& source, v1::SafetensorsRef& reference) {
  SOLSTICE_ASSIGN_OR_RETURN(Field path, source.Member("path"));
  SOLSTICE_ASSIGN_OR_RETURN(std::string text, path.String());
  // Decided by the text alone: nothing is opened, so the answer cannot tell what exists.
  std::string why_not = WhyNotRelativePath(text);
  if (!why_not.empty()) {
    return path.Error(StrCat("the path ", why_not),
                      "name a file below the definition's folder, as in \"blob/x.safetensors\"");
  }
  SOLSTICE_ASSIGN_OR_RETURN(Field key, source.Member("tensor_key"));
  SOLSTICE_ASSIGN_OR_RETURN(std::string tensor_key, key.String());
  if (tensor_key.empty()) return key.Error("is empty");
  reference.set_path(NormalPath(text));
  reference.set_tensor_key(tensor_key);
  return absl::OkStatus();
}

Status ReadSource(const Field& source, const v1::Definition& definition, const v1::Tensor& input,
                  v1::InputSource& result) {
  SOLSTICE_RETURN_IF_ERROR(source.NeedObject());
  SOLSTICE_ASSIGN_OR_RETURN(Field type_field, source.Member("type"));
  SOLSTICE_ASSIGN_OR_RETURN(std::string type, type_field.String());
  if (type == "random") {
    result.set_random(true);
  } else if (type == "scalar") {
    if (!input.scalar()) {
      return type_field.Error("the input is a tensor, not a scalar", "use \"random\", \"custom\" or \"safetensors\"");
    }
    return ReadScalar(source, input, *result.mutable_scalar());
  } else if (type == "safetensors") {
    if (input.scalar())
      return type_field.Error("the input is a scalar, not a tensor", "use \"scalar\" with a \"value\"");
    return ReadSafetensors(source, *result.mutable_safetensors());
  } else if (type == "custom") {
    if (definition.custom_inputs_entrypoint().empty()) {
      return type_field.Error("the definition names no custom_inputs_entrypoint", "use \"random\"");
    }
    result.set_custom(true);
  } else {
    return type_field.Error(StrCat("unknown input source ", Quote(type)),
                            "use \"random\", \"scalar\", \"safetensors\" or \"custom\"");
  }
  return absl::OkStatus();
}

Status ReadInputs(const Field& object, const v1::Definition& definition, std::vector<std::string>* notes,
                  v1::Workload& workload) {
  SOLSTICE_ASSIGN_OR_RETURN(Field inputs, object.Member("inputs"));
  SOLSTICE_RETURN_IF_ERROR(inputs.NeedObject());
  std::vector<std::string> names;
  for (const v1::Tensor& input : definition.inputs()) {
    names.push_back(input.name());
    if (inputs.json().Find(input.name()) == nullptr) return inputs.Error(StrCat("needs input ", Quote(input.name())));
    v1::InputSource& source = *workload.add_inputs();
    source.set_name(input.name());
    SOLSTICE_RETURN_IF_ERROR(ReadSource(inputs.Optional(input.name()), definition, input, source));
  }
  for (const auto& member : inputs.json().object()) {
    if (std::find(names.begin(), names.end(), member.first) != names.end()) continue;
    Note(notes, StrCat(object.file(), ": input ", Quote(member.first), " is none of the definition's: ignored"));
  }
  return absl::OkStatus();
}

StatusOr<double> Bound(const Field& tolerance, std::string_view key, double otherwise) {
  Field field = tolerance.Optional(key);
  if (!field.present()) return otherwise;
  SOLSTICE_ASSIGN_OR_RETURN(double value, field.Number());
  if (!std::isfinite(value) || value < 0) return field.Error("must be finite and not negative");
  return value;
}

Status ReadTolerance(const Field& object, v1::Tolerance& tolerance) {
  Field field = object.Optional("tolerance");
  if (field.present()) SOLSTICE_RETURN_IF_ERROR(field.NeedObject());
  SOLSTICE_ASSIGN_OR_RETURN(double atol, Bound(field, "max_atol", 1e-2));
  SOLSTICE_ASSIGN_OR_RETURN(double rtol, Bound(field, "max_rtol", 1e-2));
  SOLSTICE_ASSIGN_OR_RETURN(double ratio, Bound(field, "required_matched_ratio", 0.99));
  if (ratio <= 0 || ratio > 1) {
    return field.Optional("required_matched_ratio").Error("must be greater than 0 and at most 1");
  }
  tolerance.set_max_atol(atol);
  tolerance.set_max_rtol(rtol);
  tolerance.set_required_matched_ratio(ratio);
  if (field.Optional("max_error_cap").present()) {
    SOLSTICE_ASSIGN_OR_RETURN(double cap, Bound(field, "max_error_cap", 0));
    tolerance.set_max_error_cap(cap);
    tolerance.set_has_max_error_cap(true);
  }
  if (Field allow = field.Optional("allow_negative_inf"); allow.present()) {
    SOLSTICE_ASSIGN_OR_RETURN(bool value, allow.Bool());
    tolerance.set_allow_negative_inf(value);
  }
  return absl::OkStatus();
}

// Every axis has a value and every tensor a sane size.
Status CheckSizes(const Field& object, const v1::Definition& definition, const v1::Workload& workload) {
  Field where = object.Optional("axes");
  auto axes = ResolveAxes(definition, workload);
  if (!axes.ok()) return where.Error(base::MessageOf(axes.status()), base::MendOf(axes.status()));
  for (const v1::NamedInt& axis : *axes) {
    Field given = where.Optional(axis.name());
    if (given.present() && given.json().integer() != axis.value()) {
      return given.Error(StrCat("the definition computes this axis as ", axis.value()), "leave the axis out");
    }
  }
  for (const auto* tensors : {&definition.inputs(), &definition.outputs()}) {
    for (const v1::Tensor& tensor : *tensors) {
      auto bytes = TensorBytes(tensor, *axes);
      if (!bytes.ok()) return where.Error(base::MessageOf(bytes.status()), base::MendOf(bytes.status()));
    }
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<v1::Workload> ReadWorkload(const Field& field, const v1::Definition& definition,
                                    std::vector<std::string>* notes) {
  SOLSTICE_RETURN_IF_ERROR(field.NeedObject());
  v1::Workload workload;
  SOLSTICE_ASSIGN_OR_RETURN(*workload.mutable_uuid(), ReadUuid(field));
  SOLSTICE_RETURN_IF_ERROR(ReadAxes(field, definition, notes, workload));
  SOLSTICE_RETURN_IF_ERROR(ReadInputs(field, definition, notes, workload));
  SOLSTICE_RETURN_IF_ERROR(ReadTolerance(field, *workload.mutable_tolerance()));
  SOLSTICE_RETURN_IF_ERROR(CheckSizes(field, definition, workload));
  return workload;
}

StatusOr<std::vector<v1::Workload>> ParseWorkloads(std::string_view text, std::string_view file,
                                                   const v1::Definition& definition, std::vector<std::string>* notes) {
  if (text.size() > static_cast<size_t>(kMaxWorkloadBytes)) {
    return base::InvalidArgument(StrCat(file, ": ", text.size(), " bytes, the limit is ", kMaxWorkloadBytes));
  }
  std::vector<v1::Workload> workloads;
  std::map<std::string, int> line_of_uuid;
  int line = 0;
  while (!text.empty()) {
    ++line;
    size_t end = text.find('\n');
    std::string_view content = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (base::Trim(content).empty()) continue;
    if (workloads.size() >= static_cast<size_t>(kMaxWorkloads)) {
      return base::InvalidArgument(StrCat(file, ":", line, ": $: more than ", kMaxWorkloads, " workloads"));
    }
    auto json = core::ParseJson(content, file, line);
    if (!json.ok()) {
      std::string mend = base::MendOf(json.status());
      return base::InvalidArgument(base::MessageOf(json.status()),
                                   mend.empty() ? "write one JSON object a line" : mend);
    }
    Field root(*json, file);
    if (!json->is_object()) return root.WrongType("a workload object", "write one JSON object a line");
    // Traces wrap the workload in an object that also names definition and solution.
    Field wrapped = root.Optional("workload");
    SOLSTICE_ASSIGN_OR_RETURN(v1::Workload workload,
                              ReadWorkload(wrapped.present() ? wrapped : root, definition, notes));
    auto [first, added] = line_of_uuid.emplace(workload.uuid(), line);
    if (!added) {
      return root.Optional("uuid").Error(
          StrCat("uuid ", Quote(workload.uuid()), " stands on lines ", first->second, " and ", line),
          "give every workload its own uuid");
    }
    workloads.push_back(std::move(workload));
  }
  return workloads;
}

}  // namespace solstice::catalog
