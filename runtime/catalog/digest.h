// What a definition's version means: docs/formats/digests.md. Internal to the catalogue.
#pragma once

#include <string>

#include "solstice/v1/definition.pb.h"

namespace solstice::catalog {

// The text that is hashed: RFC 8785 canonical JSON. Names of definitions, authors and descriptions are left out.
std::string DefinitionDigestText(const v1::Definition& definition, const v1::Companion& companion);
// Fills `digest` and `version` from the rest.
void SetVersion(v1::DefinitionBundle& bundle);

}  // namespace solstice::catalog
