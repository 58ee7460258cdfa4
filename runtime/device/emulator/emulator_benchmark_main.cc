// How fast the emulator executes: thread instructions per second of processor time (that of all host threads together,
// so that a busy machine does not change it) on kernels of three kinds.
//
//   solstice-emulator-benchmark TESTDATA_DIRECTORY [THREADS]
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/file.h"
#include "runtime/device/emulator/emulator.h"

namespace solstice::device {
namespace {

constexpr int64_t kPage = 64 << 10;

template <typename T>
std::string Argument(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

class Bench {
 public:
  Bench(const std::string& directory, int threads) : directory_(directory) {
    EmulatorOptions options;
    options.threads = threads;
    device_ = MakeEmulator(options);
  }

  std::string Buffer(int64_t bytes) {
    auto buffer = device_->Allocate((bytes + kPage - 1) / kPage * kPage, Extent{"buffer", 0, bytes});
    if (!buffer.ok()) Die(buffer.status().ToString());
    buffers_.push_back(std::move(buffer).value());
    return Argument(buffers_.back()->address());
  }

  void Run(const std::string& file, const LaunchParameters& launch) {
    auto text = base::ReadFile(directory_ + "/" + file, 1 << 20);
    if (!text.ok()) Die(text.status().ToString());
    v1::internal::LoadProgram program;
    program.set_ptx(*text);
    v1::internal::RunOutcome outcome;
    auto module = device_->Load(program, &outcome);
    if (!module.ok()) Die(module.status().ToString());
    double best = 0;
    for (int repeat = 0; repeat < 3; ++repeat) {
      if (Status s = device_->EnqueueLaunch(**module, launch); !s.ok()) Die(s.ToString());
      RunLimits limits;
      limits.timeout = std::chrono::seconds(120);
      const double before = ProcessorSeconds();
      auto result = device_->Synchronize(limits);
      const double seconds = ProcessorSeconds() - before;
      if (!result.ok()) Die(result.status().ToString());
      if (result->kind() != v1::internal::RunOutcome::OK) Die(result->reason());
      outcome = *result;
      best = std::max(best, static_cast<double>(outcome.instructions()) / seconds / 1e6);
    }
    std::printf("%-20s %12lld thread instructions  %8.1f M per processor second\n", launch.entry.c_str(),
                static_cast<long long>(outcome.instructions()), best);
  }

 private:
  static double ProcessorSeconds() {
    timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }
  [[noreturn]] static void Die(const std::string& message) {
    std::fprintf(stderr, "%s\n", message.c_str());
    std::exit(1);
  }

  const std::string directory_;
  std::unique_ptr<Device> device_;
  std::vector<std::unique_ptr<class Buffer>> buffers_;
};

int Main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr, "usage: solstice-emulator-benchmark TESTDATA_DIRECTORY [THREADS]\n");
    return 2;
  }
  Bench bench(argv[1], argc > 2 ? std::atoi(argv[2]) : 1);
  LaunchParameters launch;

  launch.entry = "fused_add_rmsnorm";
  launch.grid[0] = 2048;
  launch.block[0] = 256;
  const int64_t row_bytes = 2048 * 2;
  launch.arguments = {bench.Buffer(2048 * row_bytes), bench.Buffer(2048 * row_bytes), bench.Buffer(row_bytes),
                      bench.Buffer(2048 * row_bytes), Argument(1e-6f)};
  bench.Run("rmsnorm.ptx", launch);

  launch.entry = "gemm";
  launch.grid[0] = launch.grid[1] = 4;
  const int32_t size = 256;
  const int64_t bytes = int64_t{size} * size * 2;
  launch.arguments = {bench.Buffer(bytes), bench.Buffer(bytes), bench.Buffer(bytes),
                      Argument(size),      Argument(size),      Argument(size)};
  bench.Run("gemm.ptx", launch);

  launch.entry = "affine";
  launch.grid[0] = 16384;
  launch.grid[1] = 1;
  const int32_t count = 16384 * 256 - 100;
  launch.arguments = {bench.Buffer(int64_t{count} * 4), bench.Buffer(int64_t{count} * 4), Argument(count)};
  bench.Run("affine.ptx", launch);
  return 0;
}

}  // namespace
}  // namespace solstice::device

int main(int argc, char** argv) { return solstice::device::Main(argc, argv); }
