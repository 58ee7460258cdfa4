// A bounds-checked reader of safetensors files: 8 bytes of header length, a JSON header, data. For hostile files:
// nothing is allocated beyond the file's own size, every offset is checked before use, and the tensors must cover the
// data without gaps or overlaps (so that no bytes hide in a file).
//
// Errors are INVALID_ARGUMENT "<path>: <reason>" about the file, which name the tensor where there is one.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"
#include "solstice/v1/definition.pb.h"

namespace solstice::catalog {

inline constexpr int64_t kMaxSafetensorsHeaderBytes = 16 << 20;

struct SafetensorsEntry {
  std::string key;
  std::string dtype;  // as written: "F32"
  std::vector<int64_t> shape;
  int64_t begin = 0, end = 0;  // within the data, bytes
};

// The JSON header alone; `data_bytes` is what follows it in the file. Pure.
StatusOr<std::vector<SafetensorsEntry>> ParseSafetensorsHeader(std::string_view header, int64_t data_bytes,
                                                               std::string_view path);

// "F32" for float32; "" where the format has no such type. float4_e2m1fn_x2 is stored as U8.
std::string_view SafetensorsDType(v1::DType dtype);

// An open file whose header has been checked. Thread-safe once open.
class SafetensorsFile {
 public:
  // Below `directory_fd`, following no link and leaving no folder. One error for all that is not a regular file there,
  // so that a path tells nothing about the host.
  static StatusOr<SafetensorsFile> Open(int directory_fd, const std::string& relative_path);

  const std::vector<SafetensorsEntry>& entries() const { return entries_; }

  // The tensor `key`, which must have this type and shape. INVALID_ARGUMENT otherwise.
  StatusOr<const SafetensorsEntry*> Find(std::string_view key, v1::DType dtype,
                                         const std::vector<int64_t>& shape) const;
  // Its bytes.
  StatusOr<std::string> Read(const SafetensorsEntry& entry) const;

 private:
  base::UniqueFd fd_;
  std::string path_;
  int64_t data_start_ = 0;
  std::vector<SafetensorsEntry> entries_;
};

}  // namespace solstice::catalog
