// The one durable Store: RocksDB in a folder of its own, with a high-water mark beside it.
//
// Layout of the folder: `db/` (RocksDB), `mark` (the high-water mark, see mark.h), `owner` (locked while open, holds
// the owner's process id). docs/formats/store.md describes the files.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "runtime/base/status.h"
#include "server/store/store.h"

namespace solstice::store {

struct RocksDbOptions {
  // Opens although synced data was lost, and sets the mark to what is there.
  bool accept_loss = false;
  // How long to wait for another instance that is just stopping.
  std::chrono::milliseconds lock_timeout{3000};
  // How often the mark follows the synced writes. Synced data of the last interval is durable all the same; only its
  // loss by a damaged disk would go unnoticed.
  std::chrono::milliseconds mark_interval{1000};
};

// Creates the folder where there is none. The Store is thread-safe and closes the data base when destroyed.
// FAILED_PRECONDITION: another instance holds the folder (names its process). DATA_LOSS: what was recovered is older
// than the high-water mark, or files are damaged. RESOURCE_EXHAUSTED: the disk is full.
StatusOr<std::unique_ptr<Store>> OpenRocksDb(const std::string& path, const RocksDbOptions& options = {});

}  // namespace solstice::store
