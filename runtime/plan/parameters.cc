#include "runtime/plan/parameters.h"

#include "runtime/base/strings.h"
#include "runtime/plan/statement.h"

namespace solstice::plan {
namespace {

using base::InvalidArgument;
using base::StrCat;

enum class ParameterClass { kInteger, kFloat, kBits, kHalf, kStruct };

// b8 arrays are structs; one of two bytes, aligned to two, is what __half and __nv_bfloat16 become.
ParameterClass Classify(const v1::KernelParameter& parameter) {
  const std::string& type = parameter.type();
  if (type == "f32" || type == "f64") return ParameterClass::kFloat;
  if (type == "f16" || type == "bf16") return ParameterClass::kHalf;
  if (type == "b8" && parameter.bytes() == 2 && parameter.alignment() == 2) return ParameterClass::kHalf;
  if (type == "b8" || type == "b128") return ParameterClass::kStruct;
  return type.substr(0, 1) == "b" ? ParameterClass::kBits : ParameterClass::kInteger;
}

std::string Describe(const v1::KernelParameter& parameter) {
  switch (Classify(parameter)) {
    case ParameterClass::kStruct:
      return StrCat("a struct of ", parameter.bytes(), " bytes");
    case ParameterClass::kHalf:
      return "a 16-bit float";
    case ParameterClass::kFloat:
      return parameter.bytes() == 8 ? "a double (f64)" : "a float (f32)";
    default:
      if (parameter.bytes() == 8) return "a pointer or 64-bit integer";
      return StrCat("an integer of ", parameter.bytes(), parameter.bytes() == 1 ? " byte" : " bytes");
  }
}

// The value type that fits the parameter, for mends.
std::string Fitting(const v1::KernelParameter& parameter, bool is_unsigned) {
  switch (Classify(parameter)) {
    case ParameterClass::kHalf:
      return "f16";
    case ParameterClass::kFloat:
      return parameter.bytes() == 8 ? "f64" : "f32";
    default:
      return StrCat(is_unsigned ? "u" : "i", 8 * parameter.bytes());
  }
}

bool Matches(const ScalarType& type, const v1::KernelParameter& parameter) {
  if (type.bytes != parameter.bytes()) return false;
  switch (Classify(parameter)) {
    case ParameterClass::kInteger:
      return !type.is_float;
    case ParameterClass::kFloat:
    case ParameterClass::kHalf:
      return type.is_float;
    case ParameterClass::kBits:
      return true;
    default:
      return false;
  }
}

}  // namespace

Status CheckParameters(const v1::internal::SpecialisedLaunch& launch, const v1::Kernel& kernel) {
  const std::string& name = launch.name_expression();
  if (launch.args_size() != kernel.parameters_size()) {
    return InvalidArgument(StrCat("launch ", name, ": kernel ", name, " takes ", kernel.parameters_size(), " parameter",
                                  kernel.parameters_size() == 1 ? "" : "s", ", the plan gives ", launch.args_size()),
                           "give args=(...) one value a parameter, in the kernel's order");
  }
  for (int i = 0; i < launch.args_size(); ++i) {
    const v1::internal::SpecialisedArgument& argument = launch.args(i);
    const v1::KernelParameter& parameter = kernel.parameters(i);
    std::string what = StrCat("launch ", name, ": argument ", i + 1, ", ");
    if (Classify(parameter) == ParameterClass::kStruct) {
      return InvalidArgument(StrCat(what, "is for a parameter that is ", Describe(parameter),
                                    " passed by value, which is not supported yet by this version"),
                             "pass its members as parameters of their own");
    }
    if (!argument.has_scalar()) {
      ParameterClass kind = Classify(parameter);
      bool pointer = parameter.bytes() == 8 && (kind == ParameterClass::kInteger || kind == ParameterClass::kBits);
      if (pointer) continue;
      return InvalidArgument(StrCat(what, "buffer ", argument.buffer(), ", is for a parameter that is ",
                                    Describe(parameter), ", not a pointer"),
                             "check the order of args=(...) against the kernel's parameters");
    }
    const ScalarType* type = FindScalarType(argument.scalar().type());
    if (type == nullptr) return base::Internal(StrCat("no scalar type ", base::Quote(argument.scalar().type())));
    if (Matches(*type, parameter)) continue;
    const std::string& formula = argument.scalar().formula();
    return InvalidArgument(
        StrCat(what, type->name, "(", formula, "), has ", type->bytes, type->bytes == 1 ? " byte" : " bytes",
               type->is_float ? " of a float" : " of an integer", ", the parameter is ", Describe(parameter)),
        StrCat("write ", Fitting(parameter, type->name[0] == 'u'), "(", formula,
               "), or check the order of args=(...)"));
  }
  return absl::OkStatus();
}

}  // namespace solstice::plan
