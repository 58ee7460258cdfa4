// Ordered key-value storage with atomic batches. Implementations are thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/base/status.h"

namespace solstice::store {

// Puts and deletes that take effect together or not at all.
class Batch {
 public:
  struct Operation {
    std::string key;
    std::optional<std::string> value;  // none: delete
  };
  void Put(std::string key, std::string value) { operations_.push_back({std::move(key), std::move(value)}); }
  void Delete(std::string key) { operations_.push_back({std::move(key), std::nullopt}); }
  const std::vector<Operation>& operations() const { return operations_; }
  bool empty() const { return operations_.empty(); }

 private:
  std::vector<Operation> operations_;
};

enum class Durability { kBuffered, kSynced };

class Store {
 public:
  virtual ~Store() = default;
  // After kSynced returns OK the batch survives a crash of the process and of the machine.
  virtual Status Write(const Batch& batch, Durability durability) = 0;
  // NOT_FOUND if there is none.
  virtual StatusOr<std::string> Get(std::string_view key) const = 0;
  // Calls `visit(key, value)` for keys with `prefix`, ascending from `start` (a whole key; "" from the first), or
  // descending to it when `reverse`, until it returns false. A consistent snapshot.
  virtual Status Scan(std::string_view prefix, std::string_view start, bool reverse,
                      const std::function<bool(std::string_view, std::string_view)>& visit) const = 0;
};

}  // namespace solstice::store
