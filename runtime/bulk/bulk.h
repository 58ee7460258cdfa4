// The judge's bulk work on device memory: inputs, secret fillings, guards, fingerprints, comparisons. Two
// implementations that agree bit for bit: one copies to the host and works there (the emulator's), one runs trusted
// kernels on the device, so that gigabytes cost milliseconds.
//
// Operations are queued and run in order; results are there after Finish(). Pointers handed in must stay valid until
// then. One thread, that of the device. A Status is our failure, but for MakeInput's INVALID_ARGUMENT.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/base/status.h"
#include "runtime/device/device.h"
#include "runtime/generate/generate.h"
#include "runtime/verify/verify.h"
#include "solstice/v1/definition.pb.h"
#include "solstice/v1/worker.pb.h"

namespace solstice::bulk {

// Bytes that are not what FillRandom wrote.
struct Damage {
  int64_t bytes = 0;  // how many
  int64_t first = 0;  // offset of the first and of the last one; meaningful when bytes > 0
  int64_t last = 0;
};

using Fingerprint = std::array<uint64_t, 2>;

class Bulk {
 public:
  virtual ~Bulk() = default;

  // What generate::GenerateInput makes, at `destination`. INVALID_ARGUMENT, at once, for sources it cannot make.
  virtual Status MakeInput(const v1::Tensor& tensor, const v1::InputSource& source, const std::vector<int64_t>& shape,
                           int input_index, const generate::Seeds& seeds, int variant, device::Address destination) = 0;
  // What generate::FillRandom makes.
  virtual Status FillRandom(uint64_t seed, uint64_t stream, device::Address destination, int64_t bytes) = 0;
  // Compares with what FillRandom makes.
  virtual Status CheckRandom(uint64_t seed, uint64_t stream, device::Address source, int64_t bytes, Damage* damage) = 0;
  // A keyed fingerprint of memory: equal content, equal fingerprint; whoever doesn't know the key cannot write other
  // content of the same fingerprint but by chance.
  virtual Status TakeFingerprint(uint64_t key, device::Address source, int64_t bytes, Fingerprint* fingerprint) = 0;
  // verify::CompareTensor on two tensors in device memory.
  virtual Status Compare(const v1::Tensor& tensor, const std::vector<int64_t>& shape, const v1::Tolerance& tolerance,
                         device::Address actual, device::Address expected, verify::TensorComparison* comparison) = 0;

  // Runs what was queued and waits for it.
  virtual Status Finish() = 0;
};

// `device` must live longer.
std::unique_ptr<Bulk> MakeHostBulk(device::Device* device);

// The source of the trusted kernels, to be compiled as any program is (compile::Compiler), for `arch`.
v1::internal::ProgramSource KernelSource(const std::string& arch);
// `module` is that program, loaded on `device`; both must live longer.
StatusOr<std::unique_ptr<Bulk>> MakeKernelBulk(device::Device* device, const device::Module* module);

// ---- Two more entries of that program ----------------------------------------------------------------------------

// solstice_clear_l2(const void* data, int64 bytes, int64 shared_bytes): reads all of `data` (16-byte aligned) once, by
// plain cached loads, and overwrites the block's dynamic shared memory. It writes no global memory.
inline constexpr char kClearL2Entry[] = "solstice_clear_l2";
// solstice_stand_in(): writes zeros, in whole chunks of sixteen bytes.
inline constexpr char kStandInEntry[] = "solstice_stand_in";

struct Written {
  device::Address address = 0;
  int64_t bytes = 0;
};

// On a device of these properties: each multiprocessor's shared memory is overwritten too.
device::LaunchParameters ClearLaunch(device::Address address, int64_t bytes, const v1::DeviceProperties& properties);
// Of the first 64 ranges; without any it does nothing.
device::LaunchParameters StandInLaunch(const std::vector<Written>& ranges, const v1::DeviceProperties& properties);

}  // namespace solstice::bulk
