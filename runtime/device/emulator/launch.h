// One kernel launch: what its blocks share, and running it on several host threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "runtime/device/device.h"
#include "runtime/device/emulator/clock.h"
#include "runtime/device/emulator/emulator.h"
#include "runtime/device/emulator/memory_map.h"
#include "runtime/device/emulator/program.h"
#include "runtime/device/emulator/sanitizer.h"
#include "runtime/device/emulator/warp.h"

namespace solstice::device {

// What one Synchronize has used so far.
struct RunState {
  explicit RunState(std::chrono::nanoseconds timeout)
      : clock(timeout), timeout_s(std::chrono::duration<double>(timeout).count()) {}

  Clock clock;
  const double timeout_s;
  double instruction_budget = 0;
  uint64_t instructions = 0;  // thread instructions of finished launches
  double estimated = 0;
  std::string device_output;
  int threads = 1;
  Findings* findings = nullptr;  // null: nothing is looked for
  std::vector<WrittenMap> written;
};

struct Launch {
  const Program* program = nullptr;
  const MemoryMap* memory = nullptr;
  const EmulatorOptions* options = nullptr;
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  int64_t dynamic_shared_bytes = 0;
  uint64_t number = 0;
  std::string parameters;
  RunState* run = nullptr;

  std::atomic<uint64_t> next_block{0};
  std::atomic<bool> stop{false};
  std::atomic<uint64_t> executed{0};   // thread instructions of finished blocks
  std::atomic<int64_t> extra_left{0};  // blocks that may be resident beside one a host thread
  std::mutex mutex;                    // guards what follows
  bool failed = false;
  v1::internal::RunOutcome outcome;
  std::vector<std::pair<uint64_t, std::string>> output;  // by block
  uint64_t first_blocks_done = 0, first_blocks_executed = 0;

  uint64_t blocks() const { return uint64_t{grid[0]} * grid[1] * grid[2]; }
  // How many blocks the hardware would hold at once, registers aside: as many make progress together.
  uint64_t ResidentBlocks() const;
};

// Runs the launch to its end. True: OK. False: `outcome` says what happened.
bool RunLaunch(Launch& launch, v1::internal::RunOutcome* outcome);

enum class Turn {
  kDone,    // the block has ended
  kFailed,  // block.outcome says why; unspecified: the launch was stopped
  kMore,
  kAsleep,  // nothing can run before block.wake_ns
};

// A Block is made ready once and then runs one block of the grid after another.
void PrepareBlock(Block& block, Launch& launch);
void StartBlock(Block& block, uint64_t number);
// Gives each warp that can run one slice.
Turn RunTurn(Block& block);

}  // namespace solstice::device
