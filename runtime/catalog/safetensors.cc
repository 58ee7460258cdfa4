#include "runtime/catalog/safetensors.h"

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/base/strings.h"
#include "runtime/catalog/json_field.h"

namespace solstice::catalog {

using base::Quote;
using base::StrCat;
using core::Json;

namespace {

struct StoredType {
  std::string_view name;
  int64_t bytes;
};
constexpr StoredType kStoredTypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                                       {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                                       {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

Status Bad(std::string_view path, std::string_view key, std::string_view reason) {
  return base::InvalidArgument(StrCat(path, ": tensor ", Quote(key), ": ", reason));
}

// Bytes that shape and type ask for; -1 on overflow.
int64_t ShapeBytes(const std::vector<int64_t>& shape, int64_t element_bytes) {
  if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return 0;
  int64_t bytes = element_bytes;
  for (int64_t size : shape) {
    if (__builtin_mul_overflow(bytes, size, &bytes)) return -1;
  }
  return bytes;
}

StatusOr<SafetensorsEntry> ReadEntry(const Field& field, const std::string& key, int64_t data_bytes,
                                     std::string_view path) {
  SafetensorsEntry entry;
  entry.key = key;
  SOLSTICE_ASSIGN_OR_RETURN(Field dtype, field.Member("dtype"));
  SOLSTICE_ASSIGN_OR_RETURN(entry.dtype, dtype.String(32));
  SOLSTICE_ASSIGN_OR_RETURN(Field shape, field.Member("shape"));
  SOLSTICE_RETURN_IF_ERROR(shape.NeedArray());
  if (shape.json().array().size() > 32) return Bad(path, key, "more than 32 dimensions");
  for (size_t i = 0; i < shape.json().array().size(); ++i) {
    SOLSTICE_ASSIGN_OR_RETURN(int64_t size, shape.Element(i).Integer());
    if (size < 0) return Bad(path, key, "a dimension is negative");
    entry.shape.push_back(size);
  }
  SOLSTICE_ASSIGN_OR_RETURN(Field offsets, field.Member("data_offsets"));
  SOLSTICE_RETURN_IF_ERROR(offsets.NeedArray());
  if (offsets.json().array().size() != 2) return Bad(path, key, "data_offsets needs two numbers");
  SOLSTICE_ASSIGN_OR_RETURN(entry.begin, offsets.Element(0).Integer());
  SOLSTICE_ASSIGN_OR_RETURN(entry.end, offsets.Element(1).Integer());
  if (entry.begin < 0 || entry.end < entry.begin) return Bad(path, key, "data_offsets run backwards");
  if (entry.end > data_bytes) {
    return Bad(path, key,
               StrCat("data_offsets end at ", entry.end, ", but the file has ", data_bytes, " bytes of data"));
  }
  auto type = std::find_if(std::begin(kStoredTypes), std::end(kStoredTypes),
                           [&](const StoredType& stored) { return stored.name == entry.dtype; });
  if (type == std::end(kStoredTypes)) return Bad(path, key, StrCat("unknown type ", Quote(entry.dtype, 32)));
  int64_t bytes = ShapeBytes(entry.shape, type->bytes);
  if (bytes < 0) return Bad(path, key, "the shape overflows 64 bits");
  if (bytes != entry.end - entry.begin) {
    return Bad(path, key, StrCat("the shape asks for ", bytes, " bytes, data_offsets hold ", entry.end - entry.begin));
  }
  return entry;
}

Status CheckCover(const std::vector<SafetensorsEntry>& entries, int64_t data_bytes, std::string_view path) {
  std::vector<const SafetensorsEntry*> order;
  for (const SafetensorsEntry& entry : entries) order.push_back(&entry);
  std::sort(order.begin(), order.end(),
            [](auto* a, auto* b) { return a->begin != b->begin ? a->begin < b->begin : a->end < b->end; });
  int64_t covered = 0;
  for (const SafetensorsEntry* entry : order) {
    if (entry->begin < covered) return Bad(path, entry->key, "overlaps another tensor");
    if (entry->begin > covered) return Bad(path, entry->key, "leaves bytes before it that belong to no tensor");
    covered = entry->end;
  }
  if (covered != data_bytes) {
    return base::InvalidArgument(StrCat(path, ": ", data_bytes - covered, " bytes at the end belong to no tensor"));
  }
  return absl::OkStatus();
}

Status PreadAll(int fd, char* data, int64_t bytes, int64_t offset, std::string_view path) {
  while (bytes > 0) {
    ssize_t n = ::pread(fd, data, static_cast<size_t>(bytes), static_cast<off_t>(offset));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return base::FromErrno(errno, path);
    if (n == 0) return base::InvalidArgument(StrCat(path, ": the file became shorter while it was read"));
    data += n;
    offset += n;
    bytes -= n;
  }
  return absl::OkStatus();
}

}  // namespace

std::string_view SafetensorsDType(v1::DType dtype) {
  switch (dtype) {
    case v1::FLOAT64:
      return "F64";
    case v1::FLOAT32:
      return "F32";
    case v1::FLOAT16:
      return "F16";
    case v1::BFLOAT16:
      return "BF16";
    case v1::FLOAT8_E4M3FN:
      return "F8_E4M3";
    case v1::FLOAT8_E5M2:
      return "F8_E5M2";
    case v1::FLOAT4_E2M1FN_X2:
      return "U8";
    case v1::INT64:
      return "I64";
    case v1::INT32:
      return "I32";
    case v1::INT16:
      return "I16";
    case v1::INT8:
      return "I8";
    case v1::UINT8:
      return "U8";
    case v1::BOOL:
      return "BOOL";
    default:
      return "";
  }
}

StatusOr<std::vector<SafetensorsEntry>> ParseSafetensorsHeader(std::string_view header, int64_t data_bytes,
                                                               std::string_view path) {
  if (!header.starts_with('{')) return base::InvalidArgument(StrCat(path, ": the header is no JSON object"));
  SOLSTICE_ASSIGN_OR_RETURN(Json json, core::ParseJson(header, path));
  Field root(json, path);
  std::vector<SafetensorsEntry> entries;
  for (const auto& member : json.object()) {
    if (member.first == "__metadata__") continue;
    SOLSTICE_ASSIGN_OR_RETURN(SafetensorsEntry entry, ReadEntry(root.Value(member), member.first, data_bytes, path));
    entries.push_back(std::move(entry));
  }
  SOLSTICE_RETURN_IF_ERROR(CheckCover(entries, data_bytes, path));
  return entries;
}

StatusOr<SafetensorsFile> SafetensorsFile::Open(int directory_fd, const std::string& relative_path) {
  open_how how = {};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;  // a FIFO must not hang us
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  SafetensorsFile file;
  file.path_ = relative_path;
  file.fd_ =
      base::UniqueFd(static_cast<int>(::syscall(SYS_openat2, directory_fd, relative_path.c_str(), &how, sizeof how)));
  struct stat info;
  if (!file.fd_.valid() || ::fstat(file.fd_.get(), &info) != 0 || !S_ISREG(info.st_mode)) {
    return base::InvalidArgument(StrCat(relative_path, ": no regular file of that name below the definition's folder"),
                                 "put the file there; links are not followed");
  }
  if (info.st_size < 8) {
    return base::InvalidArgument(
        StrCat(relative_path, ": ", info.st_size, " bytes are too few for a safetensors file"));
  }
  unsigned char prefix[8];
  SOLSTICE_RETURN_IF_ERROR(PreadAll(file.fd_.get(), reinterpret_cast<char*>(prefix), 8, 0, relative_path));
  uint64_t header_bytes = 0;
  for (int i = 7; i >= 0; --i) header_bytes = header_bytes << 8 | prefix[i];
  uint64_t rest = static_cast<uint64_t>(info.st_size) - 8;
  if (header_bytes > rest) {
    return base::InvalidArgument(StrCat(relative_path, ": the header claims ", header_bytes, " bytes, the file has ",
                                        rest, " after its length"));
  }
  if (header_bytes > static_cast<uint64_t>(kMaxSafetensorsHeaderBytes)) {
    return base::InvalidArgument(
        StrCat(relative_path, ": a header of ", header_bytes, " bytes, the limit is ", kMaxSafetensorsHeaderBytes));
  }
  std::string header(header_bytes, '\0');
  SOLSTICE_RETURN_IF_ERROR(
      PreadAll(file.fd_.get(), header.data(), static_cast<int64_t>(header_bytes), 8, relative_path));
  file.data_start_ = static_cast<int64_t>(8 + header_bytes);
  SOLSTICE_ASSIGN_OR_RETURN(file.entries_,
                            ParseSafetensorsHeader(header, info.st_size - file.data_start_, relative_path));
  return file;
}

StatusOr<const SafetensorsEntry*> SafetensorsFile::Find(std::string_view key, v1::DType dtype,
                                                        const std::vector<int64_t>& shape) const {
  std::vector<std::string> keys;
  for (const SafetensorsEntry& entry : entries_) {
    keys.push_back(entry.key);
    if (entry.key != key) continue;
    if (entry.dtype != SafetensorsDType(dtype)) {
      return Bad(path_, key, StrCat("is ", entry.dtype, ", the definition needs ", SafetensorsDType(dtype)));
    }
    if (entry.shape != shape) {
      auto text = [](const std::vector<int64_t>& sizes) {
        std::vector<std::string> parts;
        for (int64_t size : sizes) parts.push_back(StrCat(size));
        return StrCat("[", base::Join(parts, ", "), "]");
      };
      return Bad(path_, key, StrCat("has shape ", text(entry.shape), ", the workload needs ", text(shape)));
    }
    return &entry;
  }
  std::string near = base::Nearest(key, keys);
  return base::InvalidArgument(StrCat(path_, ": has no tensor ", Quote(key)),
                               near.empty() ? "" : StrCat("did you mean ", near, "?"));
}

StatusOr<std::string> SafetensorsFile::Read(const SafetensorsEntry& entry) const {
  std::string bytes(static_cast<size_t>(entry.end - entry.begin), '\0');
  SOLSTICE_RETURN_IF_ERROR(
      PreadAll(fd_.get(), bytes.data(), entry.end - entry.begin, data_start_ + entry.begin, path_));
  return bytes;
}

}  // namespace solstice::catalog
