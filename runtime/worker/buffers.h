// The judge's memory: mappings kept from one preparation to the next, and tensors placed in them between guards of
// secret content. Used by the judge's thread.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "runtime/bulk/bulk.h"
#include "runtime/device/device.h"
#include "runtime/exec/exec.h"

namespace solstice::worker {

// A mapping that may be shared with a runner.
struct Mapping {
  int64_t handle = 0;
  std::unique_ptr<device::Buffer> buffer;
  base::UniqueFd descriptor;             // for runners; only of shared pools
  std::unique_ptr<device::Buffer> view;  // the same memory, read-only; made by ReadOnlyView
  bool described = false;                // the server has the descriptor
  bool read_only = false;                // for runners
  bool taken = false;
};

// Exporting memory takes a GPU's driver 0.6 ms a mapping, so a GPU's mappings are used again: in sizes of few classes,
// an input's never for anything else (runners keep it mapped read-only). The emulator's are made for the occasion,
// since it knows a tensor's place in them.
class BufferPool {
 public:
  // A pool that is not `shared` holds what no runner may ever see. `next_handle` counts for several pools.
  BufferPool(device::Device* device, bool shared, int64_t* next_handle);

  // Where a tensor goes: a mapping's size and the tensor's place in it. RESOURCE_EXHAUSTED: too large.
  StatusOr<exec::Placement> Place(int64_t bytes, int slack) const;
  // RESOURCE_EXHAUSTED: the device has no more memory.
  StatusOr<Mapping*> Take(int64_t mapped_bytes, device::Access access, const device::Extent& extent);
  // Takes this very mapping. Null: it is gone, or in use.
  Mapping* TakeAgain(int64_t handle);
  // Makes everything taken free again. Tensors placed there must be gone.
  void GiveBack();
  // Handles given up since the last call.
  std::vector<int64_t> TakeDropped();

 private:
  StatusOr<Mapping*> Make(int64_t mapped_bytes, device::Access access, const device::Extent& extent);
  void DropFree(int64_t bytes_to_keep, size_t mappings_to_keep);

  device::Device* device_;
  const bool shared_;
  const bool keep_;
  int64_t* next_handle_;
  std::list<Mapping> mappings_;  // least recently used first
  std::vector<int64_t> dropped_;
};

// The mapping as kernels of this process may only read it.
StatusOr<device::Buffer*> ReadOnlyView(device::Device& device, Mapping& mapping, const device::Extent& extent);

// ---- Tensors -------------------------------------------------------------------------------------------------------

struct PlacedTensor {
  v1::internal::BufferRole role = v1::internal::BUFFER_ROLE_UNSPECIFIED;
  std::string name;
  Mapping* mapping = nullptr;
  exec::Placement placement;
  uint64_t stream = 0;  // which secret content its guards and its filling have
  bulk::Fingerprint fingerprint = {};

  device::Address address() const {
    return mapping->buffer->address() + static_cast<device::Address>(placement.offset);
  }
  device::Extent extent() const;
  std::string Name() const;  // "output 'y'"
};

// What lies around and, until a kernel writes it, in a tensor: secret, made from `secret` and the tensor's stream.
Status FillGuards(bulk::Bulk& bulk, uint64_t secret, const PlacedTensor& tensor);
Status FillPoison(bulk::Bulk& bulk, uint64_t secret, const PlacedTensor& tensor);

// Checks queued for one tensor; read after bulk.Finish().
struct GuardCheck {
  bulk::Damage before, after;
};
Status CheckGuards(bulk::Bulk& bulk, uint64_t secret, const PlacedTensor& tensor, GuardCheck* check);
// "12 bytes past the end of output 'y' were written, the nearest 1 byte past it"; empty: no damage.
std::string DescribeDamage(const GuardCheck& check, const PlacedTensor& tensor);
Status CheckPoison(bulk::Bulk& bulk, uint64_t secret, const PlacedTensor& tensor, bulk::Damage* damage);
// How many bytes of a filling that was fully overwritten may still look untouched: each does by chance in 1 of 256.
int64_t UntouchedByChance(int64_t bytes);

}  // namespace solstice::worker
