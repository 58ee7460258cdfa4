#include "runtime/bulk/host_work.h"

#include <algorithm>
#include <cstring>
#include <exception>

#include "runtime/base/strings.h"
#include "runtime/bulk/fingerprint.h"
#include "runtime/core/philox.h"
#include "runtime/verify/judge.h"

namespace solstice::bulk {
namespace {

constexpr int64_t kMostBytes = int64_t{1} << 48;

std::span<const uint8_t> Bytes(const std::string& text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

}  // namespace

Status CheckSize(int64_t bytes) {
  if (bytes >= 0 && bytes <= kMostBytes) return absl::OkStatus();
  return base::Internal(base::StrCat("bulk work on ", bytes, " bytes"));
}

StatusOr<std::string> ReadContent(device::Device& device, device::Address source, int64_t bytes) {
  std::string content;
  try {
    content.resize(static_cast<size_t>(bytes));
  } catch (const std::exception&) {  // bad_alloc or length_error
    return base::ResourceExhausted(base::StrCat(bytes, " bytes do not fit in the host's memory"));
  }
  if (bytes > 0) {
    SOLSTICE_RETURN_IF_ERROR(device.CopyOut({reinterpret_cast<uint8_t*>(content.data()), content.size()}, source));
  }
  return content;
}

Status WriteContent(device::Device& device, const std::string& content, device::Address destination) {
  if (content.empty()) return absl::OkStatus();
  return device.CopyIn(destination, Bytes(content));
}

Damage FindDamage(std::string_view found, std::string_view wanted) {
  Damage damage;
  if (found == wanted) return damage;
  for (size_t i = 0; i < found.size(); ++i) {
    if (found[i] == wanted[i]) continue;
    if (damage.bytes++ == 0) damage.first = static_cast<int64_t>(i);
    damage.last = static_cast<int64_t>(i);
  }
  return damage;
}

Fingerprint FingerprintOf(uint64_t key, std::string_view content) {
  auto key_words = [key](uint64_t chunk) { return core::Philox(key, kFingerprintStream, chunk); };
  // Key words are used twice, a shift apart.
  core::Philox4 ahead[kFingerprintShift];
  for (int i = 0; i < kFingerprintShift; ++i) ahead[i] = key_words(static_cast<uint64_t>(i));
  FingerprintSums sums;
  for (size_t at = 0; at < content.size(); at += 16) {
    const uint64_t chunk = at / 16;
    uint32_t words[4] = {};
    std::memcpy(words, content.data() + at, std::min<size_t>(16, content.size() - at));
    core::Philox4& own = ahead[chunk % kFingerprintShift];
    const core::Philox4 shifted = key_words(chunk + kFingerprintShift);
    sums.Add(words, own.word, shifted.word);
    own = shifted;
  }
  return {sums.sum[0], sums.sum[1]};
}

StatusOr<verify::TensorComparison> CompareOnHost(device::Device& device, const v1::Tensor& tensor,
                                                 const std::vector<int64_t>& shape, const v1::Tolerance& tolerance,
                                                 device::Address actual, device::Address expected) {
  const verify::Layout layout = verify::LayoutOf(tensor, shape);
  if (!layout.possible) return verify::CompareTensor(tensor, shape, tolerance, {}, {});
  SOLSTICE_ASSIGN_OR_RETURN(std::string got, ReadContent(device, actual, layout.bytes));
  SOLSTICE_ASSIGN_OR_RETURN(std::string wanted, ReadContent(device, expected, layout.bytes));
  return verify::CompareTensor(tensor, shape, tolerance, Bytes(got), Bytes(wanted));
}

}  // namespace solstice::bulk
