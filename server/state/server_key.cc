#include "runtime/base/crypto.h"
#include "server/state/evaluations.h"
#include "server/state/keys.h"

namespace solstice::state {

StatusOr<std::string> ServerKey(store::Store* store) {
  StatusOr<std::string> value = store->Get(keys::kServerKey);
  if (value.status().code() == absl::StatusCode::kNotFound) {
    std::string key = base::RandomBytes(32);
    store::Batch batch;
    batch.Put(keys::kServerKey, Frame(key));
    SOLSTICE_RETURN_IF_ERROR(store->Write(batch, store::Durability::kSynced));
    return key;
  }
  if (!value.ok()) return value.status();
  SOLSTICE_ASSIGN_OR_RETURN(std::string_view key, Unframe(*value, keys::kServerKey));
  if (key.size() != 32) return base::DataLoss("store: the server key is damaged");
  return std::string(key);
}

}  // namespace solstice::state
