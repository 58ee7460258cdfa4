// The entries of the trusted program.
#pragma once

#include "runtime/bulk/bulk.h"

namespace solstice::bulk {

inline constexpr char kContentEntry[] = "solstice_content";
inline constexpr char kFingerprintEntry[] = "solstice_fingerprint";
inline constexpr char kNormalsEntry[] = "solstice_normals";
inline constexpr char kSoftmaxEntry[] = "solstice_softmax";
inline constexpr char kElementsEntry[] = "solstice_elements";
inline constexpr char kMendCoinsEntry[] = "solstice_mend_coins";
inline constexpr char kCompareEntry[] = "solstice_compare";
inline constexpr char kLocateEntry[] = "solstice_locate";
inline constexpr char kSlicesEntry[] = "solstice_slices";

inline constexpr const char* kEntries[] = {kContentEntry,  kFingerprintEntry, kNormalsEntry, kSoftmaxEntry,
                                           kElementsEntry, kMendCoinsEntry,   kCompareEntry, kLocateEntry,
                                           kSlicesEntry,   kClearL2Entry,     kStandInEntry};

}  // namespace solstice::bulk
