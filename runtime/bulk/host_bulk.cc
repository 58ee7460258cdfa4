// Bulk work on the host: tensors are copied there and back.
#include <functional>
#include <new>
#include <utility>

#include "runtime/base/strings.h"
#include "runtime/bulk/bulk.h"
#include "runtime/bulk/host_work.h"
#include "runtime/generate/recipe.h"

namespace solstice::bulk {
namespace {

class HostBulk : public Bulk {
 public:
  explicit HostBulk(device::Device* device) : device_(*device) {}

  Status MakeInput(const v1::Tensor& tensor, const v1::InputSource& source, const std::vector<int64_t>& shape,
                   int input_index, const generate::Seeds& seeds, int variant, device::Address destination) override {
    SOLSTICE_RETURN_IF_ERROR(generate::MakeRecipe(tensor, source, shape, input_index, seeds, variant).status());
    Queue([=, this]() -> Status {
      SOLSTICE_ASSIGN_OR_RETURN(std::string content,
                                generate::GenerateInput(tensor, source, shape, input_index, seeds, variant));
      return WriteContent(device_, content, destination);
    });
    return absl::OkStatus();
  }

  Status FillRandom(uint64_t seed, uint64_t stream, device::Address destination, int64_t bytes) override {
    SOLSTICE_RETURN_IF_ERROR(CheckSize(bytes));
    Queue([=, this]() -> Status {
      std::string content(static_cast<size_t>(bytes), '\0');
      generate::FillRandom(seed, stream, content.data(), bytes);
      return WriteContent(device_, content, destination);
    });
    return absl::OkStatus();
  }

  Status CheckRandom(uint64_t seed, uint64_t stream, device::Address source, int64_t bytes, Damage* damage) override {
    SOLSTICE_RETURN_IF_ERROR(CheckSize(bytes));
    Queue([=, this]() -> Status {
      SOLSTICE_ASSIGN_OR_RETURN(std::string found, ReadContent(device_, source, bytes));
      std::string wanted(static_cast<size_t>(bytes), '\0');
      generate::FillRandom(seed, stream, wanted.data(), bytes);
      *damage = FindDamage(found, wanted);
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }

  Status TakeFingerprint(uint64_t key, device::Address source, int64_t bytes, Fingerprint* fingerprint) override {
    SOLSTICE_RETURN_IF_ERROR(CheckSize(bytes));
    Queue([=, this]() -> Status {
      SOLSTICE_ASSIGN_OR_RETURN(std::string content, ReadContent(device_, source, bytes));
      *fingerprint = FingerprintOf(key, content);
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }

  Status Compare(const v1::Tensor& tensor, const std::vector<int64_t>& shape, const v1::Tolerance& tolerance,
                 device::Address actual, device::Address expected, verify::TensorComparison* comparison) override {
    Queue([=, this]() -> Status {
      SOLSTICE_ASSIGN_OR_RETURN(*comparison, CompareOnHost(device_, tensor, shape, tolerance, actual, expected));
      return absl::OkStatus();
    });
    return absl::OkStatus();
  }

  Status Finish() override {
    const std::vector<std::function<Status()>> queue = std::exchange(queue_, {});
    for (const auto& operation : queue) {
      try {
        SOLSTICE_RETURN_IF_ERROR(operation());
      } catch (const std::bad_alloc&) {
        return base::ResourceExhausted("a tensor does not fit in the host's memory");
      }
    }
    return absl::OkStatus();
  }

 private:
  void Queue(std::function<Status()> operation) { queue_.push_back(std::move(operation)); }

  device::Device& device_;
  std::vector<std::function<Status()>> queue_;
};

}  // namespace

std::unique_ptr<Bulk> MakeHostBulk(device::Device* device) { return std::make_unique<HostBulk>(device); }

}  // namespace solstice::bulk
