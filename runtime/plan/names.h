// Which names a plan's statements may declare and use. Internal to this folder.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "solstice/v1/definition.pb.h"

namespace solstice::plan {

// Errors are INVALID_ARGUMENT without a place. Without a definition only what the plan itself declares is checked.
class PlanNames {
 public:
  explicit PlanNames(const v1::Definition* definition);

  // A scratch buffer that some statement declares, for the error of a use above it.
  void Announce(std::string_view scratch) { announced_.emplace_back(scratch); }
  Status DeclareLet(const std::string& name);
  Status DeclareScratch(const std::string& name);
  Status DeclareDefine(const std::string& name);
  // A bare name among a launch's arguments: a buffer or a scalar input.
  Status CheckArgument(std::string_view name) const;
  Status CheckMemset(std::string_view name) const;

 private:
  Status CheckFree(const std::string& name) const;
  Status Unknown(std::string_view name) const;

  const v1::Definition* definition_;
  std::vector<std::string> announced_, lets_, scratch_, defines_;
};

}  // namespace solstice::plan
