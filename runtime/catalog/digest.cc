#include "runtime/catalog/digest.h"

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"
#include "runtime/core/dtype.h"
#include "runtime/core/json.h"

namespace solstice::catalog {

using base::StrCat;
using core::Json;

namespace {

std::string ContentDigest(const std::string& bytes) { return StrCat("sha256:", base::Hex(base::Sha256(bytes))); }

Json AxisJson(const v1::Axis& axis) {
  Json json;
  json.Set("name", axis.name());
  if (axis.has_constant()) {
    json.Set("constant", axis.constant());
  } else if (axis.has_expression()) {
    json.Set("expression", axis.expression());
  } else {
    json.Set("variable", true);
  }
  return json;
}

Json TensorJson(const v1::Tensor& tensor) {
  Json json;
  json.Set("name", tensor.name());
  json.Set("dtype", Json(core::DTypeName(tensor.dtype())));
  Json::Array shape;
  for (const std::string& entry : tensor.shape()) shape.emplace_back(entry);
  json.Set("shape", tensor.scalar() ? Json() : Json(std::move(shape)));
  return json;
}

Json NumberJson(const v1::NamedNumber& number) {
  Json json;
  json.Set("name", number.name());
  json.Set("value", number.has_integer() ? Json(number.integer()) : Json(number.number()));
  // 1 and 1.0 look alike in canonical JSON but differ in integer arithmetic.
  json.Set("integer", number.has_integer());
  return json;
}

Json SourceJson(const v1::InputSource& source) {
  Json json;
  json.Set("name", source.name());
  if (source.has_scalar()) {
    json.Set("type", "scalar");
    const v1::ScalarValue& scalar = source.scalar();
    json.Set("value", scalar.has_boolean()   ? Json(scalar.boolean())
                      : scalar.has_integer() ? Json(scalar.integer())
                                             : Json(scalar.number()));
  } else if (source.has_safetensors()) {
    json.Set("type", "safetensors");
    json.Set("path", source.safetensors().path());
    json.Set("tensor_key", source.safetensors().tensor_key());
  } else {
    json.Set("type", source.custom() ? "custom" : "random");
  }
  return json;
}

Json WorkloadJson(const v1::Workload& workload) {
  Json json;
  json.Set("uuid", workload.uuid());
  Json::Array axes, inputs;
  for (const v1::NamedInt& axis : workload.axes()) {
    Json entry;
    entry.Set("name", axis.name());
    entry.Set("value", Json(static_cast<int64_t>(axis.value())));
    axes.push_back(std::move(entry));
  }
  for (const v1::InputSource& source : workload.inputs()) inputs.push_back(SourceJson(source));
  json.Set("axes", Json(std::move(axes)));
  json.Set("inputs", Json(std::move(inputs)));
  Json tolerance;
  tolerance.Set("max_atol", workload.tolerance().max_atol());
  tolerance.Set("max_rtol", workload.tolerance().max_rtol());
  tolerance.Set("required_matched_ratio", workload.tolerance().required_matched_ratio());
  tolerance.Set("max_error_cap",
                workload.tolerance().has_max_error_cap() ? Json(workload.tolerance().max_error_cap()) : Json());
  tolerance.Set("allow_negative_inf", workload.tolerance().allow_negative_inf());
  json.Set("tolerance", std::move(tolerance));
  return json;
}

}  // namespace

std::string DefinitionDigestText(const v1::Definition& definition, const v1::Companion& companion) {
  Json json;
  json.Set("op_type", definition.op_type());
  Json::Array axes, inputs, outputs, parameters, smoke;
  for (const v1::Axis& axis : definition.axes()) axes.push_back(AxisJson(axis));
  for (const v1::Tensor& tensor : definition.inputs()) inputs.push_back(TensorJson(tensor));
  for (const v1::Tensor& tensor : definition.outputs()) outputs.push_back(TensorJson(tensor));
  json.Set("axes", Json(std::move(axes)));
  json.Set("inputs", Json(std::move(inputs)));
  json.Set("outputs", Json(std::move(outputs)));
  json.Set("reference", ContentDigest(definition.reference()));
  json.Set("custom_inputs_entrypoint", definition.custom_inputs_entrypoint());
  for (const v1::NamedNumber& parameter : companion.reference_parameters()) parameters.push_back(NumberJson(parameter));
  for (const v1::Workload& workload : companion.smoke_workloads()) smoke.push_back(WorkloadJson(workload));
  json.Set("reference_kernel",
           companion.reference_source().empty() ? Json() : Json(ContentDigest(companion.reference_source())));
  json.Set("parameters", Json(std::move(parameters)));
  json.Set("smoke_workloads", Json(std::move(smoke)));
  return json.Canonical();
}

void SetVersion(v1::DefinitionBundle& bundle) {
  bundle.set_digest(
      base::Digest("solstice/definition/v1", DefinitionDigestText(bundle.definition(), bundle.companion())));
  bundle.set_version(StrCat(bundle.definition().name(), "@", bundle.digest().substr(sizeof("sha256:") - 1, 12)));
}

}  // namespace solstice::catalog
