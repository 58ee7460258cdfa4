#include "runtime/plan/names.h"

#include <algorithm>

#include "runtime/base/strings.h"
#include "runtime/core/dtype.h"
#include "runtime/plan/statement.h"

namespace solstice::plan {
namespace {

using base::InvalidArgument;
using base::Quote;
using base::StrCat;

bool Has(const std::vector<std::string>& list, std::string_view name) {
  return std::find(list.begin(), list.end(), name) != list.end();
}

template <typename Messages>
auto Named(const Messages& messages, std::string_view name) -> decltype(&*messages.begin()) {
  for (const auto& message : messages) {
    if (message.name() == name) return &message;
  }
  return nullptr;
}

}  // namespace

PlanNames::PlanNames(const v1::Definition* definition) : definition_(definition) {}

Status PlanNames::CheckFree(const std::string& name) const {
  std::string taken;
  if (expr::IsReservedName(name) || name == "occupancy") taken = "is a word of formulas";
  if (IsDeviceName(name)) taken = "is a property of the device";
  if (Has(lets_, name)) taken = "is already a let";
  if (Has(scratch_, name)) taken = "is already a scratch buffer";
  if (definition_ != nullptr) {
    if (Named(definition_->axes(), name) != nullptr) taken = "is an axis of the definition";
    if (Named(definition_->inputs(), name) != nullptr) taken = "is an input of the definition";
    if (Named(definition_->outputs(), name) != nullptr) taken = "is an output of the definition";
  }
  return taken.empty() ? absl::OkStatus() : InvalidArgument(StrCat(Quote(name), " ", taken), "choose another name");
}

Status PlanNames::DeclareLet(const std::string& name) {
  SOLSTICE_RETURN_IF_ERROR(CheckFree(name));
  lets_.push_back(name);
  if (lets_.size() > static_cast<size_t>(kMaxLets))
    return InvalidArgument(StrCat("the plan has more than ", kMaxLets, " lets"));
  return absl::OkStatus();
}

Status PlanNames::DeclareScratch(const std::string& name) {
  SOLSTICE_RETURN_IF_ERROR(CheckFree(name));
  scratch_.push_back(name);
  if (scratch_.size() > static_cast<size_t>(kMaxScratch)) {
    return InvalidArgument(StrCat("the plan has more than ", kMaxScratch, " scratch buffers"));
  }
  return absl::OkStatus();
}

Status PlanNames::DeclareDefine(const std::string& name) {
  bool reserved = name.substr(0, 2) == "__" || (name[0] == '_' && name.size() > 1 && name[1] >= 'A' && name[1] <= 'Z');
  if (reserved || name == "defined") {
    return InvalidArgument(StrCat(Quote(name), " is reserved for the compiler"),
                           "choose a name without leading underscores");
  }
  if (Has(defines_, name))
    return InvalidArgument(StrCat(Quote(name), " is defined twice"), "choose the value with a if condition else b");
  defines_.push_back(name);
  if (defines_.size() > static_cast<size_t>(kMaxDefines)) {
    return InvalidArgument(StrCat("the plan has more than ", kMaxDefines, " defines"));
  }
  return absl::OkStatus();
}

Status PlanNames::Unknown(std::string_view name) const {
  if (Has(announced_, name)) {
    return InvalidArgument(StrCat("scratch buffer ", Quote(name), " is used above its scratch line"),
                           "move the scratch line up");
  }
  bool value =
      Has(lets_, name) || IsDeviceName(name) || (definition_ != nullptr && Named(definition_->axes(), name) != nullptr);
  if (value) {
    return InvalidArgument(StrCat(Quote(name), " is a number, not a buffer"),
                           StrCat("pass it by value with the kernel's type: i32(", name, ") or i64(", name, ")"));
  }
  std::vector<std::string> known = scratch_;
  if (definition_ != nullptr) {
    for (const v1::Tensor& tensor : definition_->inputs()) known.push_back(tensor.name());
    for (const v1::Tensor& tensor : definition_->outputs()) known.push_back(tensor.name());
  }
  std::string nearest = base::Nearest(name, known);
  if (!nearest.empty())
    return InvalidArgument(StrCat("unknown name ", Quote(name)), StrCat("did you mean ", Quote(nearest), "?"));
  return InvalidArgument(StrCat("unknown name ", Quote(name)), StrCat("there are ", base::Join(known, ", ")));
}

Status PlanNames::CheckArgument(std::string_view name) const {
  if (Has(scratch_, name)) return absl::OkStatus();
  if (definition_ == nullptr) return absl::OkStatus();
  const v1::Tensor* input = Named(definition_->inputs(), name);
  if (input != nullptr && input->scalar() && ScalarTypeOf(input->dtype()) == nullptr) {
    return InvalidArgument(StrCat("scalar input ", Quote(name), " has dtype ", core::DTypeName(input->dtype()),
                                  ", which no value type carries"),
                           StrCat("convert it: f32(", name, ")"));
  }
  if (input != nullptr || Named(definition_->outputs(), name) != nullptr) return absl::OkStatus();
  return Unknown(name);
}

Status PlanNames::CheckMemset(std::string_view name) const {
  if (Has(scratch_, name)) return absl::OkStatus();
  if (definition_ == nullptr) return absl::OkStatus();
  if (Named(definition_->inputs(), name) != nullptr) {
    return InvalidArgument(StrCat("input ", Quote(name), " is read-only"), "memset outputs and scratch buffers only");
  }
  if (Named(definition_->outputs(), name) != nullptr) return absl::OkStatus();
  return Unknown(name);
}

}  // namespace solstice::plan
