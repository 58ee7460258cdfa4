// Programs that no compiler would make: whatever parses must load and run to some outcome, without touching the host's
// memory. Seeds are fixed; SOLSTICE_FUZZ_ROUNDS multiplies the number of programs.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>

#include "runtime/base/file.h"
#include "runtime/device/emulator/emulator_fuzz_programs.h"
#include "runtime/device/emulator/emulator_test_support.h"
#include "runtime/ptx/module.h"

namespace solstice::device {
namespace {

int Rounds() {
  const char* text = std::getenv("SOLSTICE_FUZZ_ROUNDS");
  return text == nullptr ? 1 : std::max(1, std::atoi(text));
}

struct Tally {
  std::map<std::string, int> outcomes;
  int Total() const {
    int total = 0;
    for (const auto& [name, count] : outcomes) total += count;
    return total;
  }
};

constexpr int64_t kExtent = 256;
constexpr int64_t kOffset = 1024;
constexpr uint8_t kGuard = 0xa5;

std::unique_ptr<Buffer> GuardedBuffer(Device& device) {
  auto buffer = device.Allocate(kPage, Extent{"y", kOffset, kExtent, "output"});
  EXPECT_TRUE(buffer.ok());
  const std::vector<uint8_t> fill(kPage, kGuard);
  EXPECT_TRUE(device.CopyIn((*buffer)->address(), fill).ok());
  return std::move(buffer).value();
}

bool GuardsAreIntact(Device& device, const Buffer& buffer) {
  std::vector<uint8_t> bytes(kPage);
  EXPECT_TRUE(device.CopyOut(bytes, buffer.address()).ok());
  for (int64_t i = 0; i < kPage; ++i) {
    if ((i < kOffset || i >= kOffset + kExtent) && bytes[static_cast<size_t>(i)] != kGuard) return false;
  }
  return true;
}

std::string RandomArgument(Dice& dice, int64_t bytes, const Buffer& writable, const Buffer& readable) {
  std::string value(static_cast<size_t>(bytes), '\0');
  for (size_t i = 0; i < value.size(); i += 8) {
    uint64_t word = dice.Edge();
    if (bytes >= 8 && dice.Chance(85)) word = (dice.Chance(70) ? writable : readable).address() + kOffset;
    if (bytes >= 8 && dice.Chance(10)) word += dice.Below(512);
    if (bytes < 8 && dice.Chance(70)) word = dice.Below(64);
    std::memcpy(value.data() + i, &word, std::min<size_t>(8, value.size() - i));
  }
  return value;
}

// Loads the text and launches every entry a few times.
void RunProgram(const std::string& text, Dice& dice, Tally& tally) {
  const auto parsed = ptx::Parse(text);
  if (!parsed.ok()) {
    ++tally.outcomes["not PTX"];
    return;
  }
  EmulatorOptions options;
  options.threads = dice.Chance(10) ? 2 : 1;
  options.memory_bytes = 1 << 20;
  options.block_instruction_limit = 5000;
  options.local_bytes_per_thread = 16 << 10;
  const std::unique_ptr<Device> device = MakeEmulator(options);
  const auto writable = GuardedBuffer(*device), owned = GuardedBuffer(*device);
  auto handle = owned->Export(Access::kReadOnly);
  ASSERT_TRUE(handle.ok());
  auto readable = device->Import(std::move(*handle), kPage, Access::kReadOnly, Extent{"x", kOffset, kExtent, "input"});
  ASSERT_TRUE(readable.ok());
  v1::internal::LoadProgram program;
  program.set_ptx(text);
  RunOutcome outcome;
  auto module = device->Load(program, &outcome);
  ASSERT_TRUE(module.ok()) << module.status().ToString() << "\n" << text;
  ++tally.outcomes["loaded"];
  if (*module == nullptr) return;
  for (const ptx::Function& entry : parsed->functions) {
    if (!entry.is_entry || entry.is_declaration) continue;
    for (int run = 0; run < 2; ++run) {
      LaunchParameters launch;
      launch.entry = entry.name;
      launch.grid[0] = static_cast<int64_t>(1 + dice.Below(3));
      launch.block[0] = static_cast<int64_t>(1 + dice.Below(70));
      launch.block[1] = dice.Chance(20) ? 2 : 1;
      launch.dynamic_shared_bytes = static_cast<int64_t>(dice.Below(3) * 100);
      for (int i = 0; i < 3; ++i) {
        if (entry.required_threads[i] > 0 && dice.Chance(90)) launch.block[i] = entry.required_threads[i];
      }
      bool fits = true;
      for (const ptx::Variable& parameter : entry.parameters) {
        const int64_t bytes = parameter.count * std::max(parameter.type.bytes, 1);
        fits &= bytes >= 0 && bytes <= 65536;
        if (fits) launch.arguments.push_back(RandomArgument(dice, bytes, *writable, **readable));
      }
      if (!fits || !device->EnqueueLaunch(**module, launch).ok()) continue;
      RunLimits limits;
      limits.timeout = std::chrono::milliseconds(50);
      const auto result = device->Synchronize(limits);
      ASSERT_TRUE(result.ok()) << result.status().ToString() << "\n" << text;
      ++tally.outcomes[RunOutcome::Kind_Name(result->kind())];
      EXPECT_EQ(result->kind() == RunOutcome::OK, result->reason().empty()) << text;
    }
  }
  EXPECT_TRUE(GuardsAreIntact(*device, *writable)) << text;
  EXPECT_TRUE(GuardsAreIntact(*device, *owned)) << text;
}

std::vector<std::string> Goldens() {
  std::vector<std::filesystem::path> paths;
  for (const char* folder : {"/runtime/device/emulator/testdata", "/runtime/ptx/testdata"}) {
    for (const auto& entry : std::filesystem::directory_iterator(SOLSTICE_SOURCE_DIR + std::string(folder))) {
      // Large ones mostly repeat themselves.
      if (entry.path().extension() == ".ptx" && entry.file_size() < 40000) paths.push_back(entry.path());
    }
  }
  std::sort(paths.begin(), paths.end());
  std::vector<std::string> texts;
  for (const auto& path : paths) {
    auto text = base::ReadFile(path.string(), 1 << 20);
    if (text.ok()) texts.push_back(*std::move(text));
  }
  return texts;
}

std::string Describe(const Tally& tally) {
  std::string text;
  for (const auto& [name, count] : tally.outcomes) text += base::StrCat(name, " ", count, "  ");
  return text;
}

TEST(Fuzz, MutatedGoldens) {
  const std::vector<std::string> goldens = Goldens();
  ASSERT_GE(goldens.size(), 8u);
  Mutator mutator(goldens, 1);
  Dice dice(2);
  Tally tally;
  for (int i = 0; i < 1000 * Rounds() && !HasFatalFailure(); ++i) RunProgram(mutator.Next(), dice, tally);
  std::printf("%s\n", Describe(tally).c_str());
  // Else it tests only the parser.
  EXPECT_GE(tally.outcomes["loaded"], 200);
  EXPECT_GE(tally.outcomes["OK"] + tally.outcomes["FAULT"], 50);
}

TEST(Fuzz, RandomInstructions) {
  Generator generator(3);
  Dice dice(4);
  Tally tally;
  for (int i = 0; i < 2000 * Rounds() && !HasFatalFailure(); ++i) RunProgram(generator.Next(), dice, tally);
  std::printf("%s\n", Describe(tally).c_str());
  EXPECT_GE(tally.outcomes["loaded"], 1000);
  EXPECT_GE(tally.outcomes["OK"] + tally.outcomes["FAULT"], 500);
}

}  // namespace
}  // namespace solstice::device
