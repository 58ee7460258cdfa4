#include "server/pipeline/measurement.h"

#include <algorithm>
#include <numeric>

#include "runtime/base/strings.h"
#include "runtime/timing/timing.h"
#include "server/pipeline/pipeline.h"

namespace solstice::pipeline {
namespace {

double MedianOf(std::vector<double> values) {
  if (values.empty()) return 0;
  auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

std::string ProtocolName(v1::Timer timer) {
  switch (timer) {
    case v1::TIMER_EVENTS:
      return std::string(kProtocol) + "-events";
    case v1::TIMER_NONE:
      return std::string(kProtocol) + "-untimed";
    default:
      return kProtocol;
  }
}

void Measurement::AddBatch(double wall_us, const std::vector<int64_t>& decoy_ns,
                           const std::vector<int64_t>& latency_ns) {
  if (latency_ns.empty()) return;
  Batch batch;
  batch.wall_us = wall_us;
  batch.decoys = static_cast<int>(decoy_ns.size());
  batch.slots = static_cast<int>(latency_ns.size());
  batch.decoys_us = std::accumulate(decoy_ns.begin(), decoy_ns.end(), 0.0) * 1e-3;
  batch.slots_us = std::accumulate(latency_ns.begin(), latency_ns.end(), 0.0) * 1e-3;
  batches_.push_back(batch);
  latency_ns_.insert(latency_ns_.end(), latency_ns.begin(), latency_ns.end());
}

int64_t Measurement::median_ns() const { return timing::Median(latency_ns_); }

double Measurement::OverheadUs() const {
  std::vector<double> overheads;
  for (const Batch& batch : batches_) {
    overheads.push_back((batch.wall_us - batch.decoys_us - batch.slots_us) / batch.iterations());
  }
  return MedianOf(std::move(overheads));
}

double Measurement::ExcessUs(double overhead_us, int64_t reported_ns) const {
  const double reported_us = static_cast<double>(reported_ns) * 1e-3;
  std::vector<double> excesses;
  for (const Batch& batch : batches_) {
    const double explained_us = batch.decoys_us + batch.slots * reported_us + batch.iterations() * overhead_us;
    excesses.push_back((batch.wall_us - explained_us) / batch.iterations());
  }
  return MedianOf(std::move(excesses));
}

double Measurement::DecoyExcessUs(int64_t reported_ns) const {
  std::vector<double> excesses;
  for (const Batch& batch : batches_) {
    excesses.push_back(batch.decoys_us - batch.decoys * static_cast<double>(reported_ns) * 1e-3);
  }
  return MedianOf(std::move(excesses));
}

std::string ClockFinding(double excess_us, double decoys_us, int decoys, int64_t reported_ns) {
  const double reported_us = static_cast<double>(reported_ns) * 1e-3;
  if (double allowed_us = std::max(0.05 * reported_us, 0.5); excess_us > allowed_us) {
    return base::StrCat("by the judge's clock an iteration took ", excess_us, " us longer than the latency of ",
                        reported_us, " us that the device reports; at most ", allowed_us, " us are allowed");
  }
  if (double allowed_us = decoys * std::max(0.5 * reported_us, 10.0); decoys_us > allowed_us) {
    return base::StrCat("the iterations before those that count took ", decoys_us, " us longer in all; at most ",
                        allowed_us, " us are allowed");
  }
  return {};
}

}  // namespace solstice::pipeline
