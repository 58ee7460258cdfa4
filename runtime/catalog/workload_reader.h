// One workload object, from workload.jsonl or solstice.json. Internal to the catalogue.
#pragma once

#include <string>
#include <vector>

#include "runtime/catalog/catalog.h"
#include "runtime/catalog/json_field.h"

namespace solstice::catalog {

// Checks everything that the definition decides: axes, input sources, sizes of every tensor, tolerance (defaults
// filled). Axes and inputs come out in the definition's order. Names that the definition lacks are ignored and noted in
// `notes`, if given.
StatusOr<v1::Workload> ReadWorkload(const Field& field, const v1::Definition& definition,
                                    std::vector<std::string>* notes);

}  // namespace solstice::catalog
