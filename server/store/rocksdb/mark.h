// The high-water mark: a sequence number up to which the data base has synced its writes, kept in a file that does not
// share its fate. A data base that recovers below the mark has lost acknowledged data.
//
// Two slots of 64 bytes, written in turn and synced, so that a torn write leaves the older one. Not thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "runtime/base/status.h"
#include "runtime/base/unique_fd.h"

namespace solstice::store {

inline constexpr int64_t kMarkSlotBytes = 64;

// "solstice-mark 1 <20 digits> <16 hex digits>\n" padded with NUL bytes; the hex digits are the start of the SHA-256 of
// what stands before them.
std::string EncodeMark(uint64_t sequence);
// None for anything damaged or of another version.
std::optional<uint64_t> DecodeMark(std::string_view slot);

class Mark {
 public:
  // Creates an empty file where there is none; `existed` says which. DATA_LOSS when neither slot can be read.
  static StatusOr<Mark> Open(const std::string& path, bool* existed);
  // 0 for a new file.
  uint64_t value() const { return value_; }
  // Durable when it returns.
  Status Set(uint64_t sequence);
  // Forgets damage; the next Set starts afresh. For an operator who accepts the loss.
  static StatusOr<Mark> Reset(const std::string& path);

 private:
  Mark(base::UniqueFd fd, std::string path, uint64_t value, int slot)
      : fd_(std::move(fd)), path_(std::move(path)), value_(value), slot_(slot) {}
  base::UniqueFd fd_;
  std::string path_;
  uint64_t value_;
  int slot_;  // the next one to write
};

}  // namespace solstice::store
