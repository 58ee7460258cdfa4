#include "runtime/device/emulator/findings.h"

#include <algorithm>
#include <string_view>
#include <tuple>
#include <vector>

namespace solstice::device {

void Findings::Merge(std::map<FindingKey, FindingEntry> entries) {
  std::lock_guard<std::mutex> lock(mutex_);
  for (auto& [key, entry] : entries) {
    const auto [at, inserted] = entries_.emplace(key, entry);
    if (inserted) continue;
    const int64_t count = at->second.finding.count() + entry.finding.count();
    if (entry.block < at->second.block) at->second = std::move(entry);
    at->second.finding.set_count(count);
  }
}

void Findings::Report(v1::internal::RunOutcome* outcome) const {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<const v1::Finding*> sorted;
  for (const auto& [key, entry] : entries_) sorted.push_back(&entry.finding);
  std::sort(sorted.begin(), sorted.end(), [](const v1::Finding* a, const v1::Finding* b) {
    auto order = [](const v1::Finding& f) {
      return std::make_tuple(std::string_view(f.kernel()), std::string_view(f.file()), f.line(), f.kind(),
                             std::string_view(f.message()));
    };
    return order(*a) < order(*b);
  });
  if (sorted.size() > kMost) sorted.resize(kMost);
  for (const v1::Finding* finding : sorted) *outcome->add_findings() = *finding;
}

}  // namespace solstice::device
