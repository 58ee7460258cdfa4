#include "runtime/ptx/names.h"

#include <algorithm>
#include <charconv>

#include "runtime/base/strings.h"

namespace solstice::ptx {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

constexpr size_t kMaxIndexDigits = 9;

}  // namespace

std::string NameTable::Renamed(std::string_view name, uint32_t rename) {
  return rename == 0 ? std::string(name) : base::StrCat(name, "#", rename);
}

void NameTable::Reset() {
  scopes_.clear();
  used_.clear();
  used_labels_.clear();
  used_ranges_.clear();
  renames_ = 0;
  scopes_.emplace_back();
  depth_ = 1;
}

bool NameTable::Push() {
  if (depth_ >= kMaxDepth) return false;
  if (++depth_ > scopes_.size()) scopes_.emplace_back();
  return true;
}

// "%r12" belongs to a range "%r" of more than 12 registers, or to "%r1" of more than 2.
const NameTable::Range* NameTable::InRange(const std::unordered_map<std::string_view, Range>& ranges,
                                           std::string_view name) {
  if (ranges.empty() || name.empty() || !IsDigit(name.back())) return nullptr;
  size_t first = name.size();
  while (first > 0 && IsDigit(name[first - 1]) && name.size() - first < kMaxIndexDigits) --first;
  for (size_t split = first; split < name.size(); ++split) {
    if (name[split] == '0' && split + 1 < name.size()) continue;
    auto found = ranges.find(name.substr(0, split));
    if (found == ranges.end()) continue;
    uint32_t index = 0;
    std::from_chars(name.data() + split, name.data() + name.size(), index);
    if (index < found->second.count) return &found->second;
  }
  return nullptr;
}

const NameTable::Local* NameTable::Declare(std::string_view name, Kind kind, int width, bool taken) {
  Scope& scope = scopes_[depth_ - 1];
  if (InRange(scope.ranges, name) != nullptr) return nullptr;
  auto [at, added] = scope.names.try_emplace(name);
  if (!added) return nullptr;
  at->second.kind = kind;
  at->second.width = static_cast<uint8_t>(width);
  bool fresh = used_.insert(name).second;
  if (taken || !fresh || InRange(used_ranges_, name) != nullptr) at->second.rename = ++renames_;
  return &at->second;
}

bool NameTable::DeclareRange(std::string_view prefix, uint32_t count, uint32_t* rename) {
  Scope& scope = scopes_[depth_ - 1];
  auto [at, added] = scope.ranges.try_emplace(prefix, Range{count, 0});
  if (!added) return false;
  auto [everywhere, fresh] = used_ranges_.try_emplace(prefix, Range{count, 0});
  everywhere->second.count = std::max(everywhere->second.count, count);
  bool clash = !fresh;
  if (!used_.empty() || used_ranges_.size() > 1) {
    std::string name(prefix);
    for (uint32_t i = 0; i < count; ++i) {
      name.resize(prefix.size());
      name += std::to_string(i);
      if (used_.count(name) == 0) continue;
      if (scope.names.count(name) != 0) return false;
      clash = true;
    }
  }
  *rename = at->second.rename = clash ? ++renames_ : 0;
  return true;
}

bool NameTable::DeclareLabel(std::string_view name, LabelKind kind, uint32_t* rename) {
  auto [at, added] = scopes_[depth_ - 1].labels.try_emplace(name, Label{kind, 0});
  if (!added) return false;
  if (!used_labels_.insert(name).second) at->second.rename = ++renames_;
  *rename = at->second.rename;
  return true;
}

bool NameTable::Find(std::string_view name, Local* local) const {
  for (size_t i = depth_; i-- > 0;) {
    const Scope& scope = scopes_[i];
    if (const Range* range = InRange(scope.ranges, name)) {
      *local = Local{Kind::kRegister, 1, range->rename};
      return true;
    }
    if (scope.names.empty()) continue;
    auto found = scope.names.find(name);
    if (found != scope.names.end()) {
      *local = found->second;
      return true;
    }
  }
  return false;
}

}  // namespace solstice::ptx
