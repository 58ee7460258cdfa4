// What the sanitizer keeps of each byte of a block's shared memory: who wrote and read it last.
//
// Bytes that have only been accessed together share one cell: that of the first. A granule is such a run, 1, 2, 4, 8 or
// 16 bytes long within an aligned block of 16, as large as the first access to the block is; a smaller access splits
// it.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "runtime/device/emulator/happens_before.h"

namespace solstice::device {

class SharedShadow {
 public:
  // One access.
  struct Touch {
    uint32_t generation = 0;  // of the block; others' count for nothing
    uint32_t serial = 0;      // of the instruction
    uint32_t op = 0;
    HappensBefore::Moment moment;
    bool strong = false;
  };
  struct Cell {
    Touch write, strong_write;
    std::array<Touch, 2> reads;  // of different warps
  };

  explicit SharedShadow(uint64_t bytes) : cells_(bytes), blocks_((bytes + kBlock - 1) / kBlock) {}

  static int64_t BytesFor(int64_t shared_bytes) {
    return shared_bytes * static_cast<int64_t>(sizeof(Cell)) + shared_bytes / kBlock * int64_t{sizeof(Block)};
  }

  // Calls f(cell, first byte of the granule, its bytes) for every granule of an access.
  template <typename F>
  void ForEach(uint64_t offset, uint32_t bytes, uint32_t generation, F f) {
    for (const uint64_t end = offset + bytes; offset < end;) {
      const uint64_t block_end = (offset / kBlock + 1) * kBlock;
      const uint64_t stop = block_end < end ? block_end : end;
      const uint32_t granule = Granule(offset, static_cast<uint32_t>(stop - offset), generation);
      for (; offset < stop; offset += granule) f(cells_[offset], offset, granule);
    }
  }

 private:
  static constexpr uint64_t kBlock = 16;
  struct Block {
    uint32_t generation = 0;
    uint32_t granule = 0;
  };

  // Of a block that the access lies in, after it.
  uint32_t Granule(uint64_t offset, uint32_t bytes, uint32_t generation) {
    const uint64_t mixed = (offset % kBlock) | bytes | kBlock;
    const uint32_t largest = static_cast<uint32_t>(mixed & (0 - mixed));
    Block& block = blocks_[offset / kBlock];
    if (block.generation != generation) block = {generation, largest};
    if (largest < block.granule) Split(offset / kBlock * kBlock, &block, largest);
    return block.granule;
  }
  void Split(uint64_t begin, Block* block, uint32_t granule) {
    for (uint64_t at = begin; at < begin + kBlock; at += block->granule) {
      for (uint64_t b = at + granule; b < at + block->granule && b < cells_.size(); b += granule)
        cells_[b] = cells_[at];
    }
    block->granule = granule;
  }

  std::vector<Cell> cells_;  // one a byte
  std::vector<Block> blocks_;
};

}  // namespace solstice::device
