#include "server/store/rocksdb/mark.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/base/crypto.h"
#include "runtime/base/strings.h"

namespace solstice::store {
namespace {

constexpr char kMagic[] = "solstice-mark 1 ";
constexpr size_t kMagicBytes = sizeof kMagic - 1;
constexpr size_t kDigits = 20;
constexpr size_t kCheckDigits = 16;
constexpr size_t kTextBytes = kMagicBytes + kDigits + 1 + kCheckDigits + 1;

std::string Check(std::string_view text) { return base::Hex(base::Sha256(text)).substr(0, kCheckDigits); }

// A new name is durable only once its folder is synced.
Status SyncFolderOf(const std::string& path) {
  std::string folder = path.substr(0, path.rfind('/'));
  base::UniqueFd fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid() || ::fsync(fd.get()) != 0) return base::FromErrno(errno, folder);
  return absl::OkStatus();
}

}  // namespace

std::string EncodeMark(uint64_t sequence) {
  char digits[32];
  std::snprintf(digits, sizeof digits, "%020llu", static_cast<unsigned long long>(sequence));
  std::string text = base::StrCat(kMagic, digits);
  text = base::StrCat(text, " ", Check(text), "\n");
  text.resize(kMarkSlotBytes, '\0');
  return text;
}

std::optional<uint64_t> DecodeMark(std::string_view slot) {
  if (slot.size() != static_cast<size_t>(kMarkSlotBytes) || slot.substr(0, kMagicBytes) != kMagic) return std::nullopt;
  std::string_view text = slot.substr(0, kMagicBytes + kDigits);
  if (slot[kMagicBytes + kDigits] != ' ' || slot.substr(kMagicBytes + kDigits + 1, kCheckDigits) != Check(text) ||
      slot[kTextBytes - 1] != '\n') {
    return std::nullopt;
  }
  uint64_t value = 0;
  std::string_view digits = text.substr(kMagicBytes);
  auto result = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (result.ec != std::errc() || result.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

StatusOr<Mark> Mark::Open(const std::string& path, bool* existed) {
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return base::FromErrno(errno, path);
  char buffer[2 * kMarkSlotBytes] = {};
  ssize_t n = ::pread(fd.get(), buffer, sizeof buffer, 0);
  if (n < 0) return base::FromErrno(errno, path);
  *existed = n > 0;
  if (n == 0) {
    SOLSTICE_RETURN_IF_ERROR(SyncFolderOf(path));
    return Mark(std::move(fd), path, 0, 0);
  }
  std::optional<uint64_t> slots[2];
  for (int i = 0; i < 2; ++i) slots[i] = DecodeMark(std::string_view(buffer + i * kMarkSlotBytes, kMarkSlotBytes));
  if (!slots[0] && !slots[1]) {
    return base::DataLoss(base::StrCat(path, ": the high-water mark is damaged"),
                          "restore the folder from a backup, or start once with `solsticed --accept-loss`");
  }
  uint64_t value = std::max(slots[0].value_or(0), slots[1].value_or(0));
  bool newest_is_first = slots[0] && *slots[0] == value;
  return Mark(std::move(fd), path, value, newest_is_first ? 1 : 0);
}

StatusOr<Mark> Mark::Reset(const std::string& path) {
  base::UniqueFd fd(::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!fd.valid()) return base::FromErrno(errno, path);
  return Mark(std::move(fd), path, 0, 0);
}

Status Mark::Set(uint64_t sequence) {
  std::string slot = EncodeMark(sequence);
  ssize_t n = ::pwrite(fd_.get(), slot.data(), slot.size(), slot_ * kMarkSlotBytes);
  if (n != static_cast<ssize_t>(slot.size()) || ::fdatasync(fd_.get()) != 0) {
    return base::FromErrno(n < 0 ? errno : EIO, path_);
  }
  value_ = sequence;
  slot_ = 1 - slot_;
  return absl::OkStatus();
}

}  // namespace solstice::store
