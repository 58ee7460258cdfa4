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

uint64_t ThreadInstructions(const Block& block) {
  uint64_t threads = 0;
  for (const Warp& w : block.warps) threads += w.thread_executed;
  return threads;
}

// Accounts for a finished block; false when the launch must stop.
bool Finish(Launch& launch, Block& block) {
  if (block.sanitizer != nullptr) block.sanitizer->Finish(launch.run->findings);
  const uint64_t threads = ThreadInstructions(block);
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

// What a block that will not finish has printed and executed.
void Abandon(Launch& launch, Block& block) {
  if (block.sanitizer != nullptr) block.sanitizer->Finish(launch.run->findings);
  launch.executed.fetch_add(ThreadInstructions(block), std::memory_order_relaxed);
  if (block.output.empty()) return;
  std::lock_guard<std::mutex> lock(launch.mutex);
  try {
    launch.output.emplace_back(block.number, std::move(block.output));
  } catch (const std::bad_alloc&) {
    // Perhaps on the way out for want of memory: what it printed is lost.
  }
}

// The blocks that one host thread runs in turns.
//
// One block after another, as long as they end. A block that does not, of a program that may wait for another block, is
// taken to wait: then more are started and all run in turns, up to what the hardware would hold at once, because a
// barrier across a grid that is resident as a whole works there.
class Residents {
 public:
  explicit Residents(Launch& launch) : launch_(launch), patience_(launch.program->may_wait_for_blocks ? 0 : -1) {}

  ~Residents() {
    if (held_.empty()) return;
    launch_.extra_left.fetch_add(static_cast<int64_t>(held_.size()) - 1);
    for (const auto& block : held_) Abandon(launch_, *block);
  }

  // Starts blocks up to the number wanted, runs each for one turn. False: nothing is left to do here.
  bool Round() {
    while (!exhausted_ && held_.size() < wanted_ && Start()) {
    }
    if (held_.empty()) return false;
    const size_t before = held_.size();
    uint64_t wake_ns = UINT64_MAX;
    for (size_t i = 0; i < held_.size();) {
      Block& block = *held_[i];
      block.slice = held_.size() == 1 ? kSlice : kSharedSlice;
      const Turn turn = RunTurn(block);
      if (turn == Turn::kFailed) {
        // A block that only saw that others stopped has no outcome.
        if (block.outcome.kind() != RunOutcome::KIND_UNSPECIFIED) Fail(launch_, block.outcome);
        return false;
      }
      if (turn == Turn::kDone) {
        if (!Finish(launch_, block)) {
          Release(i);
          return false;
        }
        Release(i);
        continue;
      }
      wake_ns = std::min(wake_ns, turn == Turn::kAsleep ? block.wake_ns : 0);
      ++i;
    }
    if (held_.size() > 1 && OverBudget()) return false;
    if (held_.size() == before) Wait(wake_ns);
    return true;
  }

 private:
  static constexpr uint64_t kSlice = 4096;        // warp instructions between turns of warps
  static constexpr uint64_t kSharedSlice = 1024;  // the same with several blocks
  static constexpr int kPatience = 64;            // rounds of one block alone
  static constexpr int kSharedPatience = 4;       // of several

  bool Start() {
    if (!held_.empty()) {
      if (launch_.extra_left.fetch_sub(1) <= 0) {
        launch_.extra_left.fetch_add(1);
        return false;
      }
    }
    const uint64_t number = launch_.next_block.fetch_add(1, std::memory_order_relaxed);
    const uint64_t blocks = launch_.blocks();
    exhausted_ = number >= blocks || (++started_ % kBlocksBetweenClocks == 0 && TimedOut(number));
    if (exhausted_) {
      if (!held_.empty()) launch_.extra_left.fetch_add(1);
      return false;
    }
    if (spare_.empty()) {
      spare_.push_back(std::make_unique<Block>());
      PrepareBlock(*spare_.back(), launch_);
    }
    held_.push_back(std::move(spare_.back()));
    spare_.pop_back();
    StartBlock(*held_.back(), number);
    return true;
  }

  bool TimedOut(uint64_t number) {
    if (!launch_.run->clock.TimedOut()) return false;
    RunOutcome outcome;
    outcome.set_kind(RunOutcome::TIMEOUT);
    outcome.set_reason(StrCat(launch_.program->entry, " was still running after ", launch_.run->timeout_s, " s; ",
                              number, " of ", launch_.blocks(), " blocks had started"));
    Fail(launch_, outcome);
    return true;
  }

  // Each block looks at the budget on its own; together they may be over it.
  bool OverBudget() {
    const double budget = launch_.run->instruction_budget;
    if (budget <= 0) return false;
    uint64_t threads = launch_.run->instructions + launch_.executed.load(std::memory_order_relaxed);
    for (const auto& block : held_) threads += ThreadInstructions(*block);
    if (static_cast<double>(threads) <= budget) return false;
    RunOutcome outcome;
    outcome.set_kind(RunOutcome::OVER_BUDGET);
    outcome.set_reason(StrCat(launch_.program->entry, " executed more than the budget of ", budget,
                              " thread instructions, in ", held_.size(), " blocks that wait for one another"));
    outcome.set_estimated_instructions(static_cast<double>(threads));
    Fail(launch_, outcome);
    return true;
  }

  void Release(size_t i) {
    if (held_.size() > 1) launch_.extra_left.fetch_add(1);
    spare_.push_back(std::move(held_[i]));
    held_.erase(held_.begin() + static_cast<ptrdiff_t>(i));
  }

  // No block has ended in this round: wants more of them, or waits if all sleep.
  void Wait(uint64_t wake_ns) {
    if (patience_ < 0) return;
    const bool full = exhausted_ || held_.size() < wanted_;
    if (!full) {
      if (wake_ns == 0 && ++patience_ < (wanted_ == 1 ? kPatience : kSharedPatience)) return;
      patience_ = 0;
      wanted_ *= 2;
      return;
    }
    if (wake_ns != 0) launch_.run->clock.WaitUntil(wake_ns, launch_.stop);
  }

  Launch& launch_;
  std::vector<std::unique_ptr<Block>> held_, spare_;
  size_t wanted_ = 1;
  uint64_t started_ = 0;
  int patience_;  // rounds so far in which no block ended; -1: the program cannot wait for other blocks
  bool exhausted_ = false;
};

void RunBlocks(Launch& launch) {
  Residents residents(launch);
  while (!launch.stop.load(std::memory_order_relaxed) && residents.Round()) {
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
  launch.run->clock.Leave();
}

}  // namespace

uint64_t Launch::ResidentBlocks() const {
  constexpr int64_t kMostBlocksPerSm = 32, kReservedSharedBytes = 1024;
  constexpr int64_t kHostBytes = int64_t{1} << 30;  // for the registers, shared and local memory of all of them
  static const v1::DeviceProperties properties = EmulatorProperties();
  const int64_t warps = (int64_t{block[0]} * block[1] * block[2] + kLanes - 1) / kLanes;
  const int64_t shared_bytes =
      std::max(program->static_shared_bytes, program->dynamic_shared_offset) + dynamic_shared_bytes;
  const int64_t by_threads = properties.max_threads_per_sm() / (warps * kLanes);
  const int64_t by_shared = properties.shared_bytes_per_sm() / (shared_bytes + kReservedSharedBytes);
  const int64_t per_sm = std::clamp<int64_t>(std::min(by_threads, by_shared), 1, kMostBlocksPerSm);
  const FunctionCode& entry = program->functions[0];
  const int64_t watched_bytes = run->findings == nullptr ? 0 : Sanitizer::BytesFor(shared_bytes);
  const int64_t host_bytes = watched_bytes + warps * (entry.register_bytes + entry.local_bytes * kLanes) +
                             shared_bytes + static_cast<int64_t>(program->code.size() * sizeof(void*));
  return static_cast<uint64_t>(
      std::max<int64_t>(1, std::min(per_sm * properties.sm_count(), kHostBytes / std::max<int64_t>(host_bytes, 1))));
}

bool RunLaunch(Launch& launch, RunOutcome* outcome) {
  const uint64_t workers = std::min<uint64_t>(launch.blocks(), static_cast<uint64_t>(std::max(launch.run->threads, 1)));
  launch.extra_left = static_cast<int64_t>(launch.ResidentBlocks()) - static_cast<int64_t>(workers);
  launch.run->clock.Enter(workers);
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
