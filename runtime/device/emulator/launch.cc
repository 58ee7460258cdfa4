#include "runtime/device/emulator/launch.h"

#include <algorithm>
#include <memory>
#include <new>
#include <thread>

#include "runtime/base/strings.h"

namespace solstice::device {
namespace {

using base::StrCat;
using v1::internal::RunOutcome;

// The estimate is the mean of the first blocks, whatever the number of threads, so that it repeats.
constexpr uint64_t kBlocksForEstimate = 4;
constexpr uint64_t kBlocksBetweenClocks = 16;

void Fail(Launch& launch, const RunOutcome& outcome) {
  std::lock_guard<std::mutex> lock(launch.mutex);
  launch.stop.store(true, std::memory_order_relaxed);
  if (launch.failed) return;
  launch.failed = true;
  launch.outcome = outcome;
}

// Accounts for a finished block; false when the launch must stop.
bool Finish(Launch& launch, Block& block) {
  uint64_t threads = 0;
  for (const Warp& w : block.warps) threads += w.thread_executed;
  launch.executed.fetch_add(threads, std::memory_order_relaxed);
  const uint64_t blocks = launch.blocks();
  const uint64_t sample = std::min(blocks, kBlocksForEstimate);
  if (block.output.empty() && block.number >= sample) return true;
  RunOutcome over;
  {
    std::lock_guard<std::mutex> lock(launch.mutex);
    if (!block.output.empty()) launch.output.emplace_back(block.number, std::move(block.output));
    block.output.clear();
    if (block.number >= sample) return true;
    ++launch.first_blocks_done;
    launch.first_blocks_executed += threads;
    if (launch.first_blocks_done < sample) return true;
    const double mean = static_cast<double>(launch.first_blocks_executed) / static_cast<double>(sample);
    launch.run->estimated = static_cast<double>(launch.run->instructions) + mean * static_cast<double>(blocks);
    const double budget = launch.run->instruction_budget;
    if (budget <= 0 || launch.run->estimated <= budget) return true;
    over.set_kind(RunOutcome::OVER_BUDGET);
    over.set_reason(StrCat(launch.program->entry, " would execute about ", launch.run->estimated,
                           " thread instructions, more than the budget of ", budget, " (", mean, " a block, ", blocks,
                           " blocks)"));
    over.set_estimated_instructions(launch.run->estimated);
  }
  Fail(launch, over);
  return false;
}

void RunBlocks(Launch& launch) {
  Block block;
  PrepareBlock(block, launch);
  const uint64_t blocks = launch.blocks();
  uint64_t turn = 0;
  while (!launch.stop.load(std::memory_order_relaxed)) {
    const uint64_t number = launch.next_block.fetch_add(1, std::memory_order_relaxed);
    if (number >= blocks) return;
    if (++turn % kBlocksBetweenClocks == 0 && std::chrono::steady_clock::now() > launch.run->deadline) {
      RunOutcome outcome;
      outcome.set_kind(RunOutcome::TIMEOUT);
      outcome.set_reason(StrCat(launch.program->entry, " was still running after ", launch.run->timeout_s, " s; ",
                                number, " of ", blocks, " blocks had started"));
      return Fail(launch, outcome);
    }
    StartBlock(block, number);
    if (!RunBlock(block)) {
      // A block that only saw that others stopped has no outcome.
      if (!block.output.empty()) {
        std::lock_guard<std::mutex> lock(launch.mutex);
        launch.output.emplace_back(block.number, block.output);
      }
      if (block.outcome.kind() != RunOutcome::KIND_UNSPECIFIED) Fail(launch, block.outcome);
      uint64_t threads = 0;
      for (const Warp& w : block.warps) threads += w.thread_executed;
      launch.executed.fetch_add(threads, std::memory_order_relaxed);
      return;
    }
    if (!Finish(launch, block)) return;
  }
}

// Local memory grows while a kernel runs; without memory for it the launch ends, not the process.
void Work(Launch& launch) {
  try {
    RunBlocks(launch);
  } catch (const std::bad_alloc&) {
    RunOutcome outcome;
    outcome.set_kind(RunOutcome::OUT_OF_MEMORY);
    outcome.set_reason(StrCat(launch.program->entry, ": no host memory for its registers and local memory"));
    Fail(launch, outcome);
  }
}

}  // namespace

uint64_t Launch::NowNs() const {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

bool RunLaunch(Launch& launch, RunOutcome* outcome) {
  const uint64_t workers = std::min<uint64_t>(launch.blocks(), static_cast<uint64_t>(std::max(launch.run->threads, 1)));
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i < workers; ++i) threads.emplace_back([&launch] { Work(launch); });
  Work(launch);
  for (std::thread& thread : threads) thread.join();
  launch.run->instructions += launch.executed.load();
  std::sort(launch.output.begin(), launch.output.end());
  for (const auto& [number, text] : launch.output) {
    const int64_t left = launch.options->device_output_bytes - static_cast<int64_t>(launch.run->device_output.size());
    launch.run->device_output += text.substr(0, static_cast<size_t>(std::max<int64_t>(left, 0)));
  }
  if (launch.failed) *outcome = launch.outcome;
  return !launch.failed;
}

}  // namespace solstice::device
