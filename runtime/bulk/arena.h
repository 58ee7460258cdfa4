// Small places in device memory, zero at first, for what kernels find. Internal to runtime/bulk.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/device/device.h"

namespace solstice::bulk {

// Places are given out until Read, which takes all contents to the host; Reset begins anew. The memory is kept. One
// thread, that of the device.
class Arena {
 public:
  static constexpr int64_t kPlaceBytes = 64;

  explicit Arena(device::Device* device) : device_(*device) {}

  // The number of a new place. The clearing is queued on the device, before what is queued after.
  StatusOr<int64_t> Take();
  device::Address AddressOf(int64_t place) const;
  // After the device was synchronised.
  Status Read();
  // The content of a place at the last Read. `Result` is a plain struct of at most kPlaceBytes.
  template <typename Result>
  Result Get(int64_t place) const {
    static_assert(sizeof(Result) <= kPlaceBytes);
    Result result;
    contents_.copy(reinterpret_cast<char*>(&result), sizeof result, static_cast<size_t>(place * kPlaceBytes));
    return result;
  }
  void Reset() { taken_ = 0; }

 private:
  static constexpr int64_t kPlacesPerBuffer = 1024;

  device::Device& device_;
  std::vector<std::unique_ptr<device::Buffer>> buffers_;
  int64_t taken_ = 0;
  std::string contents_;
};

}  // namespace solstice::bulk
