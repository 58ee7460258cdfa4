// Bulk work by the trusted kernels.
#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/bulk/arena.h"
#include "runtime/bulk/bulk.h"
#include "runtime/bulk/host_work.h"
#include "runtime/bulk/kernel_compare.h"
#include "runtime/bulk/kernels/names.h"
#include "runtime/bulk/launches.h"
#include "runtime/core/dtype.h"
#include "runtime/generate/element.h"
#include "runtime/generate/recipe.h"
#include "runtime/generate/scalar.h"
#include "runtime/generate/words.h"

namespace solstice::bulk {
namespace {

using generate::Distribution;
using generate::InputRecipe;

// The element, repeated to eight bytes.
uint64_t PatternOf(const std::string& element) {
  uint64_t pattern = 0;
  for (size_t i = 0; i < sizeof pattern; ++i) {
    pattern |= static_cast<uint64_t>(static_cast<uint8_t>(element[i % element.size()])) << (8 * i);
  }
  return pattern;
}

bool IsConstant(const InputRecipe& recipe) {
  const Distribution distribution = recipe.values.distribution;
  return !recipe.values.perturbed() &&
         (distribution == Distribution::kNormWeight || distribution == Distribution::kNormBias);
}

v1::ScalarValue NumberOf(double number) {
  v1::ScalarValue value;
  value.set_number(number);
  return value;
}

StatusOr<uint64_t> BitsOf(double number, v1::DType dtype) {
  SOLSTICE_ASSIGN_OR_RETURN(std::string element, generate::EncodeScalar(NumberOf(number), dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, element.data(), element.size());
  return bits;
}

StatusOr<InputParameters> ParametersOf(const InputRecipe& recipe, device::Address destination) {
  InputParameters p;
  p.seed = recipe.values.seed;
  p.stream = recipe.stream;
  p.hole_stream = generate::StreamOf(generate::Purpose::kHoles, recipe.values.variant, recipe.values.input_index);
  p.address = destination;
  p.values = recipe.elements * core::ValuesPerElement(recipe.dtype);
  p.last_dimension = recipe.values.last_dimension();
  const Distribution distribution = recipe.values.distribution;
  if (distribution == Distribution::kBinaryMask || distribution == Distribution::kCausalMask) {
    SOLSTICE_ASSIGN_OR_RETURN(p.one, BitsOf(1, recipe.dtype));
    SOLSTICE_ASSIGN_OR_RETURN(p.lowest, BitsOf(recipe.values.lowest, recipe.dtype));
  }
  p.scale = recipe.dtype == v1::FLOAT64 ? generate::WeightScale<double>(p.last_dimension)
                                        : generate::WeightScale<float>(p.last_dimension);
  p.distribution = static_cast<int32_t>(distribution);
  p.dtype = static_cast<DataType>(recipe.dtype);
  p.perturbed = recipe.values.perturbed();
  p.element_bytes = static_cast<int32_t>(core::ElementBytes(recipe.dtype));
  return p;
}

class KernelBulk : public Bulk {
 public:
  KernelBulk(device::Device* device, const device::Module* module)
      : device_(*device), module_(*module), arena_(device), comparer_(device, module, &arena_) {}

  Status MakeInput(const v1::Tensor& tensor, const v1::InputSource& source, const std::vector<int64_t>& shape,
                   int input_index, const generate::Seeds& seeds, int variant, device::Address destination) override {
    SOLSTICE_ASSIGN_OR_RETURN(InputRecipe recipe,
                              generate::MakeRecipe(tensor, source, shape, input_index, seeds, variant));
    if (recipe.bytes == 0) return absl::OkStatus();
    if (IsConstant(recipe)) {
      const double value = recipe.values.distribution == Distribution::kNormWeight ? 1 : 0;
      SOLSTICE_ASSIGN_OR_RETURN(recipe.scalar, generate::EncodeScalar(NumberOf(value), recipe.dtype));
    }
    ContentParameters content;
    if (!recipe.scalar.empty()) {
      content.is_pattern = 1;
      content.pattern = PatternOf(recipe.scalar);
      return Fill(content, destination, recipe.bytes);
    }
    SOLSTICE_ASSIGN_OR_RETURN(InputParameters p, ParametersOf(recipe, destination));
    switch (recipe.values.distribution) {
      case Distribution::kByte:
        content.seed = p.seed;
        content.stream = p.stream;
        return Fill(content, destination, recipe.bytes);
      case Distribution::kCoin:
        return MakeCoins(&p);
      case Distribution::kSoftmaxRow:
        return Launch(kSoftmaxEntry, p.values / p.last_dimension * 32, p);
      case Distribution::kSmallInteger:
      case Distribution::kBinaryMask:
      case Distribution::kCausalMask:
        return Launch(kElementsEntry, p.values, p);
      default:
        if (recipe.dtype == v1::FLOAT64) return Launch(kElementsEntry, p.values, p);
        return Launch(kNormalsEntry, (p.values + 7) / 8, p);
    }
  }

  Status FillRandom(uint64_t seed, uint64_t stream, device::Address destination, int64_t bytes) override {
    ContentParameters p;
    p.seed = generate::FillingSeed(seed);
    p.stream = stream;
    return Fill(p, destination, bytes);
  }

  Status CheckRandom(uint64_t seed, uint64_t stream, device::Address source, int64_t bytes, Damage* damage) override {
    SOLSTICE_RETURN_IF_ERROR(CheckSize(bytes));
    *damage = {};
    if (bytes == 0) return absl::OkStatus();
    SOLSTICE_ASSIGN_OR_RETURN(int64_t place, arena_.Take());
    ContentParameters p;
    p.seed = generate::FillingSeed(seed);
    p.stream = stream;
    p.address = source;
    p.bytes = bytes;
    p.damage = arena_.AddressOf(place);
    checks_.push_back({place, bytes, damage});
    return Launch(kContentEntry, bytes / 16 + 2, p);
  }

  Status TakeFingerprint(uint64_t key, device::Address source, int64_t bytes, Fingerprint* fingerprint) override {
    SOLSTICE_RETURN_IF_ERROR(CheckSize(bytes));
    *fingerprint = {};
    if (bytes == 0) return absl::OkStatus();
    SOLSTICE_ASSIGN_OR_RETURN(int64_t place, arena_.Take());
    FingerprintParameters p;
    p.key = key;
    p.address = source;
    p.bytes = bytes;
    p.result = arena_.AddressOf(place);
    fingerprints_.push_back({place, fingerprint});
    constexpr int64_t kBytesPerThread = 128;
    // Whole warps: one takes 4 KiB.
    return Launch(kFingerprintEntry, (bytes / kBytesPerThread / 32 + 1) * 32, p);
  }

  Status Compare(const v1::Tensor& tensor, const std::vector<int64_t>& shape, const v1::Tolerance& tolerance,
                 device::Address actual, device::Address expected, verify::TensorComparison* comparison) override {
    return comparer_.Queue(tensor, shape, tolerance, actual, expected, comparison);
  }

  Status Finish() override {
    // Whatever happens, nothing of this batch may come up in the next.
    const std::vector<Check> checks = std::exchange(checks_, {});
    const std::vector<Taken> fingerprints = std::exchange(fingerprints_, {});
    Status status = RunQueued(&device_);
    if (status.ok()) status = arena_.Read();
    arena_.Reset();
    if (!status.ok()) {
      comparer_.Drop();
      return status;
    }
    for (const Check& check : checks) {
      const DamageResult found = arena_.Get<DamageResult>(check.place);
      if (found.bytes == 0) continue;
      *check.damage = {static_cast<int64_t>(found.bytes), check.bytes - static_cast<int64_t>(found.from_end),
                       static_cast<int64_t>(found.end) - 1};
    }
    for (const Taken& taken : fingerprints) {
      const FingerprintResult result = arena_.Get<FingerprintResult>(taken.place);
      *taken.fingerprint = {result.sum[0], result.sum[1]};
    }
    try {
      return comparer_.Finish();
    } catch (const std::bad_alloc&) {
      return base::ResourceExhausted("a tensor does not fit in the host's memory");
    }
  }

 private:
  struct Check {
    int64_t place, bytes;
    Damage* damage;
  };
  struct Taken {
    int64_t place;
    Fingerprint* fingerprint;
  };

  template <typename Parameters>
  Status Launch(const char* entry, int64_t work, const Parameters& parameters) {
    return device_.EnqueueLaunch(module_, MakeLaunch(entry, device_.properties(), work, parameters));
  }

  Status Fill(ContentParameters p, device::Address destination, int64_t bytes) {
    SOLSTICE_RETURN_IF_ERROR(CheckSize(bytes));
    if (bytes == 0) return absl::OkStatus();
    p.address = destination;
    p.bytes = bytes;
    return Launch(kContentEntry, bytes / 16 + 2, p);
  }

  Status MakeCoins(InputParameters* p) {
    SOLSTICE_ASSIGN_OR_RETURN(int64_t place, arena_.Take());
    p->result = arena_.AddressOf(place);
    SOLSTICE_RETURN_IF_ERROR(Launch(kElementsEntry, p->values, *p));
    device::LaunchParameters mend = MakeLaunch(kMendCoinsEntry, device_.properties(), 1, *p);
    mend.block[0] = 1;
    return device_.EnqueueLaunch(module_, mend);
  }

  device::Device& device_;
  const device::Module& module_;
  Arena arena_;
  KernelCompare comparer_;
  std::vector<Check> checks_;
  std::vector<Taken> fingerprints_;
};

}  // namespace

StatusOr<std::unique_ptr<Bulk>> MakeKernelBulk(device::Device* device, const device::Module* module) {
  if (device == nullptr || module == nullptr) return base::Internal("bulk: no device or no kernels");
  return std::make_unique<KernelBulk>(device, module);
}

device::LaunchParameters ClearLaunch(device::Address address, int64_t bytes, const v1::DeviceProperties& properties) {
  device::LaunchParameters launch;
  launch.entry = kClearL2Entry;
  // A block takes all shared memory of its multiprocessor, so that the first blocks lie on one each.
  launch.grid[0] = 2 * std::max<int64_t>(properties.sm_count(), 1);
  launch.block[0] = 1024;
  launch.dynamic_shared_bytes = properties.max_shared_bytes();
  launch.arguments = {ArgumentBytes(address), ArgumentBytes(bytes), ArgumentBytes(launch.dynamic_shared_bytes)};
  return launch;
}

device::LaunchParameters StandInLaunch(const std::vector<Written>& ranges, const v1::DeviceProperties& properties) {
  StandInParameters p;
  int64_t most = 0;
  for (const Written& range : ranges) {
    if (p.count == StandInParameters::kMostRanges) break;
    p.ranges[p.count].address = range.address;
    p.ranges[p.count].bytes = range.bytes;
    most = std::max(most, range.bytes);
    ++p.count;
  }
  return MakeLaunch(kStandInEntry, properties, most / 16, p);
}

}  // namespace solstice::bulk
