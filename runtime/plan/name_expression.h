// Kernel names in plans: a name expression whose template arguments may be formulas. Internal to this folder.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/expr/formula.h"

namespace solstice::plan {

// Decides what a template argument becomes: given an argument that reads as a formula, its replacement ("64", "true"),
// or "" to keep its text.
using ArgumentReplacer = std::function<StatusOr<std::string>(const expr::Formula& formula)>;

// `text` with its template arguments replaced and the whole normalised (NormaliseNameExpression). Each argument, nested
// ones too, that reads as a formula goes through `replace`; all others must be types.
StatusOr<std::string> InstantiateNameExpression(std::string_view text, const ArgumentReplacer& replace);

// The same with the values of one workload: a lone name that `scope` does not know stays as it is, everything else that
// reads as a formula becomes an integer, true or false.
StatusOr<std::string> SpecialiseNameExpression(std::string_view text, const expr::Scope& scope);

}  // namespace solstice::plan
