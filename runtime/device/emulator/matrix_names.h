// The modifiers of matrix instructions, and which combinations PTX has.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/device/emulator/matrix.h"
#include "runtime/device/emulator/program.h"

namespace solstice::device {

struct MatrixWords {
  int m = 0, n = 0, k = 0;
  std::vector<bool> row_major;    // of each .row and .col
  std::vector<Element> elements;  // in order
  AddressSpace space = AddressSpace::kGeneric;
  std::vector<std::string_view> rest;  // other words, in order

  bool Has(std::string_view word) const;
};

// Without .sync and .aligned. False: either is missing.
bool ReadMatrixWords(const std::vector<std::string>& modifiers, MatrixWords* words);

// From what follows "mma." or "wmma.mma."; false: no such instruction, or one that is not executed.
bool MakeMatrixKey(const MatrixWords& words, bool wmma, MatrixKey* key);

// Of wmma.load and wmma.store.
bool MakeFragmentKey(const MatrixWords& words, MatrixRole role, FragmentKey* key);

}  // namespace solstice::device
