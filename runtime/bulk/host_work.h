// The bulk work on content that is on the host. Internal to runtime/bulk.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "runtime/bulk/bulk.h"

namespace solstice::bulk {

// INTERNAL for a negative size or one that no memory has.
Status CheckSize(int64_t bytes);

StatusOr<std::string> ReadContent(device::Device& device, device::Address source, int64_t bytes);
Status WriteContent(device::Device& device, const std::string& content, device::Address destination);

// Of equal sizes.
Damage FindDamage(std::string_view found, std::string_view wanted);
Fingerprint FingerprintOf(uint64_t key, std::string_view content);
// RESOURCE_EXHAUSTED where the tensors do not fit in memory.
StatusOr<verify::TensorComparison> CompareOnHost(device::Device& device, const v1::Tensor& tensor,
                                                 const std::vector<int64_t>& shape, const v1::Tolerance& tolerance,
                                                 device::Address actual, device::Address expected);

}  // namespace solstice::bulk
