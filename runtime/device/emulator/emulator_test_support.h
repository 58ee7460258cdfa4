// For tests of the emulator: run PTX text on small arrays.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "runtime/base/strings.h"
#include "runtime/device/emulator/emulator.h"

namespace solstice::device {

using v1::internal::Fault;
using v1::internal::RunOutcome;

inline constexpr int64_t kPage = 64 << 10;

inline std::string Wrap(const std::string& body) { return ".version 9.0\n.target sm_90a\n.address_size 64\n" + body; }

template <typename T>
std::string Argument(const T& value) {
  return std::string(reinterpret_cast<const char*>(&value), sizeof value);
}

// One device with one loaded module.
class Machine {
 public:
  explicit Machine(const std::string& ptx, EmulatorOptions options = {}) : device_(MakeEmulator(options)) {
    v1::internal::LoadProgram program;
    program.set_ptx(ptx);
    auto module = device_->Load(program, &load_);
    EXPECT_TRUE(module.ok()) << module.status().ToString();
    if (module.ok()) module_ = std::move(module).value();
  }

  // The address of a buffer that holds `values`.
  template <typename T>
  Address Buffer(const std::vector<T>& values, const std::string& name = "y") {
    const int64_t bytes = static_cast<int64_t>(values.size() * sizeof(T));
    const int64_t mapped = std::max<int64_t>((bytes + kPage - 1) / kPage * kPage, kPage);
    auto buffer = device_->Allocate(mapped, Extent{name, 0, bytes, "output"});
    EXPECT_TRUE(buffer.ok()) << buffer.status().ToString();
    buffers_.push_back(std::move(buffer).value());
    const Address address = buffers_.back()->address();
    EXPECT_TRUE(
        device_->CopyIn(address, {reinterpret_cast<const uint8_t*>(values.data()), static_cast<size_t>(bytes)}).ok());
    return address;
  }
  template <typename T>
  std::vector<T> Read(Address address, size_t count) {
    std::vector<T> values(count);
    EXPECT_TRUE(device_->CopyOut({reinterpret_cast<uint8_t*>(values.data()), count * sizeof(T)}, address).ok());
    return values;
  }

  RunOutcome Run(const std::string& entry, int64_t grid, int64_t block, std::vector<std::string> arguments,
                 int64_t shared = 0, RunLimits limits = {}) {
    LaunchParameters launch;
    launch.entry = entry;
    launch.grid[0] = grid;
    launch.block[0] = block;
    launch.dynamic_shared_bytes = shared;
    launch.arguments = std::move(arguments);
    return Launch(launch, limits);
  }
  RunOutcome Launch(const LaunchParameters& launch, RunLimits limits = {}) {
    if (module_ == nullptr) return load_;
    const Status enqueued = device_->EnqueueLaunch(*module_, launch);
    EXPECT_TRUE(enqueued.ok()) << enqueued.ToString();
    auto outcome = device_->Synchronize(limits);
    EXPECT_TRUE(outcome.ok()) << outcome.status().ToString();
    return outcome.ok() ? *outcome : RunOutcome();
  }

  Device& device() { return *device_; }
  const class Module* module() const { return module_.get(); }
  const RunOutcome& load() const { return load_; }

 private:
  std::unique_ptr<Device> device_;
  RunOutcome load_;
  std::unique_ptr<class Module> module_;
  std::vector<std::unique_ptr<class Buffer>> buffers_;
};

// Runs `instructions` with %tid.x in %r0 in one block; `out` gets %q0 (b64) of each thread. Inputs: %a, %b, %c hold the
// thread's 64-bit words of the three input arrays; %a0.. and so on are their low 32 bits, %ah.. the low 16.
inline std::vector<uint64_t> RunLanes(const std::string& instructions, const std::vector<uint64_t>& a,
                                      std::vector<uint64_t> b = {}, std::vector<uint64_t> c = {}) {
  b.resize(a.size());
  c.resize(a.size());
  const std::string ptx = Wrap(R"(
.visible .entry k(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u64 po)
{
  .reg .pred %p<8>;
  .reg .b16 %ah, %bh, %ch, %h<8>;
  .reg .b32 %a0, %b0, %c0, %r<16>;
  .reg .f32 %fa, %fb, %fc, %f<8>;
  .reg .f64 %da, %db, %dc, %d<8>;
  .reg .b64 %a, %b, %c, %q<16>, %ad<8>;
  mov.u32 %r0, %tid.x;
  mul.wide.u32 %ad0, %r0, 8;
  ld.param.u64 %ad1, [pa];
  ld.param.u64 %ad2, [pb];
  ld.param.u64 %ad3, [pc];
  ld.param.u64 %ad4, [po];
  add.s64 %ad1, %ad1, %ad0;
  add.s64 %ad2, %ad2, %ad0;
  add.s64 %ad3, %ad3, %ad0;
  add.s64 %ad4, %ad4, %ad0;
  ld.global.b64 %a, [%ad1];
  ld.global.b64 %b, [%ad2];
  ld.global.b64 %c, [%ad3];
  cvt.u32.u64 %a0, %a;
  cvt.u32.u64 %b0, %b;
  cvt.u32.u64 %c0, %c;
  cvt.u16.u64 %ah, %a;
  cvt.u16.u64 %bh, %b;
  cvt.u16.u64 %ch, %c;
  mov.b32 %fa, %a0;
  mov.b32 %fb, %b0;
  mov.b32 %fc, %c0;
  mov.b64 %da, %a;
  mov.b64 %db, %b;
  mov.b64 %dc, %c;
  mov.u64 %q0, 0;
)" + instructions + R"(
  st.global.b64 [%ad4], %q0;
  ret;
}
)");
  Machine machine(ptx);
  const Address pa = machine.Buffer(a), pb = machine.Buffer(b), pc = machine.Buffer(c),
                po = machine.Buffer(std::vector<uint64_t>(a.size()));
  const RunOutcome outcome =
      machine.Run("k", 1, static_cast<int64_t>(a.size()), {Argument(pa), Argument(pb), Argument(pc), Argument(po)});
  EXPECT_EQ(outcome.kind(), RunOutcome::OK) << outcome.reason() << "\n" << instructions;
  return machine.Read<uint64_t>(po, a.size());
}

// The same with a 32-bit result in %r1.
inline std::vector<uint32_t> RunLanes32(const std::string& instructions, const std::vector<uint64_t>& a,
                                        const std::vector<uint64_t>& b = {}, const std::vector<uint64_t>& c = {}) {
  std::vector<uint32_t> result;
  for (const uint64_t word : RunLanes(instructions + "\n  cvt.u64.u32 %q0, %r1;", a, b, c)) {
    result.push_back(static_cast<uint32_t>(word));
  }
  return result;
}

inline uint64_t F(float x) { return __builtin_bit_cast(uint32_t, x); }
inline uint64_t D(double x) { return __builtin_bit_cast(uint64_t, x); }

}  // namespace solstice::device
